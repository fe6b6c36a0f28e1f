"""The ports, interfaces and PCIe links of a machine's network cards as sysfs shows them now. Reads only."""

import re
from dataclasses import dataclass

from agent.actions.network_cards import NetworkCards
from agent.collectors.ib_speed import ib_speed
from agent.host import Host

_PCI = "/sys/bus/pci/devices"
_NET = "/sys/class/net"
_SPEED = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?) GT/s")  # `16.0 GT/s PCIe`
_IFF_UP = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port of an InfiniBand or RoCE device."""

    device: str
    number: str
    # hca_type, e.g. MT4129
    model: str
    # InfiniBand or Ethernet
    layer: str
    # ACTIVE, INIT, DOWN, ...
    state: str
    # LinkUp, Polling, Disabled, ...
    physical: str
    # 0: unknown
    gbit_per_s: float

    @property
    def name(self) -> str:
        """`mlx5_0.1`."""
        return f"{self.device}.{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CardInterface:
    """A network interface of a card."""

    name: str
    # Set up by the administrator.
    up: bool
    carrier: bool
    # 0: unknown
    mbit_per_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The PCIe link of an InfiniBand or RoCE device; 0: unknown."""

    device: str
    model: str
    lanes: int
    # The most that card and slot can have together.
    lanes_max: int
    gt_per_s: float
    gt_per_s_max: float


class PortReader:
    """Reads the machine. `ib_root`: folder of the InfiniBand devices."""

    def __init__(self, host: Host, ib_root: str) -> None:
        self._host = host
        self._ib_root = ib_root
        self.cards = NetworkCards(host, ib_root)

    def ports(self) -> list[Port]:
        """All ports."""
        return [
            self._port(device, number)
            for device in self._host.listdir(self._ib_root)
            for number in self._host.listdir(f"{self._ib_root}/{device}/ports")
        ]

    def interfaces(self) -> list[CardInterface]:
        """The interfaces that have a device, and so a cable."""
        return [
            self.interface(name)
            for name in self._host.listdir(_NET)
            if self._host.path(f"{_NET}/{name}/device").exists()
        ]

    def interface(self, name: str) -> CardInterface:
        """One interface; without carrier when there is none of this name."""
        base = f"{_NET}/{name}"
        speed = self._host.read(f"{base}/speed")  # -1, or EINVAL, without a link
        return CardInterface(
            name=name,
            up=bool(_integer(self._host.read(f"{base}/flags")) & _IFF_UP),
            carrier=self._host.read(f"{base}/carrier") == "1",
            mbit_per_s=max(0, _integer(speed)),
        )

    def slots(self) -> list[Slot]:
        """The PCIe links of the InfiniBand and RoCE devices."""
        return [self._slot(device) for device in self._host.listdir(self._ib_root)]

    def _port(self, device: str, number: str) -> Port:
        base = f"{self._ib_root}/{device}/ports/{number}"
        speed = ib_speed(self._host.read(f"{base}/rate"))
        return Port(
            device=device,
            number=number,
            model=self._host.read(f"{self._ib_root}/{device}/hca_type"),
            layer=self._host.read(f"{base}/link_layer"),
            state=self._host.read(f"{base}/state").rpartition(": ")[2],
            physical=self._host.read(f"{base}/phys_state").rpartition(": ")[2],
            gbit_per_s=speed.gbps if speed else 0.0,
        )

    def _slot(self, device: str) -> Slot:
        own = self._host.path(f"{self._ib_root}/{device}/device")
        # The bridge above the card is the folder above it in the tree of devices.
        above = own.resolve().parent if own.exists() else own

        def read(folder: str, name: str) -> str:
            try:
                return (own if folder == "own" else above).joinpath(name).read_text().strip()
            except OSError:
                return ""

        lanes = [_integer(read(folder, "max_link_width")) for folder in ("own", "above")]
        speeds = [_speed(read(folder, "max_link_speed")) for folder in ("own", "above")]
        return Slot(
            device=device,
            model=self._host.read(f"{self._ib_root}/{device}/hca_type"),
            lanes=_integer(read("own", "current_link_width")),
            lanes_max=min((one for one in lanes if one), default=0),
            gt_per_s=_speed(read("own", "current_link_speed")),
            gt_per_s_max=min((one for one in speeds if one), default=0.0),
        )


def _integer(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return 0


def _speed(text: str) -> float:
    found = _SPEED.match(text)
    return float(found[1]) if found else 0.0
