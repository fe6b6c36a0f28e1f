"""A fleet for actions that order no node."""

from collections.abc import Mapping

from agent.contract.messages import Scalar
from brain.actions.base import Order
from brain.core.inputs import StepResult


class _Idle:
    async def perform(
        self, node: str, action: str, params: Mapping[str, Scalar], *, of: Order, part: str
    ) -> StepResult:
        """Never asked."""
        raise AssertionError(f"{node}: {action}")


FLEET = _Idle()
