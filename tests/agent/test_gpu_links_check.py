"""gpu.links_check: PCIe and NVLinks of all GPUs, as NVML and the PCI bus show them."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.actions.base import NotPassed
from agent.actions.gpu_links_check import GpuLinksCheck
from agent.contract.errors import ActionError
from tests.agent.gpu_kit import FIRST, SECOND, GpuNode
from tests.agent.nvml_kit import plug
from tests.fixtures import nvml_fake

STATE, SPEED = 165, 164  # NVML_FI_DEV_NVLINK_GET_*
NVLINK4 = 26562  # MB/s of one NVLink of an H100
Change = Callable[[GpuNode], None]


@pytest.fixture
def node(tmp_path: Path) -> GpuNode:
    """Two H100 on an NVSwitch board, well."""
    made = GpuNode(tmp_path, nvml_fake.build(tmp_path / "lib"))
    for index in (0, 1):
        made.nvml.well(index)
        made.nvml.set(index, performance=0)
        made.nvml.change(index, {(SPEED, link): NVLINK4 for link in range(18)})
    made.kit = replace(made.kit, settle_s=0)
    return made


async def test_all_links_are_well(node: GpuNode) -> None:
    """The figures are the worst of the node, and name what they were measured on."""
    done = await GpuLinksCheck(node.kit).run({})
    assert done.text == "2 GPUs answer, PCIe x16 or more, 18 NVLinks each"
    assert {one.name: one.value for one in done.figures} == {
        "gpus": 2,
        "gpu.pcie_lanes": 16,
        "gpu.nvlinks": 18,
        "gpu.nvlink_mb_per_s": NVLINK4,
    }
    assert (done.alike, done.untested) == ("2 NVIDIA H100", ())


def pcie(**values: int) -> Change:
    return lambda node: node.nvml.set(1, **{f"pcie_{name}": value for name, value in values.items()})


def nvlink(values: dict[tuple[int, int], int]) -> Change:
    return lambda node: node.nvml.change(1, values)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (pcie(width=8), f"{SECOND} has PCIe x8 of x16"),
        (pcie(gen=3), f"{SECOND} has PCIe generation 3, others have 5"),
        (nvlink({(STATE, 4): 0, (STATE, 7): 0}), f"{SECOND} has 16 of 18 NVLinks (inactive: 4, 7)"),
        (nvlink({(SPEED, 4): 20000}), f"{SECOND} has 1 NVLinks slower than {NVLINK4} MB/s, link 4: 20000"),
        (lambda node: node.nvml.fail(1, nvml_fake.LOST), f"{SECOND} is on the PCI bus, and NVML does not show it"),
        (lambda node: plug(node.tree, "0000:5d:00"), "0000:5d:00 is on the PCI bus, and NVML does not show it"),
        (lambda node: node.nvml.refuse(9), "2 GPUs are on the PCI bus, but there is no NVML here"),
        (lambda node: node.nvml.set(1, fabric="2 0 0"), f"the fabric state is not completed: {SECOND}"),
    ],
)  # fmt: skip
async def test_what_is_wrong(node: GpuNode, change: Change, says: str) -> None:
    """One GPU differs from what its own maximum, the other GPU, or the PCI bus shows."""
    change(node)
    with pytest.raises(NotPassed) as caught:
        await GpuLinksCheck(node.kit).run({})
    assert says in str(caught.value)


async def test_an_idle_link_may_be_slow_and_then_its_speed_was_not_tested(node: GpuNode) -> None:
    """Below full performance PCIe saves power; nobody can tell it from a worse link without a load."""
    node.nvml.set(1, pcie_gen=1, performance=8)
    done = await GpuLinksCheck(node.kit).run({})
    assert done.untested == (
        f"PCIe speed under load of {SECOND}: now generation 1 of 5, which may be to save power",
    )


async def test_a_sleeping_nvlink_is_active(node: GpuNode) -> None:
    """State 2 is a link that saves power."""
    node.nvml.change(1, {(STATE, 4): 2})
    assert "18 NVLinks each" in (await GpuLinksCheck(node.kit).run({})).text


async def test_a_driver_before_530(node: GpuNode) -> None:
    """It has a call for each link's state in place of a field, and tells no speed."""
    for index, states in enumerate(("1111", "1101")):
        node.nvml.fields(index, {(91, 0): 4})
        node.nvml.set(index, links=states)
    with pytest.raises(NotPassed) as caught:
        await GpuLinksCheck(node.kit).run({})
    assert str(caught.value) == f"links are not as expected: {SECOND} has 3 of 4 NVLinks (inactive: 2)"


async def test_one_gpu_only(node: GpuNode) -> None:
    """The check after a reset of one GPU does not fail for another one; each component that is no GPU means all."""
    node.nvml.set(1, pcie_width=8)
    check = GpuLinksCheck(node.kit)
    await check.run({"gpu": f"gpu/{FIRST}"})
    for component in (f"gpu/{SECOND}", "node", "link/eth0"):
        with pytest.raises(NotPassed, match="PCIe x8"):
            await check.run({"gpu": component})
    with pytest.raises(ActionError, match="no GPU 0000:99:00 on the PCI bus"):
        await check.run({"gpu": "gpu/0000:99:00"})


async def test_links_may_take_a_while_to_train(node: GpuNode) -> None:
    """After a reset the check waits until all is well."""
    node.kit = replace(node.kit, settle_s=60)
    node.nvml.change(1, {(STATE, 4): 0})
    check = asyncio.create_task(GpuLinksCheck(node.kit).run({}))
    await asyncio.wait([check], timeout=0.5)
    assert not check.done()
    node.nvml.change(1, {(STATE, 4): 1})
    assert "18 NVLinks" in (await check).text


async def test_a_node_without_gpus_passes(node: GpuNode) -> None:
    """A runbook may ask every node."""
    for bdf in (FIRST, SECOND):
        (node.device(bdf) / "class").write_text("0x020000\n")
        (node.tree / f"proc/driver/nvidia/gpus/{bdf}.0/information").unlink()
        (node.tree / f"proc/driver/nvidia/gpus/{bdf}.0").rmdir()
    assert (await GpuLinksCheck(node.kit).run({})).text == "this node has no GPUs"
