"""The subnet managers of one fabric as its nodes see them, and what follows from it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.contract import subnet


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerHost:
    """A host that can run a subnet manager."""

    node: str
    # Its service; it must be listed in the `services` of that node's agent
    unit: str = "opensm.service"
    # GUID of the port that it manages from; empty: any port of the node
    guid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricView:
    """The state of a fabric at one moment."""

    hosts: tuple[ManagerHost, ...]
    # Nodes whose ports show whether there is a master
    ask: tuple[str, ...]
    # node -> what it sees
    seen: Mapping[str, subnet.SubnetView]
    # node -> why it could not be asked
    unreachable: Mapping[str, str]

    @property
    def asked(self) -> bool:
        """Could any of the `ask` nodes be asked?"""
        return any(node in self.seen for node in self.ask)

    @property
    def works(self) -> bool:
        """Do most of the nodes that could be asked get an answer from a master? One that does not may be faulty itself."""
        asked = [self.seen[node] for node in self.ask if node in self.seen]
        return 2 * sum(view.works for view in asked) > len(asked)

    def runs(self, host: ManagerHost) -> subnet.Manager | None:
        """Returns the manager that answers on the host or, if its agent cannot be asked, the one that others see by GUID."""
        view = self.seen.get(host.node)
        if view is not None and view.here is not None:
            return view.here
        everything = (manager for view in self.seen.values() for manager in view.managers)
        return next(
            (manager for manager in everything if host.guid and same_guid(manager.guid, host.guid)), None
        )

    def known_to_ports(self, host: ManagerHost) -> bool:
        """Is it the manager that ports without a working master are configured for?"""
        return self._followed(host, works=False)

    def answers(self, host: ManagerHost) -> bool:
        """Is it the master that answers at least one port?"""
        return self._followed(host, works=True)

    def _followed(self, host: ManagerHost, *, works: bool) -> bool:
        lids = {
            port.sm_lid
            for node in self.ask
            if node in self.seen
            for port in self.seen[node].ports
            if port.works is works and port.sm_lid
        }
        view = self.seen.get(host.node)
        return view is not None and any(port.lid in lids for port in view.ports)

    def startable(self) -> list[ManagerHost]:
        """Returns the hosts on which no manager answers. A host that the ports follow comes last: it may be frozen."""
        idle = [host for host in self.hosts if self.runs(host) is None]
        return sorted(idle, key=lambda host: (self.known_to_ports(host), host.node not in self.seen))

    def hung(self) -> list[ManagerHost]:
        """Returns, while no master answers, the host that the ports follow in vain, or else those that claim to be master.

        A host that answers any port as the master is never among them.
        """
        if self.works or not self.asked:
            return []
        unanswered = [host for host in self.hosts if not self.answers(host)]
        named = [
            host
            for host in unanswered
            if (manager := self.runs(host)) is not None and manager.state == subnet.MASTER
        ]
        return [host for host in unanswered if self.known_to_ports(host)] or named

    def ready(self) -> list[ManagerHost]:
        """Returns the other hosts whose manager answers: they take over when the hung one is stopped."""
        hung = self.hung()
        return [host for host in self.hosts if host not in hung and self.runs(host) is not None]

    def text(self) -> str:
        """Returns a sentence about the managers and about the nodes that could not be asked."""
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
            if not any(same_guid(manager.guid, guid) for guid in known if guid)
        }
        parts += [f"{guid} (not configured): {one.state}" for guid, one in foreign.items()]
        parts += [f"{node} could not be asked ({why})" for node, why in self.unreachable.items()]
        return "; ".join(parts)


def same_guid(one: str, other: str) -> bool:
    """Are these the same GUID, in any form such as `0x0000000000100001`, `0x100001` or `0010:0001`?"""

    def plain(guid: str) -> str:
        return guid.lower().removeprefix("0x").replace(":", "").lstrip("0")

    return plain(one) == plain(other)
