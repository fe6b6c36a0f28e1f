"""The services around gpu.reset under a real systemd: stopped, started again, also after the agent was killed."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.actions.device_holders import holders
from agent.actions.units import SystemdUnits
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from agent.host import Host
from tests.agent.gpu_kit import FIRST, H100, Tool
from tests.agent.nvml_kit import plug
from tests.fixtures import nvml_fake
from tests.real import gpu_probe, nspawn

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.skipif(bool(nspawn.missing()), reason=nspawn.missing() or "-"),
]

# They hold a device, as their namesakes do; a file in the container's /dev does for that.
HOLDER = "[Service]\nType=exec\nExecStart=/bin/sh -c 'exec 9>>/dev/nvidia0; exec sleep infinity'\nTimeoutStopSec=5\n"
SLOW = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sleep 20\nTimeoutStopSec=2\n"
ONCE = "[Service]\nType=oneshot\nExecStart=/bin/true\n"
FAILS = "[Service]\nType=exec\nExecStart=/bin/false-that-is-not-there\n"
DCGM, PERSISTENCED, FABRIC = (
    "nvidia-dcgm.service", "nvidia-persistenced.service", "nvidia-fabricmanager.service",
)  # fmt: skip
CDI = "nvidia-cdi-refresh.path"
UNITS = {
    CDI: "[Path]\nPathChanged=/run/cdi\n",
    "nvidia-cdi-refresh.service": ONCE,
    DCGM: HOLDER,
    PERSISTENCED: HOLDER,
    FABRIC: nspawn.SLEEPER,
}
SERVICES = (CDI, "nvidia-cdi-refresh.service", "dcgm-exporter.service", DCGM, PERSISTENCED, FABRIC)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nspawn.Machine]:
    """One container for all tests here."""
    with nspawn.machine(tmp_path_factory.mktemp("box"), UNITS) as machine:
        yield machine


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml_fake.build(tmp_path_factory.mktemp("lib"))


class Node:
    """A GPU on a recorded bus, and this machine's processes; what runs in the container is among them."""

    def __init__(self, folder: Path, library: Path, box: nspawn.Machine) -> None:
        root = folder / "root"
        plug(folder / "recorded", FIRST)
        root.mkdir()
        (root / "proc").symlink_to("/proc")
        (root / "sys").symlink_to(folder / "recorded/sys")
        nvml = nvml_fake.FakeNvml(folder / "nvml", library, gpus=1)
        nvml.set(0, arch=H100)
        self.box = box
        self.smi = Tool(folder / "nvidia-smi")
        self.note = folder / "gpu_driver_note.json"
        self.settings: dict[str, Any] = {
            "root": str(root), "data_dir": str(folder), "bus": box.bus_address, "services": SERVICES,
            "smi": str(self.smi.path), "nvml": nvml.env,
        }  # fmt: skip

    def probe(self, verb: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.real.gpu_probe", verb, json.dumps(self.settings)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


@pytest.fixture
def node(tmp_path: Path, library: Path, box: nspawn.Machine) -> Node:
    box.run("systemctl", "start", CDI, DCGM, PERSISTENCED, FABRIC)
    return Node(tmp_path, library, box)


def running(box: nspawn.Machine) -> list[str]:
    """Those of the services that are active."""
    said = box.run("systemctl", "is-active", *SERVICES).stdout.split()
    return [unit for unit, state in zip(SERVICES, said, strict=True) if state == "active"]


async def test_services_go_and_come_back(node: Node) -> None:
    """All that run are down while the GPU is reset, and up afterwards with new processes; the others stay as they are."""
    before = pids(node.box)
    node.box.run("systemctl", "stop", FABRIC)
    node.smi.does(
        f"nsenter -t {node.box.leader} -a systemctl is-active {' '.join(SERVICES)} > {node.smi.path}.saw; exit 0"
    )
    text = await gpu_probe.main("run", node.settings)
    assert text == f"GPU {FIRST} reset and well again, 3 services stopped and started"
    assert Path(f"{node.smi.path}.saw").read_text().split() == ["inactive"] * len(SERVICES)
    assert running(node.box) == [CDI, DCGM, PERSISTENCED]
    assert not pids(node.box) & before
    assert not node.note.exists()


async def test_a_job_in_the_container_holds_the_gpu(node: Node) -> None:
    """A process of another unit has the device open: refused, and no service was touched."""
    before = pids(node.box)
    unit = "[Service]\nType=exec\nExecStart=/bin/sh -c 'exec 9>>/dev/nvidia0; exec sleep infinity'\n"
    (node.box.root / "run/systemd/system").mkdir(parents=True, exist_ok=True)
    node.box.run(
        "sh", "-c", f'printf %b "{unit}" > /run/systemd/system/ollama.service; systemctl daemon-reload'
    )
    node.box.run("systemctl", "start", "ollama.service")
    try:
        await until(lambda: any(one.owner.unit == "ollama.service" for one in holders(Host())))
        text = await gpu_probe.main("run", node.settings)
        assert text.startswith("Refused: in use by sleep (pid "), text
        assert text.endswith(", ollama.service)")
    finally:
        node.box.run("systemctl", "stop", "ollama.service")
    assert node.smi.calls == []
    assert pids(node.box) == before


async def test_the_agent_is_killed_in_the_middle(node: Node) -> None:
    """SIGKILL while nvidia-smi works: the services are down; the restarted agent starts them, and forgets the note."""
    node.smi.does("exec sleep 60")
    probe = node.probe("run")
    try:
        await until(lambda: node.smi.calls != [] or probe.poll() is not None)
        assert probe.poll() is None, probe.communicate()[0]
        assert running(node.box) == []
    finally:
        tools = children(probe.pid)
        probe.kill()
        probe.wait(60)
        end(tools)
        assert probe.stdout
        probe.stdout.close()
    assert running(node.box) == []
    noted = json.loads(node.note.read_text())
    assert noted["services"] == [CDI, DCGM, PERSISTENCED, FABRIC]
    recovery = node.probe("recover")
    assert recovery.communicate(timeout=100)[0] == "recovered\n"
    assert running(node.box) == [CDI, DCGM, PERSISTENCED, FABRIC]
    assert not node.note.exists()


@pytest.mark.parametrize("step", [0, 2])
async def test_killed_between_two_services(node: Node, step: int) -> None:
    """At whichever service it dies: all that ran run again."""
    unit = (CDI, DCGM, PERSISTENCED, FABRIC)[step]
    node.smi.does("exec sleep 60")
    probe = node.probe("run")
    try:
        await until(lambda: unit not in running(node.box) or probe.poll() is not None, pause_s=0)
        assert probe.poll() is None, probe.communicate()[0]
    finally:
        tools = children(probe.pid)
        probe.kill()
        probe.communicate()
        end(tools)
    assert await gpu_probe.main("recover", node.settings) == "recovered"
    assert running(node.box) == [CDI, DCGM, PERSISTENCED, FABRIC]


async def test_units(box: nspawn.Machine) -> None:
    """What the port promises: of units that fail, are slow, do their work and end, or are not there; and of no bus."""
    for name, text in (("slow.service", SLOW), ("fails.service", FAILS)):
        box.run("sh", "-c", f'printf %b "{text}" > /run/systemd/system/{name}')
    box.run("systemctl", "daemon-reload")
    units, hasty = SystemdUnits(box.bus_address, job_s=60), SystemdUnits(box.bus_address, job_s=0.5)
    await units.start("nvidia-cdi-refresh.service")
    assert not await units.active("nvidia-cdi-refresh.service")
    assert not await units.active("no-such.service")
    with pytest.raises(Refused, match="no-such"):
        await units.start("no-such.service")
    with pytest.raises(ActionError, match=r"starting fails\.service ended with 'failed'"):
        await units.start("fails.service")
    with pytest.raises(TimedOut, match=r"slow\.service was not done within 0\.5 s"):
        await hasty.start("slow.service")
    assert await units.active("slow.service"), "it is starting"
    await units.stop("slow.service")
    assert not await units.active("slow.service")
    await units.stop("slow.service")
    with pytest.raises(Unreachable):
        await SystemdUnits("unix:path=/nonexistent").active("slow.service")


def pids(box: nspawn.Machine) -> set[str]:
    """Main processes of the services that have one."""
    said = box.run("systemctl", "show", "-P", "MainPID", DCGM, PERSISTENCED).stdout.split()
    return set(said) - {"0"}


def children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def end(tools: list[int]) -> None:
    """What the agent's unit does when the agent has died: it kills all of its control group."""
    for pid in tools:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def until(holds: Callable[[], bool], *, pause_s: float = 0.01) -> None:
    end_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end_s
        await asyncio.sleep(pause_s)
