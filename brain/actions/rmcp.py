"""The presence ping of RMCP (ASF 2.0, section 3.2.4.2), which every BMC with IPMI over LAN answers without a login."""

import asyncio
import contextlib

from agent.contract.errors import Unreachable

# RMCP: version 6, sequence 255 (no acknowledgement wanted), class ASF. ASF: enterprise 4542, type, tag, length of data.
_HEAD = bytes((0x06, 0x00, 0xFF, 0x06, 0x00, 0x00, 0x11, 0xBE))
_PING, _PONG, _TYPE_AT = 0x80, 0x40, 8
_REQUEST = _HEAD + bytes((_PING, 0x00, 0x00, 0x00))


class _Pong(asyncio.DatagramProtocol):
    """Waits for the answer."""

    def __init__(self) -> None:
        self.heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:  # noqa: ARG002  the library's signature
        """Takes an answer; anything else is ignored."""
        if data[4:_TYPE_AT] == _HEAD[4:] and data[_TYPE_AT : _TYPE_AT + 1] == bytes((_PONG,)):
            self._ends(None)

    def error_received(self, exc: Exception) -> None:
        """Nobody listens there."""
        self._ends(exc)

    def _ends(self, error: Exception | None) -> None:
        if self.heard.done():
            return
        if error is None:
            self.heard.set_result(None)
        else:
            self.heard.set_exception(error)


async def ping(host: str, port: int, *, within_s: float, tries: int) -> None:
    """Returns when the BMC has answered one of `tries` packets. Unreachable: it has not, within this time."""
    where = f"{host}:{port}"
    try:
        transport, pong = await asyncio.get_running_loop().create_datagram_endpoint(
            _Pong, remote_addr=(host, port)
        )
        try:
            for _ in range(tries):
                transport.sendto(_REQUEST)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(within_s / tries):
                        await asyncio.shield(pong.heard)
                        return
        finally:
            transport.close()
            pong.heard.cancel()
    except OSError as error:
        raise Unreachable(f"{where}: {error.strerror or error}") from error
    raise Unreachable(f"{where}: no answer to a presence ping within {within_s:g} s")
