"""Facts about devices that the kernel added or removed, above all a GPU that leaves the PCI bus."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.samples import Device, Looked, Sample
from agent.contract import components
from agent.contract.accelerators import vendor_of
from agent.contract.errors import ContractError
from agent.contract.messages import Severity, UnsentEvent

_TYPES = {"pci": "pcie", "net": "link", "infiniband": "nic", "block": "disk"}
_NOT_DISKS = ("loop", "ram", "zram")  # made by software, always coming and going
_DRIVERS_KEPT = 4096


class DeviceCollector(Collector):
    """Reports additions and removals. What is there at start is not reported: there is no uevent for it."""

    name: ClassVar[str] = "device"
    wants: ClassVar[tuple[type, ...]] = (Device, Looked)
    kinds: ClassVar[tuple[str, ...]] = ("device.changed", "gpu.removed", "gpu.returned")

    def __init__(self) -> None:
        # sysname → driver; the uevent of a removal no longer names it.
        self._drivers: dict[str, str] = {}
        # Component → what was reported.
        self._removed_gpus: dict[str, UnsentEvent] = {}

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if not isinstance(sample, Device):
            return
        if sample.driver and sample.subsystem == "pci" and len(self._drivers) < _DRIVERS_KEPT:
            self._drivers[sample.sysname] = sample.driver
        if sample.change not in ("add", "remove"):
            return
        component = _component(sample)
        if component is None:
            return
        shown = f"uevent: {sample.change} {sample.subsystem} {sample.sysname}"
        driver = self._drivers.pop(sample.sysname, "") if sample.change == "remove" else ""
        if component.startswith("gpu/"):
            if sample.change == "remove":
                self._removed_gpus[component] = _removed(component, driver, shown)
                yield self._removed_gpus[component]
                return
            if component in self._removed_gpus:
                del self._removed_gpus[component]
                yield UnsentEvent(
                    kind="gpu.returned",
                    component=component,
                    severity=Severity.INFO,
                    data={"by": "udev"},
                    evidence=shown,
                )
                return
            component = f"pcie/{components.name_of(component)}"
        yield UnsentEvent(
            kind="device.changed",
            component=component,
            severity=Severity.INFO,
            data={"change": sample.change, "subsystem": sample.subsystem},
            evidence=shown,
        )

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector: GPUs that were removed and not added again. NVML tells that one answers."""
        if isinstance(sample, Looked) and sample.source == "udev":
            yield from self._removed_gpus.values()


def _removed(component: str, driver: str, shown: str) -> UnsentEvent:
    return UnsentEvent(
        kind="gpu.removed",
        component=component,
        severity=Severity.FATAL,
        data={"driver": driver} if driver else {},
        evidence=shown,
    )


def _component(device: Device) -> str | None:
    """None: of no interest, or with a name that no component can have."""
    kind = _TYPES.get(device.subsystem)
    if kind is None or device.sysname == "lo" or (kind == "disk" and device.sysname.startswith(_NOT_DISKS)):
        return None
    try:
        if kind != "pcie":
            return components.check(f"{kind}/{device.sysname}")
        if vendor_of(device.vendor, device.pci_class) is not None:
            return components.gpu(device.sysname)
        return f"pcie/{components.bdf(device.sysname)}"
    except ContractError:
        return None
