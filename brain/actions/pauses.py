"""Waiting for a condition with pauses that grow."""

import asyncio
from collections.abc import Iterator

GROWTH = 1.5


def until(deadline_s: float, *, first_s: float = 0.2, most_s: float = 10.0) -> Iterator[float]:
    """Yields the pauses between checks until `deadline_s` seconds from now; the last pause ends there.

    for pause_s in until(60): check; await asyncio.sleep(pause_s)
    """
    clock = asyncio.get_running_loop().time
    end_s = clock() + deadline_s
    pause_s = first_s
    while (left_s := end_s - clock()) > 0:
        yield min(pause_s, left_s)
        pause_s = min(most_s, pause_s * GROWTH)
