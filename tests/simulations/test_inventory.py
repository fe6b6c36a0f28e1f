"""A simulated machine tells what it is made of, as the agent of a real one does."""

from pathlib import Path

from agent.contract.kinds import KINDS
from agent.host import Host
from simulations.changes import Boots, after
from simulations.inventory import SimulatedInventory
from simulations.machines import Machine
from simulations.node import SimulatedNode

KERNEL = "6.1.0"


def told(name: str) -> dict[str, dict[str, object]]:
    """Component -> what is told of it."""
    return {one.component: dict(one.data) for one in SimulatedInventory(KERNEL).told(Machine(name).state)}


def test_it_has_what_the_page_of_a_node_shows() -> None:
    """The node, 8 GPUs and 8 cards, with every field that their kinds have, each with a value."""
    found = told("sim-01")
    kinds = {one.kind for one in SimulatedInventory(KERNEL).told(Machine("sim-01").state)}
    assert kinds == {"node.inventory", "node.inventory.gpu", "node.inventory.nic"}
    assert sum(component.startswith("gpu/") for component in found) == 8
    assert sum(component.startswith("nic/") for component in found) == 8
    for kind, component in (
        ("node.inventory", "node"),
        ("node.inventory.gpu", "gpu/0000:1b:00"),
        ("node.inventory.nic", "nic/mlx5_0"),
    ):
        assert set(found[component]) == {field.name for field in KINDS[kind].fields}
        assert [name for name, value in found[component].items() if value == ""] == []
    assert (found["node"]["gpus"], found["node"]["nics"], found["node"]["kernel"]) == (8, 8, KERNEL)


def test_equal_nodes_are_equal_and_no_card_is_another() -> None:
    """Nothing differs for the rules of drift; serial numbers, UUIDs and GUIDs are each card's own, and always the same."""
    one, other = told("sim-01"), told("sim-02")
    assert one == told("sim-01")
    assert one["node"] == other["node"]
    for key in ("serial", "uuid", "guid"):
        values = [str(data[key]) for found in (one, other) for data in found.values() if key in data]
        assert len(set(values)) == len(values) == 16, key


def test_a_gpu_that_left_the_bus_is_missing() -> None:
    """As in /proc, which the real agent reads."""
    state = Machine("sim-01").state
    state.gpus["0000:1b:00"].removed = True
    found = {one.component: one.data for one in SimulatedInventory(KERNEL).told(state)}
    assert "gpu/0000:1b:00" not in found
    assert found["node"]["gpus"] == 7


async def test_it_is_told_again_after_a_boot(tmp_path: Path) -> None:
    """The agent that starts then has told nothing yet; after a card has left the bus it tells what is there."""
    node = SimulatedNode(
        "sim-01", cell="default", keys={}, folder=tmp_path, host=Host(), on_event=lambda _: None
    )
    await node.start()
    node.inject((after(0, Boots(power=False)),))
    kinds = []
    while (event := node.next_event()) is not None:
        kinds.append(event.kind)
        node.sent(event)
    await node.stop()
    assert kinds.count("agent.started") == kinds.count("node.inventory") == 2
    assert kinds.index("node.inventory.gpu") > kinds.index("agent.started")
