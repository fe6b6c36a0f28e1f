"""All actions of a node, by name. A new one is one file and one line in `_live` here, and its row in
agent.contract.actions.

An action's code is loaded when it is first asked for: most nodes never need most of them, and the agent's memory is
a promise. Hence the imports inside functions.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from agent.actions.base import Action
from agent.config import AgentConfig
from agent.host import Host
from agent.nvml_pause import NvmlPause

if TYPE_CHECKING:
    from agent.actions.bundle import BundleFolder
    from agent.actions.gpus import GpuKit

Peer = Callable[[], tuple[str, int] | None]


def actions(host: Host, config: AgentConfig, *, peer: Peer, pause: NvmlPause | None = None) -> "Actions":
    """What this machine can do. `peer` says host and port of the broker that we are connected to, for the
    actions that must not cut the way to it; None before the first connection. `pause`: by which the agent's own
    NVML source lets go of the driver.
    """
    made = _Makers(host, config, peer, pause or NvmlPause())
    return Actions({"evidence.collect": made.evidence} | (made.live() if host.live else {}))


class Actions(Mapping[str, Action]):
    """Each is made when it is first looked up, and kept."""

    def __init__(self, makers: Mapping[str, Callable[[], Action]]) -> None:
        self._makers = makers
        self._made: dict[str, Action] = {}

    def __getitem__(self, name: str) -> Action:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


class _Makers:
    """How each action is made. A recorded machine is only read: it has `evidence` alone."""

    def __init__(self, host: Host, config: AgentConfig, peer: Peer, pause: NvmlPause) -> None:
        self._host = host
        self._config = config
        self._peer = peer
        self._pause = pause

    def live(self) -> dict[str, Callable[[], Action]]:
        """Those that change the machine, or look closely at a living one."""
        services = ("service.restart", "service.start", "service.stop")
        gpus = ("gpu.reset", "gpu.power_limit", "gpu.persistence", "gpu.diagnose", "pci.rescan")
        return {
            "node.reboot": self.reboot,
            "fs.usage": self.usage,
            "process.signal": self.signal,
            **{name: lambda name=name: self.service(name) for name in services},  # type: ignore[misc]  # mypy: defaults of a lambda
            "link.bounce": self.bounce,
            "bond.failover": self.failover,
            "mtu.set": self.mtu,
            "nic.reset": self.nic,
            "ib.sm_state": self.managers,
            "ib.inspect": self.fabric,
            "ib.port_reset": self.port,
            **{name: lambda name=name: self.gpu(name) for name in gpus},  # type: ignore[misc]  # as above
            "driver.reload": self.driver,
            "fabricmanager.restart": self.fabric_manager,
            "module.load": self.module,
        }

    @cached_property
    def _bundles(self) -> "BundleFolder":
        """Where evidence lies until it is sent; whoever writes there does it in turn."""
        from agent.actions.bundle import BundleFolder

        return BundleFolder(self._host, self._config.data_dir / "evidence")

    def evidence(self) -> Action:
        from agent.actions.evidence import EvidenceCollect
        from agent.actions.evidence_tools import Tools

        config = self._config
        tools = Tools(
            paths=config.evidence_tools, report_s=config.bug_report_s, report_bytes=config.bug_report_bytes
        )
        return EvidenceCollect(self._host, self._bundles, tools)

    def reboot(self) -> Action:
        from agent.actions.reboot import NodeReboot

        return NodeReboot(self._config.dbus_address)

    def usage(self) -> Action:
        from agent.actions.fs_usage import FsUsage

        return FsUsage(self._host, self._config.mounts)

    def signal(self) -> Action:
        from agent.actions.process_signal import ProcessSignal

        return ProcessSignal(self._host)

    def service(self, name: str) -> Action:
        from agent.actions.service import ServiceRestart, ServiceStart, ServiceStop

        made = {one.name: one for one in (ServiceRestart, ServiceStart, ServiceStop)}
        return made[name](self._config.dbus_address, self._config.services)

    def bounce(self) -> Action:
        from agent.actions.link import LinkBounce

        return LinkBounce(self._host, self._peer)

    def failover(self) -> Action:
        from agent.actions.bond import BondFailover

        return BondFailover(self._host, self._peer)

    def mtu(self) -> Action:
        from agent.actions.mtu import MtuSet

        return MtuSet(self._host, self._peer)

    def nic(self) -> Action:
        from agent.actions.nic import NicReset

        return NicReset.of(self._host, self._peer, self._config)

    def managers(self) -> Action:
        from agent.actions.subnet import SmState

        return SmState(self._host, tools=self._config.ib_tools, root=self._config.ib_root)

    def fabric(self) -> Action:
        from agent.actions.ib_inspect import IbInspect

        config = self._config
        return IbInspect(
            self._host,
            self._bundles,
            tools=config.ib_tools,
            ibdiagnet=config.ibdiagnet,
            root=config.ib_root,
            folder=config.data_dir / "fabric",
        )

    def port(self) -> Action:
        from agent.actions.ib_port import IbPortReset

        config = self._config
        return IbPortReset(self._host, self._peer, ibportstate=config.ibportstate, ib_root=config.ib_root)

    @cached_property
    def _kit(self) -> "GpuKit":
        """What the actions on GPUs share: one of them at a time has the driver."""
        from agent.actions.gpus import gpu_kit

        return gpu_kit(self._host, self._config, self._pause)

    def gpu(self, name: str) -> Action:
        from agent.actions.gpu_diagnose import GpuDiagnose
        from agent.actions.gpu_persistence import GpuPersistence
        from agent.actions.gpu_power import GpuPowerLimit
        from agent.actions.gpu_reset import GpuReset
        from agent.actions.pci_rescan import PciRescan

        made = {one.name: one for one in (GpuReset, GpuPowerLimit, GpuPersistence, GpuDiagnose, PciRescan)}
        return made[name](self._kit)

    def driver(self) -> Action:
        from agent.actions.driver_reload import DriverReload

        return DriverReload(self._kit)

    def fabric_manager(self) -> Action:
        from agent.actions.fabricmanager import FabricManagerRestart

        return FabricManagerRestart(self._kit)

    def module(self) -> Action:
        from agent.actions.module_load import ModuleLoad

        return ModuleLoad(self._kit.modules, self._config.loadable_modules)
