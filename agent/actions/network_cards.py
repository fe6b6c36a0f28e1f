"""Network cards as sysfs shows them: which PCI function is meant, what belongs to it, and which of them carry the control
path. Reads only.
"""

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from agent.actions.interfaces import typed
from agent.contract.errors import Refused
from agent.host import Host

_PCI = "/sys/bus/pci/devices"
_BDF = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NETWORK_CLASS = "0x02"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCard:
    """One PCI function of a network card."""

    # With the function: 0000:5e:00.0
    bdf: str
    # Empty: no driver is bound.
    driver: str
    # The interface or `port <n>` that the command is about; empty: all that had a link.
    wanted: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPath:
    """Interfaces of the control path that a reset of a card would cut; each empty where there is none."""

    # On the same PCI function, or on a virtual function of it.
    function: str
    # On the same card, by another function.
    card: str
    # On a card of the same driver.
    driver: str


class NetworkCards:
    """The network cards of a machine. `ib_root`: folder of the InfiniBand devices."""

    def __init__(self, host: Host, ib_root: str) -> None:
        self._host = host
        self._ib_root = ib_root

    def find(self, component: str) -> NetworkCard:
        """The card of `nic/<bdf or device>`, `port/<device>.<port>` or `link/<interface>`; Refused when there is none."""
        kind, name = typed("nic", component, "nic", "port", "link")
        device, _, port = name.rpartition(".")
        if kind == "nic" and _BDF.fullmatch(name.lower()):
            found, wanted = name.lower(), ""
        elif kind == "link":
            found, wanted = self.function_of(name), name
        else:
            device, wanted = (device, f"port {port}") if kind == "port" else (name, "")
            found = self._behind(f"{self._ib_root}/{device}/device")
        base = f"{_PCI}/{found}"
        network = self._host.read(f"{base}/class").startswith(_NETWORK_CLASS)
        network = network or bool(self.interfaces(found) or self.infiniband(found))
        if not found or not network:
            raise Refused(f"{component} is no network card of this node, and not on one")
        return NetworkCard(bdf=found, driver=self.driver(found), wanted=wanted)

    def function_of(self, interface: str) -> str:
        """The PCI function of an interface; empty for one that is software only."""
        return self._behind(f"/sys/class/net/{interface}/device")

    def driver(self, bdf: str) -> str:
        """The driver that is bound to the function; empty when none is."""
        return self._target(f"{_PCI}/{bdf}/driver").rpartition("/")[2]

    def interfaces(self, bdf: str) -> list[str]:
        """Network interfaces of the function."""
        return self._host.listdir(f"{_PCI}/{bdf}/net")

    def infiniband(self, bdf: str) -> dict[str, str]:
        """`port <n>` → physical state of each InfiniBand or RoCE port of the function."""
        found = {}
        for device in self._host.listdir(f"{_PCI}/{bdf}/infiniband"):
            base = f"{self._ib_root}/{device}/ports"
            for port in self._host.listdir(base):
                state = self._host.read(f"{base}/{port}/phys_state")
                found[f"port {port}"] = state.rpartition(": ")[2]
        return found

    def virtual_functions(self, bdf: str) -> int:
        """How many virtual functions it has."""
        number = self._host.read(f"{_PCI}/{bdf}/sriov_numvfs", "0")
        return int(number) if number.isdigit() else 0

    def of_driver(self, driver: str) -> list[str]:
        """All PCI functions that are bound to the driver."""
        names = self._host.listdir(f"/sys/bus/pci/drivers/{driver}") if driver else []
        return [name for name in names if _BDF.fullmatch(name)]

    def control_path(self, card: NetworkCard, carriers: Iterable[str]) -> ControlPath:
        """Which of the interfaces that carry the control path are on this card, or on a card of its driver."""
        function = on_card = driver = ""
        for name in sorted(carriers):
            bdf = self.function_of(name)
            if not bdf:
                continue
            if card.bdf in (bdf, self._physical(bdf)):
                function = name
            if self._identities(bdf) & self._identities(card.bdf):
                on_card = name
            # A card without a driver may have had any.
            if not card.driver or self.driver(bdf) == card.driver:
                driver = name
        return ControlPath(function=function, card=on_card, driver=driver)

    def _identities(self, bdf: str) -> frozenset[str]:
        """What all functions of one card have in common: the slot, and the GUID of its firmware (a card with two PCI
        connectors has two slots).
        """
        found = {self._physical(bdf).rpartition(".")[0]}
        for device in self._host.listdir(f"{_PCI}/{bdf}/infiniband"):
            if (image := self._host.read(f"{self._ib_root}/{device}/sys_image_guid")).strip("0:"):
                found.add(image)
        return frozenset(found)

    def _physical(self, bdf: str) -> str:
        """The physical function of a virtual one; any other function itself."""
        return self._target(f"{_PCI}/{bdf}/physfn").rpartition("/")[2] or bdf

    def _behind(self, link: str) -> str:
        """The last PCI function on the path of a link in sysfs, also where it is not the end: `.../0000:00:03.0/virtio0`."""
        found = [part for part in self._target(link).split("/") if _BDF.fullmatch(part)]
        return found[-1] if found else ""

    def _target(self, link: str) -> str:
        with contextlib.suppress(OSError, RuntimeError):
            path = self._host.path(link)
            if path.exists():
                return str(path.resolve())
        return ""
