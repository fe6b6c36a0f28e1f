"""Work that is done again and again begins at the same moments, so that the process wakes once for all of it."""

import asyncio
import math
import time


def until_next(period_s: float) -> float:
    """Seconds until the clock (time.monotonic, which is the event loop's too) shows the next multiple of `period_s`."""
    now_s = time.monotonic()
    left_s = (math.floor(now_s / period_s) + 1) * period_s - now_s
    # Woken a moment too early: that was this one.
    return left_s if left_s > period_s / 100 else left_s + period_s


async def pause(period_s: float) -> None:
    """Sleeps until the next multiple of `period_s`."""
    await asyncio.sleep(until_next(period_s))
