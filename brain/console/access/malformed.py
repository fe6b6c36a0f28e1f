"""What the HTTP server logs: of requests that cannot be read one line in a minute for each address, not what they said.

They come before the door, from whoever likes; aiohttp's own record has all of the request, its credential too.
"""

import logging
import time
from collections.abc import Callable

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import RequestPayloadError

from brain.console.access.addresses import counted
from brain.console.access.limits import Limits

EVERY_S = 60.0  # a line of one address
LINES_PER_S, LINES_AT_ONCE = 0.2, 20.0  # of all together


def logger(clock: Callable[[], float] = time.monotonic) -> logging.Logger:
    """Returns a logger for one server: it is no part of the tree, and hands on what is left."""
    found = logging.Logger("brain.console.http")
    found.parent = logging.getLogger("brain.console")
    found.addFilter(NonsenseFilter(clock).filter)
    return found


class NonsenseFilter:
    """Shortens the records of requests that cannot be read, and leaves most of them out."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._each = Limits(1 / EVERY_S, 1)
        self._all = Limits(LINES_PER_S, LINES_AT_ONCE)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is logged (see logging.Filter)."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError | RequestPayloadError):
            return True
        address = counted(str(record.args[0])) if isinstance(record.args, tuple) and record.args else ""
        now = self._clock()
        if self._each.too_many(address, now) or self._all.too_many("", now):
            return False
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.msg, record.args = "console: %s sends what is no HTTP request", (address or "somebody",)
        record.exc_info = record.exc_text = None
        return True
