"""What the node is made of, from /proc and /sys: needs neither NVML nor rights (but for the DMI table)."""

from typing import ClassVar

from agent.collectors.readings import Reading
from agent.collectors.readings_node import GpuCard, Inventory, NicCard
from agent.contract import components
from agent.contract.errors import ContractError
from agent.host import Host
from agent.sources.base import Emit
from agent.sources.poll import Poller

_PCI = "/sys/bus/pci/devices"
_DRIVER = "/proc/driver/nvidia"
_NVIDIA = "0x10de"
_DISPLAY = "0x03"  # PCI base class: VGA and 3D controllers


class InventorySource:
    """Emits Inventory at start and every `period_s` seconds."""

    name: ClassVar[str] = "inventory"
    needs: ClassVar[str] = (
        "/sys/bus/pci, /sys/class/infiniband, /proc/driver/nvidia; what is not there is left empty"
    )

    def __init__(
        self,
        host: Host,
        *,
        ib_root: str = "/sys/class/infiniband",
        period_s: float = 300.0,
        hang_s: float = 60.0,
    ) -> None:
        self._host = host
        self._ib_root = ib_root
        self._poller = Poller(self._poll, what=self.name, period_s=period_s, hang_s=hang_s)

    async def run(self, emit: Emit) -> None:
        """Follow the inventory until cancelled."""
        await self._poller.run(emit)

    async def once(self, emit: Emit) -> None:
        """The inventory now."""
        for reading in self._poll():
            emit(reading)

    def _poll(self) -> list[Reading]:
        host = self._host
        return [
            Inventory(
                kernel=host.kernel(),
                driver=_nvidia_driver(host),
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
        if host.read(f"{base}/vendor") != _NVIDIA or not host.read(f"{base}/class").startswith(_DISPLAY):
            continue
        try:
            bdf = components.bdf(address)
        except ContractError:
            continue
        told = _fields(host.read(f"{_DRIVER}/gpus/{address}/information"))
        cards.append(
            GpuCard(
                bdf=bdf,
                model=told.get("Model", ""),
                uuid=_known(told.get("GPU UUID", "")),
                vbios=_known(told.get("Video BIOS", "")),
                firmware=_known(told.get("GPU Firmware", "")),
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


def _known(text: str) -> str:
    """A GPU that was never opened says `GPU-????????-...` and `??.??.??.??.??`."""
    return "" if "?" in text or text == "N/A" else text


def _nvidia_driver(host: Host) -> str:
    for word in host.read(f"{_DRIVER}/version").partition("\n")[0].split():
        if word[:1].isdigit() and "." in word:
            return word
    return ""


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
