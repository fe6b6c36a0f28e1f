"""Kernel uevents of devices that appear and vanish. Directly from the kernel: works where no udevd runs."""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar, Self

import pyudev

from agent.collectors.samples import Device
from agent.host import Host
from agent.sources.base import Emit, Source, SourceSetup

SUBSYSTEMS = ("pci", "net", "infiniband", "block")
_BUFFER_BYTES = 4 * 1024 * 1024  # a reset of eight GPUs or a rescan of the bus is a burst of uevents


class UdevSource(Source):
    """Emits Device. A network interface's link state is not a uevent: see netlink."""

    name: ClassVar[str] = "udev"
    needs: ClassVar[str] = "libudev; a kernel uevent socket"

    def __init__(self, host: Host, *, subsystems: tuple[str, ...] = SUBSYSTEMS) -> None:
        self._host = host
        self._subsystems = subsystems
        # Reads what has come; while it is followed.
        self._drain: Callable[[], None] | None = None

    @classmethod
    def of(cls, setup: SourceSetup) -> Self:
        """See Source."""
        return cls(setup.host)

    async def run(self, emit: Emit) -> None:
        """Follow uevents until cancelled."""
        if not self._host.live:
            raise OSError("udev: a recorded machine has no uevents")
        try:
            context = pyudev.Context()
        except ImportError as error:  # pyudev loads the library here
            raise OSError(f"udev: {error}: install libudev1") from error
        monitor = pyudev.Monitor.from_netlink(context, source="kernel")
        for subsystem in self._subsystems:
            monitor.filter_by(subsystem)
        monitor.set_receive_buffer_size(_BUFFER_BYTES)
        monitor.start()
        loop = asyncio.get_running_loop()
        broken: asyncio.Future[None] = loop.create_future()
        fd: int = monitor.fileno()

        def readable() -> None:
            try:
                while (device := monitor.poll(timeout=0)) is not None:
                    emit(_sample(device, self._host.mono_s()))
            except OSError as error:  # ENOBUFS too: uevents were lost, and that the source broke shows it
                loop.remove_reader(fd)
                if not broken.done():
                    broken.set_exception(error)

        loop.add_reader(fd, readable)
        self._drain = readable
        try:
            await broken
        finally:
            self._drain = None
            loop.remove_reader(fd)

    async def look(self, emit: Emit) -> None:  # noqa: ARG002  uevents are changes: they go their usual way
        """See Source: what the kernel has sent up to now is read."""
        if self._drain is None:
            raise OSError("udev: the socket is not open")
        self._drain()

    async def once(self, emit: Emit) -> None:
        """Nothing: uevents are changes, not a state."""


def _sample(device: Any, mono_s: float) -> Device:
    properties = device.properties
    vendor = str(properties.get("PCI_ID", "")).partition(":")[0]
    return Device(
        change=str(device.action),
        subsystem=str(device.subsystem),
        sysname=str(device.sys_name),
        pci_class=_hex(str(properties.get("PCI_CLASS", ""))),
        vendor=_hex(vendor),
        driver=str(properties.get("DRIVER", "")),
        mono_s=mono_s,
    )


def _hex(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0
