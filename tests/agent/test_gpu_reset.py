"""gpu.reset: what is refused, what is stopped for it, and that everything comes back whatever happens."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.actions.driver_reload import DriverReload
from agent.actions.gpu_reset import GpuReset
from agent.contract.errors import ActionError, Refused, Unreachable
from agent.shared.tasks import end
from tests.agent.gpu_kit import A100, FIRST, H100, SECOND, SERVICES, V100, GpuNode
from tests.fixtures import nvml_fake

ONE = {"gpu": f"gpu/{FIRST}"}
STOPPED = [f"stop {unit}" for unit in SERVICES]
STARTED = [f"start {unit}" for unit in reversed(SERVICES)]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml_fake.build(tmp_path_factory.mktemp("lib"))


@pytest.fixture
def node(tmp_path: Path, library: Path) -> GpuNode:
    return GpuNode(tmp_path, library)


async def test_a_gpu_is_reset(node: GpuNode) -> None:
    """Services stop in their order, the GPU is reset by its UUID, services start in reverse; the plan says so."""
    assert await GpuReset(node.kit).plan(ONE) == [
        "pause the agent's own NVML source",
        *STOPPED,
        f"reset GPU {FIRST} (alone)",
        f"wait until NVML shows GPU {FIRST} as well",
        *STARTED,
    ]
    assert node.units.calls == node.smi.calls == [], "a plan changes nothing"
    done = await GpuReset(node.kit).run(ONE)
    assert done.text == f"GPU {FIRST} reset and well again, 3 services stopped and started"
    assert node.smi.calls == ["--gpu-reset -i GPU-0"]
    assert node.units.calls == STOPPED + STARTED
    assert not node.note.exists()


async def test_only_what_runs_is_stopped_and_started(node: GpuNode) -> None:
    """A service that an administrator has stopped stays stopped."""
    node.units.running = [SERVICES[1]]
    await GpuReset(node.kit).run(ONE)
    assert node.units.calls == [f"stop {SERVICES[1]}", f"start {SERVICES[1]}"]


@pytest.mark.parametrize(
    ("arch", "nvswitches", "params", "call"),
    [
        (A100, 0, ONE, "--gpu-reset -i GPU-0"),
        (A100, 6, ONE, "--gpu-reset"),
        (H100, 4, ONE, "--gpu-reset -i GPU-0"),
        (H100, 4, {"gpu": f"gpu/{FIRST}/gi5/ci0"}, "--gpu-reset -i GPU-0"),
        (H100, 4, {"gpu": "node"}, "--gpu-reset"),
        (H100, 0, {}, "--gpu-reset"),
    ],
)
async def test_the_topology_decides(
    tmp_path: Path, library: Path, arch: int, nvswitches: int, params: dict[str, str], call: str
) -> None:
    """With NVSwitches A100s are reset all at once, later ones singly."""
    node = GpuNode(tmp_path, library, arch=arch, nvswitches=nvswitches)
    await GpuReset(node.kit).run(params)
    assert node.smi.calls == [call]


async def test_what_cannot_be_reset_is_refused(tmp_path: Path, library: Path) -> None:
    """Old cards, and those that have fallen off the bus, whoever knows of it: NVML, the bus, or nobody any more."""
    old = GpuNode(tmp_path / "v100", library, arch=V100)
    with pytest.raises(Refused, match="older than Ampere"):
        await GpuReset(old.kit).run(ONE)
    node = GpuNode(tmp_path / "h100", library)
    (node.device(SECOND) / "config").write_bytes(b"\xff" * 64)
    with pytest.raises(Refused, match=f"GPU {SECOND} has fallen off the bus: it needs a power cycle"):
        await GpuReset(node.kit).run({"gpu": f"gpu/{SECOND}"})
    with pytest.raises(Refused, match="power cycle"):
        await GpuReset(node.kit).plan({})
    node.nvml.fail(0, nvml_fake.LOST)
    with pytest.raises(Refused, match=f"GPU {FIRST} cannot be reset"):
        await GpuReset(node.kit).run(ONE)
    with pytest.raises(Refused, match="not a GPU"):
        await GpuReset(node.kit).run({"gpu": "nic/mlx5_0"})
    node.nvml.refuse(nvml_fake.DRIVER_NOT_LOADED)
    with pytest.raises(Refused, match="no NVML here"):
        await GpuReset(node.kit).run(ONE)
    assert node.units.calls == node.smi.calls == []


async def test_a_gpu_that_hangs_at_the_driver_is_asked_again_later(node: GpuNode) -> None:
    """Nothing was done when NVML did not answer."""
    node.kit.nvml._deadline_s = 0.3
    node.nvml.hang("nvmlInit")
    with pytest.raises(Unreachable, match="driver does not answer"):
        await GpuReset(node.kit).run(ONE)
    assert node.units.calls == []


async def test_a_held_gpu_is_not_touched(node: GpuNode) -> None:
    """A process with any NVIDIA device open, even on another GPU, stops it; so does one that only NVML knows."""
    job = "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0"
    for device in ("/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"):
        with node.held(device, cgroup=job), pytest.raises(Refused, match=r"python \(pid 4242, job 4711\)"):
            await GpuReset(node.kit).run(ONE)
    with node.held("/dev/null"):
        node.nvml.hold(1, (4242, 100))
        with pytest.raises(Refused, match="in use by python"):
            await GpuReset(node.kit).plan(ONE)
        with pytest.raises(Refused, match="in use by python"):
            await GpuReset(node.kit).run(ONE)
    assert node.units.calls == node.smi.calls == []


async def test_the_services_that_are_stopped_may_hold_it(node: GpuNode) -> None:
    """Their processes are no reason to refuse, but when they are gone nobody may hold a device."""
    with node.held("/dev/nvidia0", cgroup=f"0::/system.slice/{SERVICES[0]}"):
        await GpuReset(node.kit).plan(ONE)
        running = asyncio.create_task(GpuReset(node.kit).run(ONE))
        await until(lambda: len(node.units.calls) == 3)
        assert node.smi.calls == [], "it waits for the device to be closed"
    await running
    assert len(node.smi.calls) == 1


async def test_a_process_that_comes_in_between_stops_it(
    node: GpuNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody opens a device while the services stop: refused, and the services run again."""
    monkeypatch.setattr("agent.actions.quiesce._CLOSE_S", 0.2)
    stop = node.units.stop
    with contextlib.ExitStack() as opened:

        async def stop_and_open(unit: str) -> None:
            await stop(unit)
            if unit == SERVICES[-1]:
                opened.enter_context(node.held("/dev/nvidia0"))

        monkeypatch.setattr(node.units, "stop", stop_and_open)
        with pytest.raises(Refused, match="in use by python"):
            await GpuReset(node.kit).run(ONE)
    assert node.smi.calls == []
    assert node.units.calls == STOPPED + STARTED


@pytest.mark.parametrize(
    ("script", "error", "says"),
    [
        ("echo 'Unable to reset GPU'; exit 3", Refused, "refuses the reset: Unable to reset GPU"),
        ("exit 15", ActionError, "fallen off the bus"),
        ("echo 'GPU Reset failed' >&2; exit 255", ActionError, "the reset failed: GPU Reset failed"),
    ],
)
async def test_a_reset_that_fails(node: GpuNode, script: str, error: type[Exception], says: str) -> None:
    """What nvidia-smi says is told, and the services run again."""
    node.smi.does(script)
    with pytest.raises(error, match=says) as caught:
        await GpuReset(node.kit).run(ONE)
    assert type(caught.value) is error
    assert node.units.calls == STOPPED + STARTED
    assert not node.note.exists()


async def test_a_gpu_that_does_not_come_back(node: GpuNode) -> None:
    """NVML is asked afterwards: a reset that nvidia-smi calls good is not believed by itself."""
    node.smi.does(f"echo {nvml_fake.LOST} > {node.nvml.folder}/gpu0/error")
    with pytest.raises(ActionError, match="do not answer NVML now"):
        await GpuReset(node.kit).run(ONE)
    assert node.units.calls == STOPPED + STARTED


async def test_a_reset_that_changes_nothing_is_no_success(node: GpuNode) -> None:
    """The driver still wants one; a GPU that NVML reports as needing a reset may be reset."""
    node.nvml.fields(0, {(230, 0): 1})
    with pytest.raises(ActionError, match="still wants a reset"):
        await GpuReset(node.kit).run(ONE)
    node.smi.does(f"printf '230 0 0\\n' > {node.nvml.folder}/gpu0/fields")
    await GpuReset(node.kit).run(ONE)


async def test_the_display_module_goes_and_comes(node: GpuNode) -> None:
    """nvidia_drm holds every GPU: it is unloaded, and loaded again."""
    drm = "nvidia_drm 73728 0 - Live 0x0"
    node.loaded("nvidia 81920 1 nvidia_drm, Live 0x0", drm)
    (node.tree / "bare").write_text("nvidia 81920 0 - Live 0x0\n")
    (node.tree / "full").write_text(f"nvidia 81920 1 nvidia_drm, Live 0x0\n{drm}\n")
    node.rmmod.does(f"cp {node.tree}/bare {node.tree}/proc/modules")
    node.modprobe.does(f"cp {node.tree}/full {node.tree}/proc/modules")
    await GpuReset(node.kit).run(ONE)
    assert (node.rmmod.calls, node.modprobe.calls) == (["nvidia_drm"], ["nvidia_drm"])
    node.loaded("nvidia_drm 73728 2 - Live 0x0")  # a display
    with pytest.raises(Refused, match=r"nvidia_drm is in use \(2 open files or devices\)"):
        await GpuReset(node.kit).run(ONE)
    assert len(node.smi.calls) == 1


async def test_cancelled_in_the_middle(node: GpuNode) -> None:
    """The time limit ends the tool; the services run again before the action has ended."""
    node.smi.does("exec sleep 60")
    running = asyncio.create_task(GpuReset(node.kit).run(ONE))
    await until(lambda: node.smi.calls != [])
    assert node.note.exists(), "what is stopped stands on disk"
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert node.units.calls == STOPPED + STARTED
    assert not node.note.exists()


async def test_cancelled_twice_while_it_undoes_its_work(
    node: GpuNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Undoing its work cannot be cut short."""
    start = node.units.start

    async def slowly(unit: str) -> None:
        await asyncio.sleep(0.1)
        await start(unit)

    monkeypatch.setattr(node.units, "start", slowly)
    running = asyncio.create_task(GpuReset(node.kit).run(ONE))
    await until(lambda: node.smi.calls != [] and STARTED[0] in node.units.calls)
    for _ in range(3):
        running.cancel()
        await asyncio.sleep(0.02)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert node.units.calls == STOPPED + STARTED


async def test_a_service_that_does_not_start_again(node: GpuNode) -> None:
    """It is a failure that names it; it stays on the note, and the next reset or restart of the agent tries again."""
    node.units.broken = {SERVICES[1]}
    with pytest.raises(ActionError, match=f"{SERVICES[1]} was stopped and could not be started again"):
        await GpuReset(node.kit).run(ONE)
    assert [unit for unit in SERVICES if unit not in node.units.running] == [SERVICES[1]]
    node.units.broken.clear()
    await GpuReset(node.kit).run(ONE)
    assert set(node.units.running) == set(SERVICES)
    assert not node.note.exists()


async def test_both_troubles_are_told(node: GpuNode) -> None:
    """The reset failed, and a service did not come back."""
    node.units.broken = {SERVICES[0]}
    node.smi.does("exit 1")
    with pytest.raises(
        ActionError, match=r"the reset failed: exit status 1; nvidia-dcgm\.service was stopped"
    ):
        await GpuReset(node.kit).run(ONE)


async def test_the_agent_dies_in_the_middle(node: GpuNode) -> None:
    """The restarted agent starts what its former life stopped; after a reboot systemd has done that."""
    node.smi.does("exec sleep 60")
    running = asyncio.create_task(GpuReset(node.kit).run(ONE))
    await until(lambda: node.smi.calls != [])
    note = node.note.read_text()
    running.cancel()  # only to end the tool: a dead agent would not have undone what it did
    await asyncio.gather(running, return_exceptions=True)

    for boot, started in (("boot-1", STARTED), ("boot-2", [])):
        node.units.running, node.units.calls = [], []
        node.note.write_text(note)
        node.boot(boot)
        await GpuReset(node.restarted()).recover(ONE)
        assert node.units.calls == started
    node.note.write_text("{")
    await GpuReset(node.restarted()).recover(ONE)


async def test_the_agents_own_nvml_lets_go(node: GpuNode) -> None:
    """The source's child is gone while the GPU is reset, and back afterwards."""
    at_work: list[int] = []

    async def source() -> None:
        at_work.append(1)
        try:
            await asyncio.sleep(60)
        finally:
            at_work.clear()

    node.smi.does("sleep 0.2")
    task = asyncio.create_task(node.pause.run_between_pauses(source))
    await until(lambda: at_work != [])
    running = asyncio.create_task(GpuReset(node.kit).run(ONE))
    try:
        await until(lambda: node.smi.calls != [])
        assert at_work == []
        await running
        await until(lambda: at_work != [])
    finally:
        await end(running, task)


async def test_one_at_a_time(node: GpuNode) -> None:
    """A second action on the driver comes again later; it would not know whose services are stopped."""
    node.smi.does(f"while [ ! -e {node.tree}/go ]; do sleep 0.02; done")
    running = asyncio.create_task(GpuReset(node.kit).run(ONE))
    await until(lambda: node.smi.calls != [])
    for second in (GpuReset(node.kit), DriverReload(node.kit)):
        with pytest.raises(Unreachable, match="another action works on this node's GPU driver"):
            await second.run(ONE)
    (node.tree / "go").touch()
    await running
    assert len(node.smi.calls) == 1


async def test_without_a_place_to_write_nothing_is_stopped(node: GpuNode) -> None:
    """What is stopped and not written down would be forgotten when the agent dies."""
    node.note.with_name("note.json.part").mkdir()
    with pytest.raises(Refused, match="cannot be written"):
        await GpuReset(node.kit).run(ONE)
    assert node.units.calls == []


async def test_no_tool(node: GpuNode) -> None:
    """A path that is wrong is an operator's matter; the services run again."""
    node.smi.path.unlink()
    with pytest.raises(Refused, match="cannot be started: No such file"):
        await GpuReset(node.kit).run(ONE)
    assert node.units.calls == STOPPED + STARTED


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)
