"""nats-py's parser, with a short way for the messages of subscriptions that are passed on directly.

nats-py matches each message against two regular expressions, copies its parts through a buffer, and calls two coroutines for
it. Here the bytes of a connection are cut into what the server says, line by line and message by message; whatever is not passed
on directly is given to nats-py's own parser, whole and in its order.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from nats.protocol.parser import AWAITING_CONTROL_LINE, Parser

Taker = Callable[[bytes, bytes, bytes, dict[str, str] | None], None]  # subject, reply, data, headers
_END = b"\r\n"
_MESSAGES = (b"HMSG ", b"MSG ")


class DirectParser(Parser):
    """`takers`: who takes what comes for a subscription, by its number; asked anew for each message. `headers` reads those of a
    message, or says that nobody asks for them (None).
    """

    _connections = 0

    def __init__(
        self,
        client: Any,
        takers: Mapping[int, Taker],
        headers: Callable[[bytes], Awaitable[dict[str, str] | None]],
        unasked: bytes,
    ) -> None:
        """`unasked`: nobody asks for headers that begin so."""
        self._takers = takers
        self._headers = headers
        self._unasked = unasked
        self._rest = b""  # the beginning of what has not come whole
        super().__init__(client)

    def reset(self) -> None:
        """A new connection: what had begun on the last one does not go on."""
        super().reset()
        self._rest = b""
        self._connections += 1

    async def parse(self, data: bytes = b"") -> None:
        """Takes the next bytes of the connection. ProtocolError: nats-py's, of what no server says."""
        if not self._takers and not self._rest:
            await super().parse(data)
            return
        if self.buf or self.state != AWAITING_CONTROL_LINE:  # nats-py's parser is within a message
            data = await self._finished(data)
        await self._cut(self._rest + data if self._rest else data)

    async def _finished(self, data: bytes) -> bytes:
        """Gives nats-py's parser the end of what it has begun; returns what follows."""
        if self.state == AWAITING_CONTROL_LINE:
            begun = bytes(self.buf)
            self.buf.clear()
            return begun + data
        missing = self.needed + len(_END) - len(self.buf)
        await super().parse(data[:missing])
        return data[missing:]

    async def _cut(self, data: bytes) -> None:
        self._rest = b""
        at, takers, connection = 0, self._takers, self._connections
        while (line_end := data.find(_END, at)) >= 0:
            begin = end = line_end + len(_END)
            take = None
            if data.startswith(_MESSAGES, at):
                words = data[at:line_end].split()
                headed = words[0] == b"HMSG"
                try:
                    take, end = takers.get(int(words[2])), begin + int(words[-1]) + len(_END)
                    body = begin + int(words[-2]) if headed else begin
                except (IndexError, ValueError):
                    pass  # nats-py says what is wrong with it
            if end > len(data):
                break
            if take is None:
                await super().parse(data[at:end])
            else:
                headers = None
                if headed and not data.startswith(self._unasked, begin):
                    headers = await self._headers(data[begin:body])
                take(
                    words[1],
                    words[3] if len(words) == 5 + headed else b"",
                    data[body : end - len(_END)],
                    headers,
                )
            if self._connections != connection:
                return  # the server's words ended it: what follows is of no connection
            at = end
        self._rest = data[at:]
