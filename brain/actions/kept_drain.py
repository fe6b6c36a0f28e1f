"""The drain of one step, while the step waits for jobs to end and stops them: whose it is, and on which record of the node.

A scheduler whose record of a node was made anew in the meantime (Kubernetes: a Node object that was deleted, and whose node has
joined again) has lost the drain by nobody's decision: the node is drained again (decision 112).
"""

from agent.contract.errors import Refused, Transient
from brain.actions.base import NoRecord, Order, StandingDrain
from brain.actions.marks import owns
from brain.actions.patience import Patient
from brain.actions.scheduler_orders import mark_of


class KeptDrain:
    """That of one attempt of a step."""

    def __init__(self, scheduler: Patient, order: Order, record: str = "") -> None:
        """`record`: that on which an attempt before this one has drained the node."""
        self._of = scheduler
        self._order = order
        self.record = record

    async def look(self) -> StandingDrain:
        """Returns what stands there, drained again where the node's record is another one than that which was drained. Transient:
        there is none just now.
        """
        order = self._order
        try:
            found = await self._of.standing(order.node)
        except NoRecord as error:
            if not self.record:
                raise
            raise Transient(f"{order.node} has been removed since it was drained: {error}") from error
        if self.record and found.record != self.record and not owns(found.marks, order.incident):
            order.progress(
                f"{order.node} is another object in {self._of.name} than was drained: drained again"
            )
            await self._of.renew(order.node, [mark_of(order)], found.record)
            found = await self._of.standing(order.node)
        if owns(found.marks, order.incident):
            self.record = found.record
        return found

    async def stands(self) -> StandingDrain:
        """`look`. Refused: somebody has taken the drain off."""
        found = await self.look()
        if not found.drained:
            raise Refused(f"someone has taken the drain off {self._order.node}")
        return found

    async def wanted(self) -> None:
        """Asked before a job is stopped. Refused: somebody has taken the node back, or its drain over, and its jobs run on."""
        if not owns((await self.look()).marks, self._order.incident):
            raise Refused(f"someone has taken the drain of {self._order.node} off, or over: its jobs run on")
