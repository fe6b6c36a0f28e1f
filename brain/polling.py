"""Another system is asked now and then, while this brain leads; without an answer ever more seldom, and that is told once."""

import asyncio
from collections.abc import Awaitable, Callable

from agent.contract.errors import ActionError
from brain.unreadable import answered_by


async def ask_on(
    ask: Callable[[], Awaitable[object]],
    *,
    whom: str,
    every_s: float,
    slowest_s: float,
    leads: Callable[[], bool],
    fails: Callable[[ActionError], None],
    answers: Callable[[], None],
) -> None:
    """Until cancelled. `ask` raises ActionError where `whom` gives no answer; one that cannot be read is none. The pauses then
    grow to `slowest_s`. `fails` hears of the first one, and `answers` when it is over.
    """
    failing, pause_s = False, every_s
    while True:
        await asyncio.sleep(pause_s)
        if not leads():
            pause_s = every_s
            continue
        try:
            with answered_by(whom):
                await ask()
        except ActionError as error:
            if not failing:
                fails(error)
            failing, pause_s = True, min(slowest_s, pause_s * 2)
        else:
            if failing:
                answers()
            failing, pause_s = False, every_s
