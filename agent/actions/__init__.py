"""All actions of a node, by name. A new one is one file and one line here, and its row in
agent.contract.actions.
"""

from collections.abc import Callable

from agent.actions.base import Action
from agent.actions.bond import BondFailover
from agent.actions.driver_reload import DriverReload
from agent.actions.evidence import EvidenceCollect
from agent.actions.evidence_tools import Tools
from agent.actions.fabricmanager import FabricManagerRestart
from agent.actions.fs_usage import FsUsage
from agent.actions.gpu_diagnose import GpuDiagnose
from agent.actions.gpu_persistence import GpuPersistence
from agent.actions.gpu_power import GpuPowerLimit
from agent.actions.gpu_reset import GpuReset
from agent.actions.gpus import gpu_kit
from agent.actions.ib_port import IbPortReset
from agent.actions.link import LinkBounce
from agent.actions.module_load import ModuleLoad
from agent.actions.mtu import MtuSet
from agent.actions.nic import NicReset
from agent.actions.pci_rescan import PciRescan
from agent.actions.process_signal import ProcessSignal
from agent.actions.reboot import NodeReboot
from agent.actions.service import ServiceRestart, ServiceStart, ServiceStop
from agent.actions.subnet import SmState
from agent.config import AgentConfig
from agent.host import Host
from agent.nvml_pause import NvmlPause


def actions(
    host: Host,
    config: AgentConfig,
    *,
    peer: Callable[[], tuple[str, int] | None],
    pause: NvmlPause | None = None,
) -> dict[str, Action]:
    """What this machine can do. `peer` says host and port of the broker that we are connected to, for the
    actions that must not cut the way to it; None before the first connection. `pause`: by which the agent's own
    NVML source lets go of the driver.
    """
    tools = Tools(
        paths=config.evidence_tools, report_s=config.bug_report_s, report_bytes=config.bug_report_bytes
    )
    found: list[Action] = [EvidenceCollect(host, config.data_dir / "evidence", tools)]
    if host.live:  # a recorded machine is only read
        found += [NodeReboot(config.dbus_address), FsUsage(host, config.mounts), ProcessSignal(host)]
        found += [
            one(config.dbus_address, config.services) for one in (ServiceRestart, ServiceStart, ServiceStop)
        ]
        found += [LinkBounce(host, peer), BondFailover(host, peer), MtuSet(host, peer)]
        found += [NicReset.of(host, peer, config), SmState(host, tools=config.ib_tools, root=config.ib_root)]
        found.append(IbPortReset(host, peer, ibportstate=config.ibportstate, ib_root=config.ib_root))
        kit = gpu_kit(host, config, pause or NvmlPause())
        found += [GpuReset(kit), GpuPowerLimit(kit), GpuPersistence(kit), GpuDiagnose(kit), PciRescan(kit)]
        found += [DriverReload(kit), FabricManagerRestart(kit)]
        found.append(ModuleLoad(kit.modules, config.loadable_modules))
    return {action.name: action for action in found}
