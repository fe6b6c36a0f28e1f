"""What the brain of `gpuward up` says that it would do."""

from typing import cast

import pytest

from agent.contract.errors import Refused
from agent.contract.messages import Scalar
from brain.actions.base import Order
from simulations import brain, node


async def _nobody(*_: object) -> bytes:
    raise AssertionError("a plan asks nobody")


def order(on: str) -> Order:
    """A drain that waits."""
    params: dict[str, Scalar] = {"wait_s": 14400, "then": "requeue"}
    return Order(id="s", incident="i", node=on, params=params, timeout_s=1, why="w", progress=lambda _: None)


class Drain(brain._FleetAction):
    """One of the brain's actions."""

    name = "scheduler.drain"


async def test_what_would_be_done_on_a_simulated_machine() -> None:
    """In words, not in Python."""
    assert await Drain(_nobody).plan(order("sim-03")) == [
        "scheduler.drain on a simulated machine: wait_s 14400, then requeue"
    ]


class Reset(node._MachineAction):
    """One of the agent's actions."""

    name = "gpu.reset"


async def test_what_a_simulated_machine_would_do() -> None:
    """As the brain says it: it stands in the question of an approval."""
    machine = cast(node.SimulatedNode, None)  # a plan asks nobody
    assert await Reset(machine, 0.0).plan({"gpu": "gpu/0000:1b:00"}) == [
        "gpu.reset on a simulated machine: gpu gpu/0000:1b:00"
    ]
    assert await Reset(machine, 0.0).plan({}) == ["gpu.reset on a simulated machine"]


async def test_a_real_node_has_no_scheduler_here() -> None:
    """It is only observed: nobody claims that anything would be done on simulated machines for it."""
    with pytest.raises(Refused, match=r"^scheduler.drain: H1 is only observed"):
        await Drain(_nobody).plan(order("H1"))
