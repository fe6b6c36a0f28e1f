"""What the nodes of one fabric see of its subnet managers, put together; and what follows from it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.contract import subnet


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerHost:
    """A host that can run a subnet manager."""

    node: str
    unit: str = "opensm.service"  # its service; must be listed in that agent's `services`
    guid: str = ""  # of the port that it manages from; empty: any port of the node


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricView:
    """One look at a fabric."""

    hosts: tuple[ManagerHost, ...]
    ask: tuple[str, ...]  # nodes whose ports tell whether there is a master
    seen: Mapping[str, subnet.SubnetView]  # node -> what it sees
    silent: Mapping[str, str]  # node -> why it could not be asked

    @property
    def asked(self) -> bool:
        """Could any of the `ask` nodes be asked?"""
        return any(node in self.seen for node in self.ask)

    @property
    def works(self) -> bool:
        """Has every port that could be asked a master that answers?"""
        return self.asked and all(self.seen[node].works for node in self.ask if node in self.seen)

    def runs(self, host: ManagerHost) -> subnet.Manager | None:
        """The manager that answers on the host itself or, where its agent cannot be asked, from elsewhere by its GUID."""
        view = self.seen.get(host.node)
        if view is not None and view.here is not None:
            return view.here
        everything = (manager for view in self.seen.values() for manager in view.managers)
        return next((manager for manager in everything if host.guid and same(manager.guid, host.guid)), None)

    def known_to_ports(self, host: ManagerHost) -> bool:
        """Is it the manager that ports without a working master were told of?"""
        lost = {
            port.sm_lid
            for node in self.ask
            if node in self.seen
            for port in self.seen[node].ports
            if not port.works and port.sm_lid
        }
        view = self.seen.get(host.node)
        return view is not None and any(port.lid in lost for port in view.ports)

    def startable(self) -> list[ManagerHost]:
        """Hosts on which no manager answers, those first that the ports do not follow: that one may be frozen."""
        idle = [host for host in self.hosts if self.runs(host) is None]
        return sorted(idle, key=lambda host: (self.known_to_ports(host), host.node not in self.seen))

    def sick(self) -> list[ManagerHost]:
        """While no master answers: the hosts that call themselves master, else the one that the ports follow."""
        if self.works or not self.asked:
            return []
        named = [
            host
            for host in self.hosts
            if (manager := self.runs(host)) is not None and manager.state == subnet.MASTER
        ]
        followed = [host for host in self.hosts if self.known_to_ports(host)]
        return [host for host in named if host in followed] or named or followed

    def ready(self) -> list[ManagerHost]:
        """Hosts other than the sick ones whose manager answers: they take over when the sick one is gone."""
        sick = self.sick()
        return [host for host in self.hosts if host not in sick and self.runs(host) is not None]

    def text(self) -> str:
        """For people: the managers, and who could not be asked."""
        parts = ["a master answers" if self.works else "no working SM"]
        for host in self.hosts:
            manager = self.runs(host)
            parts.append(
                f"{host.node}: {manager.state} priority {manager.priority}"
                if manager
                else f"{host.node}: none answers"
            )
        known = [host.guid for host in self.hosts] + [
            manager.guid for host in self.hosts if (manager := self.runs(host))
        ]
        foreign = {
            manager.guid: manager
            for view in self.seen.values()
            for manager in view.managers
            if not any(same(manager.guid, guid) for guid in known if guid)
        }
        parts += [f"{guid} (not configured): {one.state}" for guid, one in foreign.items()]
        parts += [f"{node} could not be asked ({why})" for node, why in self.silent.items()]
        return "; ".join(parts)


def same(one: str, other: str) -> bool:
    """Are these the same GUID, `0x0000000000100001`, `0x100001` or `0010:0001`?"""

    def plain(guid: str) -> str:
        return guid.lower().removeprefix("0x").replace(":", "").lstrip("0")

    return plain(one) == plain(other)
