"""All actions of a node, by name. A new one is one file and one line here, and its row in
agent.contract.actions.
"""

from collections.abc import Callable

from agent.actions.base import Action
from agent.actions.driver_reload import DriverReload
from agent.actions.evidence import EvidenceCollect
from agent.actions.fabricmanager import FabricManagerRestart
from agent.actions.gpu_diagnose import GpuDiagnose
from agent.actions.gpu_persistence import GpuPersistence
from agent.actions.gpu_power import GpuPowerLimit
from agent.actions.gpu_reset import GpuReset
from agent.actions.gpus import gpu_kit
from agent.actions.link import LinkBounce
from agent.actions.module_load import ModuleLoad
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
    found: list[Action] = [EvidenceCollect(host, config.data_dir / "evidence")]
    if host.live:  # a recorded machine is only read
        kit = gpu_kit(host, config, pause or NvmlPause())
        found += [GpuReset(kit), GpuPowerLimit(kit), GpuPersistence(kit), GpuDiagnose(kit), PciRescan(kit)]
        found += [DriverReload(kit), FabricManagerRestart(kit)]
        found += [ModuleLoad(kit.modules, config.loadable_modules), ProcessSignal(host)]
        found += [LinkBounce(host, peer), NodeReboot(config.dbus_address)]
        found += [
            one(config.dbus_address, config.services) for one in (ServiceRestart, ServiceStart, ServiceStop)
        ]
        found.append(SmState(host, tools=config.ib_tools, root=config.ib_root))
    return {action.name: action for action in found}
