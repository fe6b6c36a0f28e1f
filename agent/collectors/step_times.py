"""How long the steps of a job take, by what its log prints. Not a collector; a part of joblog.

Which words stand before the number is the site's to say. It is in milliseconds where these words, or what follows the number, say
ms; else in seconds.
"""

import re
from dataclasses import dataclass, field

_MINUTE_S = 60.0
_LEAST = 3  # steps that a median needs
_AGAIN_S = 600.0  # what has not moved is told so often
_SHARE = 0.05  # a smaller change is not told
_MOST_FILES, _MOST_STEPS = 64, 600


@dataclass(slots=True)
class _Log:
    since_s: float
    steps: list[float] = field(default_factory=list)
    told: float = 0.0
    told_s: float = 0.0


class StepTimes:
    """The median of each minute, told when it has moved."""

    def __init__(self, text: str) -> None:
        """`text`: the words before the number; empty: nothing is read."""
        self._text = text
        self._number = re.compile(re.escape(text) + r"[\s:=]{0,4}([0-9]{1,9}(?:\.[0-9]{1,9})?)(\s?ms\b)?")
        self._in_ms = re.search(r"\bms\b", text) is not None
        self._logs: dict[str, _Log] = {}

    def read(self, text: str, file: str, at_s: float) -> float | None:
        """A line of a log, at the node's monotonic time. The median that is to be told, in seconds; None: nothing is."""
        if not self._text or self._text not in text or (found := self._number.search(text)) is None:
            return None
        log = self._logs.pop(file, None) or _Log(at_s)
        self._logs[file] = log  # the newest stands last
        if len(self._logs) > _MOST_FILES:
            del self._logs[next(iter(self._logs))]
        if len(log.steps) < _MOST_STEPS:
            log.steps.append(float(found[1]) / (1000 if self._in_ms or found[2] else 1))
        if at_s - log.since_s < _MINUTE_S or len(log.steps) < _LEAST:
            return None
        median = sorted(log.steps)[len(log.steps) // 2]
        log.since_s, log.steps = at_s, []
        if log.told and at_s - log.told_s < _AGAIN_S and abs(median - log.told) <= _SHARE * log.told:
            return None
        log.told, log.told_s = median, at_s
        return median
