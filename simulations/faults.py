"""Faults: what can be wrong with a part of a simulated machine besides its plain state, as data. Pure.

The agent reports the symptoms of a fault when it begins and again after each boot, as a new agent looks at everything;
it reports the recovery when the fault ends. Only one of its fixes ends a fault; others may seem to, or make it
worse. Which fixes an action applies is decided in simulations/actions; whether they help is decided here.
"""

from dataclasses import dataclass
from enum import StrEnum

from agent.contract.messages import UnsentEvent

FROZEN_MASTER = "frozen subnet manager"  # the fault of every node while the master is frozen


class Fix(StrEnum):
    """What is done to a part, or to the whole machine."""

    RESET_GPU = "reset of one GPU"
    RESET_ALL_GPUS = "reset of all GPUs and NVSwitches together"
    RESCAN_PCI = "rescan of the PCI bus"
    RELOAD_DRIVER = "reload of the GPU driver"
    LIMIT_POWER = "a lower power limit for a GPU"
    RESTART_FABRIC_MANAGER = "restart of the fabric manager"
    RESET_PORT = "reset of an InfiniBand port: its link is trained again"
    RESET_NIC = "reset of a network card"
    FAIL_OVER_BOND = "failover of a bond"
    SET_MTU = "MTU of an interface set"
    RESTART_SERVICE = "restart of a systemd unit"
    LOAD_MODULE = "kernel module loaded"
    PERSISTENCE = "persistence mode switched on"
    END_JOB = "end of a job on the node"
    REPLACE_MASTER = "another subnet manager becomes master"
    REBOOT = "reboot"
    CYCLE_POWER = "power cut and restored, which implies a boot"
    TIME = "time: the fault passes by itself"
    REPAIR = "repair by people: ends every fault"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong."""

    # Unique on the machine.
    name: str
    # What a fix must be applied to; `node`: the whole machine.
    component: str
    # Each of them ends the fault; empty: only people do.
    fixes: tuple[Fix, ...]
    # What the agent reports when the fault begins.
    symptoms: tuple[UnsentEvent, ...] = ()
    # What the agent reports when it ends.
    recovery: tuple[UnsentEvent, ...] = ()
    # How often the agent reports the symptoms while the fault lasts, seconds; 0: once.
    repeat_s: float = 0.0
    # The module, job or unit that a fix must name; empty: any.
    target: str = ""
    # How long the agent takes to see it when it begins, seconds: it samples now and then, or waits for an answer.
    shows_after_s: float = 0.0
    # A fix that reaches its part and does not end it makes it show again, as a card does that is set up anew and fails.
    shows_again: bool = False
    # What the kernel logs with the symptoms; the agent's own reader reads it.
    lines: tuple[str, ...] = ()
    # Fixes that seem to end it: what it was about is well, and it begins anew after `relapse_s` seconds.
    soothed_by: tuple[Fix, ...] = ()
    relapse_s: float = 0.0
    # Fixes that make it worse: it is this one from then on.
    worsened_by: tuple[Fix, ...] = ()
    worse: "Fault | None" = None
    # The whole node hangs: it sends nothing and receives nothing.
    hangs_node: bool = False

    def fixed_by(self, fix: Fix, component: str, target: str = "") -> bool:
        """Whether this fix ends it. A fix of the node reaches all of its parts."""
        return fix is Fix.REPAIR or (fix in self.fixes and self._meant(component, target))

    def seems_fixed_by(self, fix: Fix, component: str, target: str = "") -> bool:
        """Whether this fix ends it for a while only."""
        return fix in self.soothed_by and self._meant(component, target)

    def made_worse_by(self, fix: Fix, component: str, target: str = "") -> "Fault | None":
        """What this fix makes of it; None: no other one."""
        return self.worse if fix in self.worsened_by and self._meant(component, target) else None

    def _meant(self, component: str, target: str) -> bool:
        return self.reached_by(component) and (not self.target or not target or target == self.target)

    def reached_by(self, component: str) -> bool:
        """Whether what is done to a component is done to its part."""
        return component in ("node", self.component) or self.component == "node"
