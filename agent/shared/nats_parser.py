"""nats-py's parser, with a short way for the messages of subscriptions that are passed on directly.

nats-py matches each message against two regular expressions, copies its parts through a buffer, and calls two coroutines for
it. Here the bytes of a connection are cut into what the server says, line by line and message by message; whatever is not passed
on directly is given to nats-py's own parser, whole and in its order.

A server that was taken over chooses what it sends. So sizes are digits, and what has not come whole is kept up to a bound: beyond
it the connection is given up.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from nats.errors import ProtocolError
from nats.protocol.parser import AWAITING_CONTROL_LINE, Parser

_MOST_DIGITS = 19
_MOST_SID = 10**_MOST_DIGITS
Taker = Callable[[bytes, bytes, bytes, dict[str, str] | None], None]  # subject, reply, data, headers
_END = b"\r\n"
_MESSAGES = (b"HMSG ", b"MSG ")
MOST_LINE = 65_536  # bytes of a line: as many as nats-py takes of a server's first one
MOST_MESSAGE = 64 * 1024**2  # bytes of a message: no server lets a publisher send more (max_payload)


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
        most: int = MOST_MESSAGE,
    ) -> None:
        """`unasked`: nobody asks for headers that begin so. `most`: bytes of the longest message that is taken."""
        self._most = most
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
        else:
            if self.buf or self.state != AWAITING_CONTROL_LINE:  # nats-py's parser is within a message
                data = await self._finished(data)
            await self._cut(self._rest + data if self._rest else data)
        self._bounded()

    def _bounded(self) -> None:
        """ProtocolError: what has not come whole is longer than anything that a server says."""
        if self.state == AWAITING_CONTROL_LINE:
            if len(self.buf) > MOST_LINE or (len(self._rest) > MOST_LINE and _END not in self._rest):
                raise ProtocolError(f"nats: a line of more than {MOST_LINE} bytes")
        elif self.needed > self._most:
            raise ProtocolError(f"nats: a message of more than {self._most} bytes")

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
                if len(words) not in (4 + headed, 5 + headed):
                    raise ProtocolError("nats: malformed MSG")
                size = _size(words[-1], self._most)
                body = begin + (_size(words[-2], size) if headed else 0)
                take, end = takers.get(_size(words[2], _MOST_SID)), begin + size + len(_END)
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


def _size(word: bytes, most: int) -> int:
    """A number of a message's line. ProtocolError: no server says it; one below zero would have the message read for ever."""
    if not (word.isdigit() and len(word) <= _MOST_DIGITS and int(word) <= most):
        raise ProtocolError("nats: malformed MSG")
    return int(word)
