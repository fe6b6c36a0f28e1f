"""What is said to a connection for which there is no place: whoever opened it would not know why it is closed.

It gets the answer of any request in place of its own, and ends. A few are told at a time, none for long: the rest is closed.
"""

import asyncio
import re
from http import HTTPStatus

from brain.console.answers import encoded
from brain.console.api.problems import PROBLEM, problem
from brain.console.speech import in_language, told

MOST = 16  # that are told at the same time
WITHIN_S = 2.0  # until it has asked something
AGAIN_S = 10
_LANGUAGE = re.compile(rb"^accept-language:[ \t]*([\x20-\x7e]*)", re.IGNORECASE | re.MULTILINE)


class Crowded:
    """Those that are told now."""

    def __init__(self) -> None:
        self._telling: set[asyncio.Transport] = set()

    def tell(self, transport: asyncio.Transport, why: str) -> None:
        """Ends a connection. `why`: a sentence."""
        if len(self._telling) >= MOST:
            transport.abort()
            return
        self._telling.add(transport)
        transport.set_protocol(_Told(transport, why, self._telling))
        transport.resume_reading()


class _Told(asyncio.Protocol):
    """One of them."""

    def __init__(self, transport: asyncio.Transport, why: str, telling: set[asyncio.Transport]) -> None:
        self._transport = transport
        self._why = why
        self._telling = telling
        self._end = asyncio.get_running_loop().call_later(WITHIN_S, transport.abort)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if not self._transport.is_closing():
            self._transport.write(answer(self._why, data))
            self._transport.close()

    def connection_lost(self, _error: Exception | None) -> None:
        """See asyncio.BaseProtocol."""
        self._end.cancel()
        self._telling.discard(self._transport)


def answer(why: str, asked: bytes) -> bytes:
    """The answer of HTTP. `asked`: the request, of which only the language is read."""
    found = _LANGUAGE.search(asked)
    status = HTTPStatus.SERVICE_UNAVAILABLE
    with in_language(found[1].decode("ascii") if found else ""):
        body = encoded(problem(status, told(why), AGAIN_S))
    lines = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {PROBLEM}",
        f"Content-Length: {len(body)}",
        f"Retry-After: {AGAIN_S}",
        "Cache-Control: no-store",
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
