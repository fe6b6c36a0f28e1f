"""fabric.inspect: one node of an InfiniBand fabric looks over all of it.

    [subnet_managers.default]
    inspect = ["ufm1", "gpu001"]         # who looks; none: the nodes of `ask`, then the hosts

One node for a fabric, and never two at a time by us: each packet of it is one that switches answer in software.
"""

from typing import ClassVar

from agent.contract import fabric
from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from brain.actions.base import Done, Fleet, Order
from brain.actions.fabrics import Fabrics

_INSPECT = "ib.inspect"


class FabricInspect:
    """See the module's docstring. Findings are a failure, so that people are told."""

    name: ClassVar[str] = "fabric.inspect"

    def __init__(self, fabrics: Fabrics, fleet: Fleet) -> None:
        self._fabrics = fabrics
        self._fleet = fleet

    async def plan(self, order: Order) -> list[str]:
        """Who would be asked; nobody is."""
        return [f"let one of {', '.join(self._fabrics.of(order).inspectors)} look over the fabric"]

    async def run(self, order: Order) -> Done:
        """Asks one node after the other until one has looked. ActionError with what it found."""
        refused: list[str] = []
        unreachable = False
        for node in self._fabrics.of(order).inspectors:
            order.say(f"{node} looks over the fabric")
            try:
                outcome, why = await self._fleet.order(node, _INSPECT, {}, of=order, part=f"inspect-{node}")
            except (Refused, Unreachable) as error:
                outcome, why = Outcome.UNREACHABLE, str(error)
            if outcome in (Outcome.REFUSED, Outcome.UNREACHABLE):
                unreachable |= outcome is Outcome.UNREACHABLE
                refused.append(f"{node}: {why}")
                continue
            return _answer(node, f"{node}/{order.id}.inspect-{node}", outcome, why)
        raise (Unreachable if unreachable else Refused)(f"no node could look: {'; '.join(refused)}")


def _answer(node: str, bundle: str, outcome: Outcome, why: str) -> Done:
    """`bundle`: under this name the object store has all that the tools printed."""
    if outcome is Outcome.UNKNOWN:
        raise TimedOut(f"{node}: {why}")
    found = fabric.count(why)
    if outcome is not Outcome.OK or found is None:
        raise ActionError(f"{node} could not look over the fabric: {why}")
    text = f"seen by {node} (gpuward evidence {bundle}): {why}"
    if found:
        raise ActionError(text)
    return Done(text=text, data={"inspected_by": node})
