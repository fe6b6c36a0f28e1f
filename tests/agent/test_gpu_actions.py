"""Power limit, persistence, PCI rescan, fabric manager and driver reload on a node with our own NVML."""

import asyncio
import os
from pathlib import Path

import pytest

from agent.actions.driver_reload import DriverReload
from agent.actions.fabricmanager_restart import FabricManagerRestart
from agent.actions.gpu_persistence import GpuPersistence
from agent.actions.gpu_power_limit import GpuPowerLimit
from agent.actions.gpu_power_restore import GpuPowerRestore
from agent.actions.nvml_client import NvmlClient
from agent.actions.pci_rescan import PciRescan
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from tests.agent.gpu_kit import FIRST, SECOND, SERVICES, GpuNode, kernel
from tests.fixtures import nvml_fake

ONE = {"gpu": f"gpu/{FIRST}"}
FABRIC_MANAGER = "nvidia-fabricmanager.service"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml_fake.build(tmp_path_factory.mktemp("lib"))


@pytest.fixture
def node(tmp_path: Path, library: Path) -> GpuNode:
    return GpuNode(tmp_path, library, nvswitches=4)


def told(node: GpuNode, index: int, name: str) -> str:
    return (node.nvml.folder / f"gpu{index}" / name).read_text().strip()


async def test_the_library_is_where_the_agent_itself_has_it(
    node: GpuNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node whose driver stands in a folder of its own (LD_LIBRARY_PATH, as on GKE): who sees the GPUs can act on them."""
    for name, value in node.nvml.env.items():
        monkeypatch.setenv(name, value)
    assert [card.bdf for card in await NvmlClient().gpus()] == [FIRST, SECOND]


async def test_a_power_limit_is_set(node: GpuNode) -> None:
    """Percent of the card's default, on that card alone, read back."""
    action = GpuPowerLimit(node.kit)
    params = ONE | {"percent": 80.0}
    assert await action.plan(params) == [f"set the power limit of GPU {FIRST} to 560 W (now 700 W)"]
    assert told(node, 0, "power_limit_mw") == "700000"
    done = await action.run(params)
    assert done.text == f"the power limit of GPU {FIRST} is 560 W, was 700 W"
    assert (told(node, 0, "power_limit_mw"), told(node, 1, "power_limit_mw")) == ("560000", "700000")


async def test_the_power_limit_of_all_gpus_is_set_or_of_none(node: GpuNode) -> None:
    """`node` names all of them; one that cannot take it is known before the first is set."""
    action = GpuPowerLimit(node.kit)
    params: dict[str, str | float] = {"gpu": "node", "percent": 80.0}
    assert len(await action.plan(params)) == 2
    node.nvml.set(1, power_least_mw=600_000)
    with pytest.raises(Refused, match=SECOND):
        await action.run(params)
    assert told(node, 0, "power_limit_mw") == "700000"
    node.nvml.set(1, power_least_mw=200_000)
    done = await action.run(params)
    assert f"GPU {FIRST} is 560 W" in done.text
    assert f"GPU {SECOND} is 560 W" in done.text
    assert (told(node, 0, "power_limit_mw"), told(node, 1, "power_limit_mw")) == ("560000", "560000")


async def test_a_lowered_limit_is_remembered_until_it_is_restored(node: GpuNode) -> None:
    """The first limit counts, however often it is lowered; the note outlives the agent."""
    node.nvml.set(0, power_limit_mw=650_000)
    lower, restore = GpuPowerLimit(node.kit), GpuPowerRestore(node.kit)
    assert await restore.plan({}) == ["nothing: no power limit is lowered by us"]
    for percent in (70.0, 50.0):
        await lower.run(ONE | {"percent": percent})
    again = GpuPowerRestore(node.restarted())
    (line,) = await again.plan(ONE)
    assert line.startswith(f"set the power limit of GPU {FIRST} back from 350 W to 650 W")
    assert (await again.run({})).text == f"the power limit of GPU {FIRST} is 650 W again"
    assert told(node, 0, "power_limit_mw") == "650000"
    assert (await again.run({})).text == "no power limit was lowered by us"


async def test_a_limit_that_somebody_changed_since_is_left(node: GpuNode) -> None:
    """Law 3; and what could not be restored is still remembered."""
    lower, restore = GpuPowerLimit(node.kit), GpuPowerRestore(node.kit)
    await lower.run(ONE | {"percent": 70.0})
    node.nvml.set(0, refuses=0)  # says yes and does nothing
    with pytest.raises(ActionError, match="could not be restored"):
        await restore.run({})
    assert len(node.kit.power_caps.read()) == 1
    node.nvml.set(0, power_limit_mw=600_000)
    assert "changed by somebody else" in (await restore.run({})).text
    assert (told(node, 0, "power_limit_mw"), node.kit.power_caps.read()) == ("600000", [])


async def test_a_limit_whose_former_value_cannot_be_noted_is_not_lowered(node: GpuNode) -> None:
    """It could not be restored."""
    node.kit.power_caps._path = Path("/proc/nowhere/power_caps.json")
    with pytest.raises(Unreachable, match="nothing was done"):
        await GpuPowerLimit(node.kit).run(ONE | {"percent": 70.0})
    assert told(node, 0, "power_limit_mw") == "700000"


@pytest.mark.parametrize("percent", [39.0, 101.0, float("nan")])
async def test_a_power_limit_has_limits(node: GpuNode, percent: float) -> None:
    """40 to 100 percent, whatever the card would take."""
    with pytest.raises(Refused, match="percent must be 40 to 100"):
        await GpuPowerLimit(node.kit).run(ONE | {"percent": percent})


async def test_the_card_is_asked_what_it_allows(node: GpuNode) -> None:
    """Its own span counts; NVML's no is a refusal; what it does not keep is a failure; a lost card is not set."""
    action, params = GpuPowerLimit(node.kit), ONE | {"percent": 50.0}
    node.nvml.set(0, power_least_mw=400_000)
    with pytest.raises(Refused, match="50 % is 350 W; GPU 0000:3b:00 allows 400 W to 700 W"):
        await action.run(params)
    node.nvml.set(0, power_least_mw=100_000, refuses=4)
    with pytest.raises(Refused, match="the agent has no permission"):
        await action.run(params)
    node.nvml.set(0, refuses=0)  # says yes and does nothing
    with pytest.raises(ActionError, match="is 700 W, not 350 W as set"):
        await action.run(params)
    node.nvml.set(0, refuses=999)
    with pytest.raises(ActionError, match="NVML says") as caught:
        await action.run(params)
    assert type(caught.value) is ActionError
    node.nvml.fail(0, nvml_fake.RESET_REQUIRED)
    with pytest.raises(Refused):
        await action.run(params)
    with pytest.raises(Refused, match="NVML does not show GPU 0000:99:00"):
        await action.run({"gpu": "gpu/0000:99:00", "percent": 50.0})


async def test_an_order_that_hangs_is_unknown(node: GpuNode) -> None:
    """Nobody knows whether the limit was set."""
    node.kit.nvml._deadline_s = 0.4
    node.nvml.hang("nvmlDeviceSetPowerManagementLimit")
    with pytest.raises(TimedOut):
        await GpuPowerLimit(node.kit).run(ONE | {"percent": 50.0})


async def test_persistence_mode(node: GpuNode) -> None:
    """Switched on where it is off; one GPU or all."""
    action = GpuPersistence(node.kit)
    assert await action.plan(ONE) == [f"switch persistence mode on for GPU {FIRST}"]
    assert (await action.run(ONE)).text == f"persistence mode on for GPU {FIRST}"
    assert (told(node, 0, "persistence"), told(node, 1, "persistence")) == ("1", "0")
    assert (await action.run({})).text == f"persistence mode on for GPU {SECOND}"
    assert (await action.run({})).text == "persistence mode was on already"
    node.nvml.set(1, persistence=0, refuses=0)
    with pytest.raises(ActionError, match=f"still off for GPU {SECOND}"):
        await action.run({})


async def test_a_lost_gpu_is_found_again(node: GpuNode) -> None:
    """What is left of it is removed, the buses are scanned, it answers; the services were stopped meanwhile."""
    action = PciRescan(node.kit)
    node.nvml.fail(0, nvml_fake.LOST)
    plan = await action.plan(ONE)
    assert plan[4:7] == [
        f"remove what is left of {FIRST} from the PCI bus",
        "let the kernel scan the PCI buses",
        f"wait until {FIRST} is back and answers",
    ]
    async with kernel(node, FIRST) as done:
        assert (await action.run(ONE)).text == f"GPU {FIRST} is back on the PCI bus and answers"
        assert done == ["remove", "rescan"]
    assert node.units.calls == [f"stop {unit}" for unit in SERVICES] + [
        f"start {unit}" for unit in reversed(SERVICES)
    ]


async def test_what_nvml_has_read_before_is_no_answer(node: GpuNode) -> None:
    """A GPU of which only its address and its UUID are told has not come back."""
    node.nvml.mute(0, nvml_fake.UNKNOWN)
    assert [gpu.lost for gpu in await node.kit.nvml.gpus()][:2] == ["unknown_error", ""]
    assert [gpu.lost for gpu in await node.kit.nvml.links()][:2] == ["unknown_error", ""]


async def test_a_gpu_that_left_the_bus_by_itself(node: GpuNode) -> None:
    """There is nothing to remove: the buses are scanned."""
    node.nvml.fail(0, nvml_fake.LOST)
    async with kernel(node, FIRST) as done:
        for path in node.device(FIRST).iterdir():
            path.unlink()
        node.device(FIRST).rmdir()
        await PciRescan(node.kit).run(ONE)
        assert done == ["rescan"]


async def test_a_gpu_that_does_not_come_back(node: GpuNode) -> None:
    """Said after a while, and the services run again."""
    node.nvml.fail(0, nvml_fake.LOST)
    async with kernel(node, FIRST, returns=False):
        with pytest.raises(ActionError, match="did not come back to the PCI bus"):
            await PciRescan(node.kit).run(ONE)
    assert set(node.units.running) == set(SERVICES)


async def test_what_is_never_removed(node: GpuNode) -> None:
    """A GPU that answers, a device that is no GPU, a GPU that a process holds (the kernel would wait for it)."""
    action = PciRescan(node.kit)
    with pytest.raises(Refused, match="answers: there is nothing to look for"):
        await action.run(ONE)
    with pytest.raises(Refused, match="not an NVIDIA GPU"):
        await action.run({"gpu": "gpu/0000:c0:00"})
    node.nvml.fail(0, nvml_fake.LOST)
    with node.held("/dev/nvidia0"), pytest.raises(Refused, match="in use by python"):
        await action.run(ONE)
    information = node.tree / f"proc/driver/nvidia/gpus/{FIRST}.0/information"
    information.write_text("Model: \t\t NVIDIA H100\nDevice Minor: \t 0\n")
    with node.held("/dev/nvidia0"), pytest.raises(Refused, match="in use by python"):
        await action.run(ONE)
    async with kernel(node, FIRST):
        with node.held("/dev/nvidia1"):  # another GPU's job goes on
            await action.run(ONE)


async def test_a_kernel_that_does_not_answer(node: GpuNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that hangs is not waited for without end."""
    monkeypatch.setattr("agent.actions.pci_rescan.WRITE_S", 0.1)
    node.nvml.fail(0, nvml_fake.LOST)
    os.mkfifo(node.device(FIRST) / "remove")  # nobody reads: open for writing waits
    with pytest.raises(TimedOut, match="did not return from writing"):
        await PciRescan(node.kit).run(ONE)
    os.close(os.open(node.device(FIRST) / "remove", os.O_RDONLY | os.O_NONBLOCK))
    assert set(node.units.running) == set(SERVICES)


async def test_the_fabric_manager_is_restarted(node: GpuNode) -> None:
    """Stopped, started, and waited for until every GPU's fabric state is completed."""
    action = FabricManagerRestart(node.kit)
    for index in (0, 1):
        node.nvml.set(index, fabric="2 0 0")
    assert await action.plan({}) == [
        f"stop {FABRIC_MANAGER}",
        f"start {FABRIC_MANAGER}",
        "wait until the fabric state of every GPU is completed",
    ]
    with pytest.raises(ActionError, match=f"the fabric state is not completed: {FIRST}, {SECOND}"):
        await action.run({})
    for index in (0, 1):
        node.nvml.set(index, fabric="3 0 0")
    assert (await action.run({})).text == f"{FABRIC_MANAGER} restarted; 2 GPUs are in the fabric"
    node.nvml.set(1, fabric="3 999 0")
    with pytest.raises(ActionError, match=f"could not register with the fabric: {SECOND}"):
        await action.run({})
    node.units.running.remove(FABRIC_MANAGER)
    node.units.calls.clear()
    await action.recover({})
    assert node.units.calls == [f"start {FABRIC_MANAGER}"]


async def test_a_restarted_fabric_manager_is_no_refusal(node: GpuNode) -> None:
    """It was stopped and started, and NVML cannot say what came of it: a failure, since something was done."""
    node.nvml.refuse(nvml_fake.DRIVER_NOT_LOADED)
    with pytest.raises(ActionError, match="there is no NVML here") as caught:
        await FabricManagerRestart(node.kit).run({})
    assert type(caught.value) is ActionError
    assert node.units.calls == [f"stop {FABRIC_MANAGER}", f"start {FABRIC_MANAGER}"]


async def test_no_fabric_manager_without_nvswitches(tmp_path: Path, library: Path) -> None:
    """Where there are none it has nothing to do."""
    with pytest.raises(Refused, match="no NVSwitch"):
        await FabricManagerRestart(GpuNode(tmp_path, library).kit).run({})


async def test_the_fabric_manager_is_started_whatever_happens(
    node: GpuNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled while it stops: it is started before the action ends."""
    stop = node.units.stop

    async def slowly(unit: str) -> None:
        await stop(unit)
        await asyncio.Event().wait()

    monkeypatch.setattr(node.units, "stop", slowly)
    running = asyncio.create_task(FabricManagerRestart(node.kit).run({}))
    while not node.units.calls:
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert FABRIC_MANAGER in node.units.running


async def test_the_driver_is_not_unloaded_under_a_process(node: GpuNode) -> None:
    """tests/real has the reload of real modules; here: who holds a GPU, and a driver that is built in."""
    with node.held("/dev/nvidia0"):
        with pytest.raises(Refused, match="in use by python"):
            await DriverReload(node.kit).run({})
        with pytest.raises(Refused, match="in use by python"):
            await DriverReload(node.kit).plan({})
    node.loaded()
    (node.tree / "sys/module/nvidia").mkdir(parents=True)
    with pytest.raises(Refused, match="built into this kernel"):
        await DriverReload(node.kit).run({})
    assert node.rmmod.calls == node.units.calls == []
