"""All actions of a node, by name. A new one is one file and one line here, and its row in
agent.contract.actions.
"""

from collections.abc import Callable

from agent.actions.base import Action
from agent.actions.evidence import EvidenceCollect
from agent.actions.evidence_tools import Tools
from agent.actions.fs_usage import FsUsage
from agent.actions.link import LinkBounce
from agent.actions.reboot import NodeReboot
from agent.actions.service import ServiceRestart, ServiceStart, ServiceStop
from agent.actions.subnet import SmState
from agent.config import AgentConfig
from agent.host import Host


def actions(
    host: Host, config: AgentConfig, *, peer: Callable[[], tuple[str, int] | None]
) -> dict[str, Action]:
    """What this machine can do. `peer` says host and port of the broker that we are connected to, for the
    actions that must not cut the way to it; None before the first connection.
    """
    tools = Tools(
        paths=config.evidence_tools, report_s=config.bug_report_s, report_bytes=config.bug_report_bytes
    )
    found: list[Action] = [EvidenceCollect(host, config.data_dir / "evidence", tools)]
    if host.live:  # a recorded machine is only read
        found += [LinkBounce(host, peer), NodeReboot(config.dbus_address), FsUsage(host, config.mounts)]
        found += [
            one(config.dbus_address, config.services) for one in (ServiceRestart, ServiceStart, ServiceStop)
        ]
        found.append(SmState(host, tools=config.ib_tools, root=config.ib_root))
    return {action.name: action for action in found}
