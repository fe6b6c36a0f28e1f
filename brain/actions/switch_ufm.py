"""Switch ports through NVIDIA UFM, which knows the cables and the capabilities of each port.

The record of a port (GET /resources/ports) has its `peer`, its states and its `capabilities`: an action that is not
among them is refused without a request. A cable is only trusted when both ends name each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agent.contract import components
from agent.contract.errors import ConfigError, Refused
from brain.actions.switch import PortState, SwitchEnd
from brain.options import options
from brain.ufm.client import Ufm

_UP = ("link up", "linkup", "active")
_DISABLED = ("disabled",)


@dataclass(frozen=True, slots=True, kw_only=True)
class UfmSwitchOptions:
    """The keys of a table with `type = "ufm"`."""

    # Name of a table of [ufm]
    ufm: str
    # Glob of the nodes for which it is used
    nodes: str = "*"
    # true: ports between switches may be set too, although they carry the jobs of many nodes
    switch_links: bool = False
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class UfmSwitches:
    """See the module's docstring."""

    def __init__(self, ufm: Ufm, found: UfmSwitchOptions) -> None:
        self._ufm = ufm
        self._options = found

    @property
    def nodes(self) -> str:
        """As in Switches."""
        return self._options.nodes

    async def end(self, node: str, component: str) -> SwitchEnd:
        """As in Switches. The port is found by the name of the node's system and by `<device>`; it must be InfiniBand."""
        device, _, number = components.name_of(component).rpartition(".")
        if components.type_of(component) != "port" or not device:
            raise Refused(f"UFM knows InfiniBand ports, port/<device>.<port>, not {component!r}")
        system = self._ufm.system(node)
        own = [port for port in await self._ufm.ports(system) if _is(port, system, device, number)]
        if len(own) != 1:
            raise Refused(f"UFM {self._ufm.name} knows {len(own)} ports {device}.{number} of {system}")
        if _is_switch(own[0]) and not self._options.switch_links:
            raise Refused(f"{node} {component} is a link between switches: many nodes depend on it")
        peer = str(own[0].get("peer") or "")
        if not peer or peer.upper() == "N/A":
            raise Refused(
                f"UFM {self._ufm.name} does not know what {system} {device}.{number} is connected to"
            )
        far = await self._ufm.port(peer)
        if not _is_switch(far):
            raise Refused(f"{peer} at the other end of {system} {device}.{number} is no switch port")
        if str(far.get("peer") or "") != str(own[0].get("name")):
            raise Refused(
                f"UFM {self._ufm.name}: {peer} names another port at its other end: {far.get('peer')!r}"
            )
        return SwitchEnd(
            switch=str(far.get("system_name") or far.get("systemID") or "?"),
            port=str(far.get("dname") or far.get("number") or "?"),
            id=peer,
        )

    async def state(self, end: SwitchEnd) -> PortState:
        """As in Switches."""
        text = str((await self._ufm.port(end.id)).get("physical_state") or "").lower()
        if text in _UP:
            return PortState.UP
        return PortState.DISABLED if text in _DISABLED else PortState.DOWN

    async def set(self, end: SwitchEnd, *, up: bool, why: str) -> None:
        """As in Switches."""
        action = "enable" if up else "disable"
        allowed = (await self._ufm.port(end.id)).get("capabilities")
        if isinstance(allowed, list) and action not in allowed:
            have = ", ".join(map(str, allowed)) or "none"
            raise Refused(f"UFM {self._ufm.name} does not allow {action} on {end} (allows: {have})")
        await self._ufm.act(action, end.id, f"gpuward: {why}")


def build(table: Mapping[str, Any], where: str, ufms: Mapping[str, Ufm]) -> UfmSwitches:
    """Builds the backend of a table with `type = "ufm"`; ConfigError names the key."""
    found = options(UfmSwitchOptions, table, where)
    if found.ufm not in ufms:
        raise ConfigError(f"{where}.ufm: there is no [ufm.{found.ufm}] (have: {', '.join(ufms) or 'none'})")
    return UfmSwitches(ufms[found.ufm], found)


def _is(port: Mapping[str, Any], system: str, device: str, number: str) -> bool:
    """Is it this port? InfiniBand names a card by the description of its node, e.g. `gpu-0001 mlx5_0`."""
    words = str(port.get("node_description") or "").replace(":", " ").split()
    return words[:2] == [system, device] and str(port.get("number")) == number


def _is_switch(port: Mapping[str, Any]) -> bool:
    return "switch" in str(port.get("description") or "").lower()
