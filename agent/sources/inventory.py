"""What the node is made of, from /proc and /sys: needs neither NVML nor privileges (except for the DMI table)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.samples import Sample
from agent.collectors.samples_node import GpuCard, Inventory, NicCard
from agent.config import IB_ROOT
from agent.contract import components
from agent.contract.accelerators import NVIDIA, Vendor, vendor_of
from agent.contract.errors import ContractError
from agent.host import Host
from agent.options import option
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.poll import Poller

_PCI = "/sys/bus/pci/devices"
_DRIVER = "/proc/driver/nvidia"
_AMDGPU = "/sys/module/amdgpu/version"
_ASCEND = "/usr/local/Ascend/driver/version.info"


@dataclass(frozen=True, slots=True, kw_only=True)
class InventorySourceOptions:
    """What an operator can set."""

    inventory_interval_s: float = option(300.0, "pause between inventories", unit="s", least=0.05)


class InventorySource(Source):
    """Emits Inventory at start and after each pause."""

    name: ClassVar[str] = "inventory"
    needs: ClassVar[str] = (
        "/sys/bus/pci, /sys/class/infiniband, /proc/driver/nvidia; what is not there is left empty"
    )
    options: ClassVar[tuple[type[Any], ...]] = (InventorySourceOptions,)

    def __init__(
        self,
        host: Host,
        options: InventorySourceOptions,
        *,
        ib_root: str = IB_ROOT,
        hang_s: float = 60.0,
    ) -> None:
        self._host = host
        self._ib_root = ib_root
        self._poller = Poller(
            self._poll, what=self.name, period_s=options.inventory_interval_s, hang_s=hang_s
        )

    @classmethod
    def of(cls, setup: SourceSetup) -> Self:
        """See Source."""
        return cls(setup.host, setup.options(InventorySourceOptions), ib_root=setup.config.ib_root)

    async def run(self, emit: Emit) -> None:
        """Follow the inventory until cancelled."""
        await self._poller.run(emit)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self._poller.look(emit)

    async def once(self, emit: Emit) -> None:
        """The inventory now."""
        for sample in self._poll():
            emit(sample)

    def _poll(self) -> list[Sample]:
        host = self._host
        return [
            Inventory(
                kernel=host.kernel(),
                driver=host.nvidia_driver()
                or host.read(_AMDGPU)
                or _fields(host.read(_ASCEND), separator="=").get("Version", ""),
                cpus=_cpus(host.read("/sys/devices/system/cpu/online")),
                memory_mb=_memory_mb(host.read("/proc/meminfo")),
                product=host.read("/sys/class/dmi/id/product_name"),
                bios=host.read("/sys/class/dmi/id/bios_version"),
                gpus=tuple(_gpus(host)),
                nics=tuple(_nic(host, self._ib_root, name) for name in host.listdir(self._ib_root)),
                mono_s=host.mono_s(),
            )
        ]


def _gpus(host: Host) -> list[GpuCard]:
    cards = []
    for address in host.listdir(_PCI):
        base = f"{_PCI}/{address}"
        vendor = vendor_of(_hex(host.read(f"{base}/vendor")), _hex(host.read(f"{base}/class")))
        if vendor is None or (vendor is not NVIDIA and host.path(f"{base}/physfn").exists()):
            continue
        try:
            bdf = components.bdf(address)
        except ContractError:
            continue
        if vendor is not NVIDIA:  # amdgpu has these files, Ascend's driver none
            cards.append(
                GpuCard(
                    bdf=bdf,
                    model=host.read(f"{base}/product_name") or _pci_name(vendor, host.read(f"{base}/device")),
                    uuid=host.read(f"{base}/unique_id"),
                    vbios=host.read(f"{base}/vbios_version"),
                )
            )
            continue
        details = _fields(host.read(f"{_DRIVER}/gpus/{address}/information"))
        cards.append(
            GpuCard(
                bdf=bdf,
                model=details.get("Model", ""),
                uuid=_known(details.get("GPU UUID", "")),
                vbios=_known(details.get("Video BIOS", "")),
                firmware=_known(details.get("GPU Firmware", "")),
            )
        )
    return cards


def _nic(host: Host, ib_root: str, name: str) -> NicCard:
    base = f"{ib_root}/{name}"
    links = host.listdir(f"{base}/device/net")
    slot = _fields(host.read(f"{base}/device/uevent"), separator="=").get("PCI_SLOT_NAME", "")
    try:
        bdf = components.bdf(slot)
    except ContractError:
        bdf = ""
    return NicCard(
        device=name,
        model=host.read(f"{base}/hca_type"),
        board=host.read(f"{base}/board_id"),
        firmware=host.read(f"{base}/fw_ver"),
        guid=host.read(f"{base}/node_guid"),
        bdf=bdf,
        netdevs=",".join(f"{link}:{host.read(f'/sys/class/net/{link}/mtu')}" for link in links),
    )


def _fields(text: str, separator: str = ":") -> dict[str, str]:
    pairs = (line.partition(separator) for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _pci_name(vendor: Vendor, device: str) -> str:
    return f"{vendor.name} {device.removeprefix('0x')}" if device else ""


def _hex(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0


def _known(text: str) -> str:
    """Empty for the values of a GPU that was never opened: `GPU-????????-...` and `??.??.??.??.??`."""
    return "" if "?" in text or text == "N/A" else text


def _cpus(text: str) -> int:
    """How many CPUs `0-95,97` names."""
    number = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            number += int(last) - int(first) + 1 if last.isdigit() else 1
    return number


def _memory_mb(text: str) -> int:
    words = text.partition("\n")[0].split()
    return int(words[1]) // 1024 if len(words) > 1 and words[1].isdigit() else 0
