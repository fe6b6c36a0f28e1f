"""Telling a scheduler that a node is off, where it needs that to end what ran there (`Fencing`).

Only whoever has switched the node off, and has seen by its BMC that it is off, may say so: `node.isolate` and `bmc.power_off`.
"""

import asyncio

from agent.contract.errors import ActionError
from agent.contract.messages import clip
from brain.actions.base import Fencing, Order
from brain.actions.patience import PASSING
from brain.actions.pauses import until

TELL_S = 30.0  # a scheduler that hangs does not keep the step from its end


def planned(scheduler: object) -> list[str]:
    """The line of a plan that says so; none where the scheduler does not want to know."""
    wants = isinstance(scheduler, Fencing)
    return ["tell the scheduler so, which then ends what ran there"] if wants else []


async def told(scheduler: object, order: Order, within_s: float) -> str:
    """Tells it, and returns what the step's text says of that: nothing where it does not want to know. The node is off anyway."""
    if not isinstance(scheduler, Fencing):
        return ""
    says = f"no answer within {within_s:.3g} s"
    try:
        async with asyncio.timeout(within_s):
            for pause_s in until(within_s):
                try:
                    said = await scheduler.say_off(order.node, order.incident)
                except PASSING as error:
                    says = clip(str(error), 200)
                    await asyncio.sleep(pause_s)
                    continue
                if said:
                    return "; what ran there may start elsewhere"
                return "; what ran there is kept: it is not drained for this incident"
    except TimeoutError:
        pass
    except (ActionError, OSError) as error:
        says = clip(str(error), 200)
    return f"; what ran there is kept, {scheduler.name} was not told: {says}"
