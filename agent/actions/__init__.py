"""All actions of a node, by name. A new one is one file and one line here, and its row in
agent.contract.commands.
"""

from collections.abc import Callable

from agent.actions.base import Action
from agent.actions.bond import BondFailover
from agent.actions.evidence import EvidenceCollect
from agent.actions.ib_port import IbPortReset
from agent.actions.link import LinkBounce
from agent.actions.mtu import MtuSet
from agent.actions.nic import NicReset
from agent.actions.service import ServiceRestart
from agent.config import AgentConfig
from agent.host import Host


def actions(
    host: Host, config: AgentConfig, *, peer: Callable[[], tuple[str, int] | None]
) -> dict[str, Action]:
    """What this machine can do. `peer` says host and port of the broker that we are connected to, for the
    actions that must not cut the way to it; None before the first connection.
    """
    found: list[Action] = [EvidenceCollect(host, config.data_dir / "evidence")]
    if host.live:  # a recorded machine is only read
        found += [LinkBounce(host, peer), ServiceRestart(config.dbus_address, config.services)]
        found.append(NicReset.of(host, peer, config))
        found.append(IbPortReset(host, peer, ibportstate=config.ibportstate, ib_root=config.ib_root))
        found.append(BondFailover(host, peer))
        found.append(MtuSet(host, peer))
    return {action.name: action for action in found}
