"""port.check: do a node's network ports work at their rate? Reads sysfs again until all is well, or a minute is over.

What is expected: the port or interface that the command names has its link; so has every port of whose kind (model and
port number) at least two others are active. A port or interface without a cable is no fault, but their number is a figure.
An active port has the configured rate (`ib_expected_gbps`), else that of the fastest of its kind. Cards of one model have
equal PCIe links. What all cards of the node lack alike shows only against other nodes: that is what the figures are for.
"""

import asyncio
from collections.abc import Iterator
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.alike import alike
from agent.actions.base import Done, NodeAction, NotPassed, Params
from agent.actions.interfaces import typed
from agent.actions.port_view import CardInterface, Port, PortReader, Slot
from agent.collectors.ibrate import IbRateOptions
from agent.contract import components
from agent.contract.errors import Refused
from agent.contract.figures import Figure, name_part
from agent.host import Host

SETTLE_S = 60.0  # for links to train, and for the subnet manager to make ports active
MAX_NAMED = 8  # problems that are named
_LOOK_S = 0.5
_PEERS = 2  # so many active ports of its kind must there be before a port without a link is a fault
_ACTIVE, _LINK_UP = "ACTIVE", "LinkUp"


class PortCheck(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "port.check"

    def __init__(
        self, host: Host, *, ib_root: str, options: IbRateOptions, settle_s: float = SETTLE_S
    ) -> None:
        """`ib_root`: folder of the InfiniBand devices; `settle_s`: how long links may take."""
        self._host = host
        self._ib_root = ib_root
        self._view = PortReader(host, ib_root)
        self._options = options
        self._settle_s = settle_s

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.host, ib_root=setup.config.ib_root, options=setup.config.options(IbRateOptions))

    async def plan(self, params: Params) -> list[str]:
        """One line."""
        wanted = self._wanted(params)
        return [f"read the state and rate of {', '.join(sorted(wanted)) or 'all ports and interfaces'}"]

    async def run(self, params: Params) -> Done:
        """Checks; NotPassed when something is still wrong after the time that links may take."""
        wanted = self._wanted(params)
        end_s = self._host.mono_s() + self._settle_s
        while True:
            ports = [one for one in self._view.ports() if not self._exempt(one)]
            slots = [one for one in self._view.slots() if one.device not in self._options.ib_exempt]
            interfaces = self._view.interfaces()
            problems = [
                *missing(wanted, ports, interfaces),
                *wrong_ports(ports, wanted, self._options.ib_expected_gbps),
                *wrong_interfaces(interfaces, wanted),
                *wrong_slots(slots),
            ]
            if not problems or self._host.mono_s() > end_s:
                break
            await asyncio.sleep(_LOOK_S)
        done = Done(
            text=_text(ports, interfaces, problems),
            figures=tuple(_figures(ports, interfaces, slots)),
            alike=alike(self._host, self._ib_root),
            untested=()
            if ports or interfaces
            else ("network: there is no port and no interface with a device",),
        )
        if problems:
            raise NotPassed(done)
        return done

    async def recover(self, params: Params) -> None:
        """Nothing to repair: it only reads."""

    def _exempt(self, port: Port) -> bool:
        return port.device in self._options.ib_exempt or port.name in self._options.ib_exempt

    def _wanted(self, params: Params) -> frozenset[str]:
        """Names of the ports or interfaces that must have a link; empty: none is named. Refused for what is no card."""
        component = str(params.get("component", components.NODE))
        if components.type_of(component) not in ("port", "link", "nic"):
            return frozenset()
        kind, name = typed("component", component, "port", "link", "nic")
        if kind != "nic":
            return frozenset((name,))
        card = self._view.cards.find(component)
        devices = self._host.listdir(f"/sys/bus/pci/devices/{card.bdf}/infiniband")
        # A card may have a port without a cable: which of them are wanted is told by their peers.
        active = [one.name for one in self._view.ports() if one.device in devices]
        if not active and not self._view.cards.interfaces(card.bdf):
            raise Refused(f"{component} has no port and no interface")
        return frozenset(active) if len(active) == 1 else frozenset()


def missing(wanted: frozenset[str], ports: list[Port], interfaces: list[CardInterface]) -> Iterator[str]:
    """What is named and is not there."""
    there = {one.name for one in ports} | {one.name for one in interfaces}
    for name in sorted(wanted - there):
        yield f"{name} is not there"


def wrong_ports(ports: list[Port], wanted: frozenset[str], expected_gbps: float) -> Iterator[str]:
    """Ports that should have a link and have none, and those that are too slow."""
    for port in ports:
        kin = [one for one in ports if _kind(one) == _kind(port) and one is not port]
        active = [one for one in kin if one.state == _ACTIVE]
        if port.state != _ACTIVE:
            needed = len(active) >= _PEERS and len(active) * 2 > len(kin)
            # A link without a subnet manager: there is a cable, and no traffic.
            if port.name in wanted or needed or port.physical == _LINK_UP:
                yield f"{port.name} is {port.state}/{port.physical}"
            continue
        fastest = max((one.gbit_per_s for one in active), default=0.0)
        expected = expected_gbps if expected_gbps and port.layer != "Ethernet" else fastest
        if 0 < port.gbit_per_s < expected:
            yield f"{port.name} has {port.gbit_per_s:g} of {expected:g} Gb/s"


def wrong_interfaces(interfaces: list[CardInterface], wanted: frozenset[str]) -> Iterator[str]:
    """The named interfaces that have no carrier."""
    for one in interfaces:
        if one.name in wanted and not one.carrier:
            yield f"{one.name} has no carrier" if one.up else f"{one.name} is set down"


def wrong_slots(slots: list[Slot]) -> Iterator[str]:
    """Cards whose PCIe link is below what card and slot allow, and below that of another card of their model."""
    for slot in slots:
        kin = [one for one in slots if one.model == slot.model]
        lanes = min(slot.lanes_max, max(one.lanes for one in kin))
        speed = min(slot.gt_per_s_max, max(one.gt_per_s for one in kin))
        if 0 < slot.lanes < lanes:
            yield f"{slot.device} has PCIe x{slot.lanes} of x{lanes}"
        if 0 < slot.gt_per_s < speed:
            yield f"{slot.device} has PCIe at {slot.gt_per_s:g} of {speed:g} GT/s"


def _kind(port: Port) -> tuple[str, str, str]:
    return port.model, port.layer, port.number


def _figures(ports: list[Port], interfaces: list[CardInterface], slots: list[Slot]) -> Iterator[Figure]:
    for model in dict.fromkeys(one.model for one in ports):
        rates = [one.gbit_per_s for one in ports if one.model == model and one.state == _ACTIVE]
        yield Figure(name=f"port.{name_part(model)}.active", value=len(rates))
        if rates:
            yield Figure(name=f"port.{name_part(model)}.gbit_per_s", value=min(rates))
    for model in dict.fromkeys(one.model for one in slots):
        if lanes := [one.lanes for one in slots if one.model == model and one.lanes]:
            yield Figure(name=f"port.{name_part(model)}.pcie_lanes", value=min(lanes))
        if speeds := [one.gt_per_s for one in slots if one.model == model and one.gt_per_s]:
            yield Figure(name=f"port.{name_part(model)}.pcie_gt_per_s", value=min(speeds))
    if interfaces:
        yield Figure(name="link.carriers", value=sum(one.carrier for one in interfaces))
    if rated := [one.mbit_per_s for one in interfaces if one.carrier and one.mbit_per_s]:
        yield Figure(name="link.mbit_per_s", value=min(rated))


def _text(ports: list[Port], interfaces: list[CardInterface], problems: list[str]) -> str:
    if problems:
        more = f"; and {len(problems) - MAX_NAMED} more" if len(problems) > MAX_NAMED else ""
        return f"ports are not as expected: {'; '.join(problems[:MAX_NAMED])}{more}"
    active = sum(one.state == _ACTIVE for one in ports)
    carriers = sum(one.carrier for one in interfaces)
    return f"{active} of {len(ports)} ports active, {carriers} of {len(interfaces)} interfaces with carrier"
