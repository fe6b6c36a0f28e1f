"""Which way a log runs: `journalctl -r` and `tac` print the newest line first. Pure."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from agent.contract.kernel_documents import unwrapped
from agent.contract.kernel_text import Clock, parse

_MANY = 4  # so many times as many steps back as forward: else a clock was set, or several logs stand one after another
_BOOTS = 3  # so many steps back of a clock that begins with each boot, or the machine was started again
_NEW_YEAR_S = 300 * 86_400.0  # by more a time may go back where it has no year and a new one begins


def newest_first(lines: Sequence[str]) -> list[int]:
    """The positions of the lines in the order in which they were said; empty when they stand in it."""
    first, last = _first_time(lines), _first_time(reversed(lines))
    if first is None or last is None or _step(first, last) > 0:
        return []
    starts: list[int] = []  # of the lines with a time; what has none belongs to the one before
    times: list[tuple[float, Clock]] = []
    for number, text in unwrapped(lines):
        if (time := _time(text)) is not None:
            starts.append(number - 1)
            times.append(time)
    steps = [_step(one, other) for one, other in pairwise(times)]
    back, forward = steps.count(-1), steps.count(1)
    if back < (_BOOTS if first[1] is Clock.MONOTONIC else 1) or back < _MANY * forward:
        return []
    starts[0] = 0
    ends = [*starts[1:], len(lines)]
    parts = list(zip(starts, ends, strict=True))
    return [at for start, end in reversed(parts) for at in range(start, end)]


def _first_time(lines: Iterable[str]) -> tuple[float, Clock] | None:
    return next((time for text in lines if (time := _time(text)) is not None), None)


def _time(text: str) -> tuple[float, Clock] | None:
    line = parse(text)
    if line is None or line.clock not in (Clock.WALL, Clock.MONOTONIC):
        return None
    return line.mono_s, line.clock


def _step(one: tuple[float, Clock], other: tuple[float, Clock]) -> int:
    """1: forward, -1: back, 0: neither."""
    by_s = other[0] - one[0]
    if one[1] is not other[1] or abs(by_s) > _NEW_YEAR_S or not by_s:
        return 0
    return 1 if by_s > 0 else -1
