"""Showing people in a scheduler what a step has changed there, where a site wants it (`Telling`).

It is shown beside the step: it holds up neither the drain nor the return, and what fails of it is a part of what the step says.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from agent.contract.errors import ActionError, Transient
from agent.contract.messages import clip
from brain.actions.base import Order, Telling
from brain.actions.marks import Mark
from brain.actions.patience import PASSING
from brain.actions.pauses import until

TELL_S = 4.0  # how long a scheduler that is away, or hangs, keeps a step from its end: less than SPARE_S, so it ends in time
DENIALS = 3  # within a second: a restarted server denies for a moment


async def told(scheduler: object, node: str, incidents: Collection[str], before: Sequence[Mark] = ()) -> str:
    """Shows it, and returns what the step's text says of that: nothing when all of it is shown. As in Telling."""
    if not isinstance(scheduler, Telling):
        return ""
    says, denials = f"no answer within {TELL_S:g} s", 0
    try:
        async with asyncio.timeout(TELL_S):
            for pause_s in until(TELL_S):
                try:
                    await scheduler.tell(node, incidents, before)
                    return ""
                except PASSING as error:
                    says = clip(str(error), 200)
                    denials += isinstance(error, Transient)
                if denials == DENIALS:
                    break
                await asyncio.sleep(pause_s)
    except TimeoutError:
        pass
    except (ActionError, OSError) as error:
        says = clip(str(error), 200)
    return f"; {scheduler.name} does not show it: {says}"


@asynccontextmanager
async def telling(scheduler: object, order: Order) -> AsyncIterator[asyncio.Task[str]]:
    """`told` of the order's incident, while the block goes on. Where the block fails it is told as progress."""
    task = asyncio.create_task(told(scheduler, order.node, {order.incident}))
    try:
        yield task
    except ActionError:
        if says := await task:
            order.progress(says.removeprefix("; "))
        raise
    finally:
        task.cancel()
