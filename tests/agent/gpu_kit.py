"""A node with GPUs for the tests of actions: our NVML library, a tree for /proc and /sys, tools that write down how they
were called, and units in memory (tests/real has them with a real systemd).
"""

import asyncio
import contextlib
import dataclasses
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from agent.actions.gpus import GpuKit
from agent.actions.modules import Modules
from agent.actions.nvml_client import NvmlClient
from agent.actions.quiesce import Quiesce
from agent.config import AgentConfig
from agent.contract.errors import ActionError
from agent.host import Host
from agent.nvml.pause import NvmlPause
from agent.shared.power_caps import FILE, PowerCaps
from tests.agent.nvml_kit import plug
from tests.fixtures.nvml_fake import FakeNvml

A100, H100, V100 = 7, 9, 5  # architectures
FIRST, SECOND = "0000:3b:00", "0000:3c:00"
SERVICES = ("nvidia-dcgm.service", "nvidia-persistenced.service", "nvidia-fabricmanager.service")


class MemoryUnits:
    """agent.actions.units.Units without a systemd."""

    def __init__(self, *running: str) -> None:
        self.running = list(running)
        self.calls: list[str] = []
        self.broken: set[str] = set()  # cannot be started

    async def active(self, unit: str) -> bool:
        return unit in self.running

    async def stop(self, unit: str) -> None:
        self.calls.append(f"stop {unit}")
        self.running.remove(unit)

    async def start(self, unit: str) -> None:
        self.calls.append(f"start {unit}")
        if unit in self.broken:
            raise ActionError(f"StartUnit of {unit}: it is failed (failed)")
        if unit not in self.running:
            self.running.append(unit)


class Tool:
    """A stand-in for a vendor's program: it writes down its arguments, and does what a test told it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._calls = path.with_suffix(".calls")
        self.does("exit 0")

    def does(self, script: str) -> None:
        """Lines of shell; `$*` are its arguments."""
        self.path.write_text(f'#!/bin/sh\necho "$*" >> {self._calls}\n{script}\n')
        self.path.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """The arguments of each call."""
        return self._calls.read_text().splitlines() if self._calls.exists() else []


class GpuNode:
    """Two GPUs that answer, on a PCI bus, with three services."""

    def __init__(self, folder: Path, library: Path, *, arch: int = H100, nvswitches: int = 0) -> None:
        self.tree = folder / "root"
        self.nvml = FakeNvml(folder / "nvml", library)
        self.units = MemoryUnits(*SERVICES)
        self.smi, self.dcgmi = Tool(folder / "nvidia-smi"), Tool(folder / "dcgmi")
        self.modprobe, self.rmmod = Tool(folder / "modprobe"), Tool(folder / "rmmod")
        self.pause = NvmlPause()
        self.note = folder / "note.json"
        for index, bdf in enumerate((FIRST, SECOND)):
            plug(self.tree, bdf)
            (self.device(bdf) / "config").write_bytes(b"\xde\x10\x30\x23")
            self.nvml.set(index, arch=arch, power_limit_mw=700_000, power_default_mw=700_000,
                          power_least_mw=200_000, power_most_mw=700_000, persistence=0)  # fmt: skip
        for number in range(nvswitches):
            device = self.tree / f"sys/bus/pci/devices/0000:c{number}:00.0"
            device.mkdir(parents=True)
            (device / "vendor").write_text("0x10de\n")
            (device / "class").write_text("0x068000\n")
        (self.tree / "proc/sys/kernel/random").mkdir(parents=True)
        self.boot("boot-1")
        self.loaded("nvidia 81920 0 - Live 0x0")
        self.kit = self._kit(folder)

    def _kit(self, folder: Path) -> GpuKit:
        host = Host(root=self.tree)
        config = AgentConfig(
            gpu_services=SERVICES, nvidia_smi=str(self.smi.path), dcgmi=str(self.dcgmi.path), data_dir=folder
        )
        modules = Modules(host, modprobe=str(self.modprobe.path), rmmod=str(self.rmmod.path))
        quiesce = Quiesce(
            host, units=self.units, services=SERVICES, modules=modules, load_order=config.driver_load,
            pause=self.pause, note=self.note,
        )  # fmt: skip
        return GpuKit(
            host=host,
            config=config,
            nvml=NvmlClient(env=self.nvml.env),
            units=self.units,
            modules=modules,
            quiesce=quiesce,
            power_caps=PowerCaps(folder / FILE),
            settle_s=0.5,
        )

    def restarted(self) -> GpuKit:
        """The kit of an agent that died and was started again."""
        quiesce = Quiesce(
            self.kit.host, units=self.units, services=SERVICES, modules=self.kit.modules,
            load_order=self.kit.config.driver_load, pause=NvmlPause(), note=self.note,
        )  # fmt: skip
        return dataclasses.replace(self.kit, quiesce=quiesce)

    def device(self, bdf: str) -> Path:
        return self.tree / f"sys/bus/pci/devices/{bdf}.0"

    def boot(self, boot: str) -> None:
        (self.tree / "proc/sys/kernel/random/boot_id").write_text(boot)

    def loaded(self, *lines: str) -> None:
        """What /proc/modules says."""
        (self.tree / "proc/modules").write_text("".join(f"{line}\n" for line in lines))

    @contextlib.contextmanager
    def held(self, device: str, *, pid: int = 4242, cgroup: str = "0::/user.slice") -> Iterator[None]:
        """A process holds a device file meanwhile."""
        process = self.tree / f"proc/{pid}"
        (process / "fd").mkdir(parents=True)
        (process / "fd/3").symlink_to(device)
        (process / "comm").write_text("python\n")
        (process / "cgroup").write_text(cgroup + "\n")
        (process / "status").write_text("State:\tS (sleeping)\nPPid:\t1\n")
        try:
            yield
        finally:
            shutil.rmtree(process)


@contextlib.asynccontextmanager
async def kernel(node: GpuNode, bdf: str, *, returns: bool = True) -> AsyncIterator[list[str]]:
    """What the kernel does when sysfs is written: takes the device away, and finds it again if it `returns`."""
    done: list[str] = []
    device = node.device(bdf)
    files = {name: (device / name).read_bytes() for name in ("vendor", "class", "uevent")}
    rescan = node.tree / "sys/bus/pci/rescan"

    async def work() -> None:
        while True:
            if (device / "remove").exists():
                for path in device.iterdir():
                    path.unlink()
                device.rmdir()
                done.append("remove")
            if rescan.exists():
                rescan.unlink()
                done.append("rescan")
                if returns:
                    device.mkdir(exist_ok=True)
                    for name, content in files.items():
                        (device / name).write_bytes(content)
                    (device / "config").write_bytes(b"\xde\x10\x30\x23")
                    node.nvml.fail(0, 0)
            await asyncio.sleep(0.005)

    task = asyncio.create_task(work())
    try:
        yield done
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
