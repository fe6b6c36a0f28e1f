"""fabric.inspect: one node of an InfiniBand fabric inspects all of it.

    [subnet_managers.default]
    inspect = ["ufm1", "gpu001"]         # the inspecting nodes; none: the nodes of `ask`, then the hosts

Only one node inspects a fabric at a time, since switches answer each packet of an inspection in software.
"""

from typing import ClassVar

from agent.contract import fabric
from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from brain.actions.base import Done, NodeCommands, Order
from brain.actions.fabrics import Fabrics

_INSPECT = "ib.inspect"


class FabricInspect:
    """See the module's docstring. Findings are a failure, so that someone is paged."""

    name: ClassVar[str] = "fabric.inspect"

    def __init__(self, fabrics: Fabrics, commands: NodeCommands) -> None:
        self._fabrics = fabrics
        self._commands = commands

    async def plan(self, order: Order) -> list[str]:
        """As in Action. No node is asked."""
        return [f"have one of {', '.join(self._fabrics.of_order(order).inspectors)} inspect the fabric"]

    async def run(self, order: Order) -> Done:
        """As in Action. Asks one node after the other until one has inspected the fabric. ActionError with its findings."""
        refused: list[str] = []
        unreachable = False
        for node in self._fabrics.of_order(order).inspectors:
            order.progress(f"{node} inspects the fabric")
            try:
                result = await self._commands.perform(node, _INSPECT, {}, of=order, part=f"inspect-{node}")
                outcome, why = result.outcome, result.why
            except (Refused, Unreachable) as error:
                outcome, why = Outcome.UNREACHABLE, str(error)
            if outcome in (Outcome.REFUSED, Outcome.UNREACHABLE):
                unreachable |= outcome is Outcome.UNREACHABLE
                refused.append(f"{node}: {why}")
                continue
            return _answer(node, f"{node}/{order.id}.inspect-{node}", outcome, why)
        raise (Unreachable if unreachable else Refused)(f"no node could inspect it: {'; '.join(refused)}")


def _answer(node: str, bundle: str, outcome: Outcome, why: str) -> Done:
    """Converts the node's outcome. `bundle`: the evidence bundle with all output of the tools."""
    if outcome is Outcome.UNKNOWN:
        raise TimedOut(f"{node}: {why}")
    found = fabric.count(why)
    if outcome is not Outcome.OK or found is None:
        raise ActionError(f"{node} could not inspect the fabric: {why}")
    text = f"seen by {node} (gpuward evidence {bundle}): {why}"
    if found:
        raise ActionError(text)
    return Done(text=text, data={"inspected_by": node})
