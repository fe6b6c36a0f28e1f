"""What the log refuses again and again while it takes others: somebody has set a limit on its stream or its server, say."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import orjson
from nats.errors import MaxPayloadError

from agent.contract.messages import clip

FRESH_S = 30.0  # one that was not refused again for so long is not waited for any more
MOST = 1000  # messages


@dataclass(slots=True)
class _Refused:
    since_s: float
    last_s: float
    words: str


class RefusedWrites:
    """The messages that were refused and are tried again, of all that this brain writes onto the log."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._found: OrderedDict[str, _Refused] = OrderedDict()

    def refused(self, name: str, answer: bytes) -> None:
        """The server's answer to this message was an error."""
        self._note(name, _words(answer))

    @contextmanager
    def sending(self, name: str) -> Iterator[None]:
        """One message is written inside. It counts as refused, and no more comes of it, where it is larger than the server takes:
        that must not end the connection by which all others go.
        """
        try:
            yield
        except MaxPayloadError:
            self._note(name, "maximum payload exceeded")  # as the server says it

    def _note(self, name: str, words: str) -> None:
        now_s = self._clock()
        one = self._found.pop(name, None) or _Refused(now_s, now_s, "")
        one.last_s, one.words = now_s, words
        self._found[name] = one
        if len(self._found) > MOST:
            self._found.popitem(last=False)

    def taken(self, name: str) -> None:
        """The log has it now."""
        self._found.pop(name, None)

    def lasting(self, for_s: float) -> tuple[int, float, str]:
        """How many were refused for at least so long, for how long the first, and what the server says of it."""
        now_s = self._clock()
        while self._found and now_s - next(iter(self._found.values())).last_s > FRESH_S:
            self._found.popitem(last=False)
        long = [one for one in self._found.values() if one.last_s - one.since_s >= for_s]
        if not long:
            return 0, 0.0, ""
        first = min(long, key=lambda one: one.since_s)
        return len(long), now_s - first.since_s, first.words


def _words(answer: bytes) -> str:
    try:
        return clip(str(orjson.loads(answer)["error"]["description"]), 200)
    except (ValueError, KeyError, TypeError):
        return "no reason given"
