"""What the brain of `gpuward up` says that it would do."""

import pytest

from agent.contract.errors import Refused
from agent.contract.messages import Scalar
from brain.actions.base import Order
from simulations import brain


async def _nobody(*_: object) -> bytes:
    raise AssertionError("a plan asks nobody")


def order(node: str) -> Order:
    """A drain that waits."""
    params: dict[str, Scalar] = {"wait_s": 14400, "then": "requeue"}
    return Order(
        id="s", incident="i", node=node, params=params, timeout_s=1, why="w", progress=lambda _: None
    )


class Drain(brain._FleetAction):
    """One of the brain's actions."""

    name = "scheduler.drain"


async def test_what_would_be_done_on_a_simulated_machine() -> None:
    """In words, not in Python."""
    assert await Drain(_nobody).plan(order("sim-03")) == [
        "scheduler.drain on a simulated machine: wait_s 14400, then requeue"
    ]


async def test_a_real_node_has_no_scheduler_here() -> None:
    """It is only observed: nobody claims that anything would be done on simulated machines for it."""
    with pytest.raises(Refused, match=r"^scheduler.drain: H1 is only observed"):
        await Drain(_nobody).plan(order("H1"))
