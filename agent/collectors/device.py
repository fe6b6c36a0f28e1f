"""Facts about devices that the kernel added or removed; a GPU that leaves the PCI bus above all."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.readings import Device, Reading
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Draft, Severity

_NVIDIA = 0x10DE
_DISPLAY = 0x03  # PCI base class: VGA and 3D controllers
_TYPES = {"pci": "pcie", "net": "link", "infiniband": "nic", "block": "disk"}
_NOT_DEVICES = ("lo", "loop", "ram", "zram")  # made by software, always coming and going
_DRIVERS_KEPT = 4096


class DeviceCollector:
    """Reports additions and removals. What is there at start is no fact; nobody says it."""

    name: ClassVar[str] = "device"
    wants: ClassVar[tuple[type, ...]] = (Device,)
    kinds: ClassVar[tuple[str, ...]] = ("device.changed", "gpu.removed", "gpu.returned")

    def __init__(self) -> None:
        self._drivers: dict[str, str] = {}  # sysname -> driver; the removal itself no longer names it
        self._removed_gpus: set[str] = set()

    def feed(self, reading: Reading, now_s: float) -> Iterator[Draft]:  # noqa: ARG002  the port of collectors
        """See agent.collectors.base."""
        if not isinstance(reading, Device):
            return
        if reading.driver and reading.subsystem == "pci" and len(self._drivers) < _DRIVERS_KEPT:
            self._drivers[reading.sysname] = reading.driver
        if reading.change not in ("add", "remove"):
            return
        component = _component(reading)
        if component is None:
            return
        shown = f"uevent: {reading.change} {reading.subsystem} {reading.sysname}"
        driver = self._drivers.pop(reading.sysname, "") if reading.change == "remove" else ""
        if component.startswith("gpu/"):
            if reading.change == "remove":
                self._removed_gpus.add(component)
                yield Draft(
                    kind="gpu.removed",
                    component=component,
                    severity=Severity.FATAL,
                    data={"driver": driver} if driver else {},
                    evidence=shown,
                )
                return
            if component in self._removed_gpus:
                self._removed_gpus.discard(component)
                yield Draft(
                    kind="gpu.returned",
                    component=component,
                    severity=Severity.INFO,
                    data={"by": "udev"},
                    evidence=shown,
                )
                return
            component = f"pcie/{components.name_of(component)}"
        yield Draft(
            kind="device.changed",
            component=component,
            severity=Severity.INFO,
            data={"change": reading.change, "subsystem": reading.subsystem},
            evidence=shown,
        )


def _component(device: Device) -> str | None:
    """None: not of interest, or with a name that no component can have."""
    kind = _TYPES.get(device.subsystem)
    if kind is None or device.sysname == "lo" or (kind == "disk" and device.sysname.startswith(_NOT_DEVICES)):
        return None
    try:
        if kind != "pcie":
            return components.check(f"{kind}/{device.sysname}")
        if device.vendor == _NVIDIA and device.pci_class >> 16 == _DISPLAY:
            return components.gpu(device.sysname)
        return f"pcie/{components.bdf(device.sysname)}"
    except ContractError:
        return None
