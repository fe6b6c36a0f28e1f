"""A fleet for actions that order no node."""

from collections.abc import Mapping

from agent.contract.commands import Outcome
from agent.contract.messages import Scalar
from brain.actions.base import Order


class _Idle:
    async def order(
        self, node: str, action: str, params: Mapping[str, Scalar], *, of: Order, part: str
    ) -> tuple[Outcome, str]:
        """Never asked."""
        raise AssertionError(f"{node}: {action}")


FLEET = _Idle()
