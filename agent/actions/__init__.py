"""All actions of a node. A new one is a file here and a line in `CLASSES`; what it needs and disrupts is declared under the
same name in `agent/contract/actions/`.

A class is imported when its action is first used: most nodes need few of them, and the agent must stay small. Hence the
table has the names of the classes, not the classes themselves.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import cast

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Action, NodeAction

# Name of the action: module below agent.actions, and its class.
CLASSES: Mapping[str, tuple[str, str]] = {
    "agent.look": ("agent_look", "AgentLook"),
    "bond.failover": ("bond_failover", "BondFailover"),
    "driver.reload": ("driver_reload", "DriverReload"),
    "evidence.collect": ("evidence_collect", "EvidenceCollect"),
    "fabricmanager.restart": ("fabricmanager_restart", "FabricManagerRestart"),
    "fs.usage": ("fs_usage", "FsUsage"),
    "gpu.diagnose": ("gpu_diagnose", "GpuDiagnose"),
    "gpu.links_check": ("gpu_links_check", "GpuLinksCheck"),
    "gpu.persistence": ("gpu_persistence", "GpuPersistence"),
    "gpu.power_limit": ("gpu_power_limit", "GpuPowerLimit"),
    "gpu.power_restore": ("gpu_power_restore", "GpuPowerRestore"),
    "gpu.reset": ("gpu_reset", "GpuReset"),
    "ib.inspect": ("ib_inspect", "IbInspect"),
    "ib.port_reset": ("ib_port_reset", "IbPortReset"),
    "ib.sm_state": ("ib_sm_state", "IbSmState"),
    "link.bounce": ("link_bounce", "LinkBounce"),
    "module.load": ("module_load", "ModuleLoad"),
    "mtu.set": ("mtu_set", "MtuSet"),
    "nic.reset": ("nic_reset", "NicReset"),
    "node.accept": ("node_accept", "NodeAccept"),
    "node.reboot": ("node_reboot", "NodeReboot"),
    "pci.rescan": ("pci_rescan", "PciRescan"),
    "port.check": ("port_check", "PortCheck"),
    "process.signal": ("process_signal", "ProcessSignal"),
    "service.restart": ("service", "ServiceRestart"),
    "service.start": ("service", "ServiceStart"),
    "service.stop": ("service", "ServiceStop"),
}
# A recorded machine is only read.
_ON_RECORDINGS = ("evidence.collect",)


class Actions(Mapping[str, Action]):
    """What this machine can do, by name. Each action is made when it is first looked up, and kept."""

    def __init__(self, setup: ActionSetup) -> None:
        self._setup = setup
        self._names = tuple(CLASSES) if setup.host.live else _ON_RECORDINGS
        self._made: dict[str, Action] = {}

    def __getitem__(self, name: str) -> Action:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = action_class(name).of(self._setup)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def action_class(name: str) -> type[NodeAction]:
    """The class of an action; KeyError when there is no such action."""
    module, class_name = CLASSES[name]
    return cast(type[NodeAction], getattr(import_module(f"agent.actions.{module}"), class_name))
