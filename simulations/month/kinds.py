"""What a kind of fault is: how it shows, whom it harms, what ends it, and who sees it. Pure.

A kind is what a simulated machine can have; what a paper counts is a cause, and a profile says which kinds a cause is made
of. How likely each remedy is to end a fault is an assumption here unless its `source` names a paper; a profile may say
otherwise. One draw for each fault decides all of its remedies, so one that ends it gently is also ended by what is harder; what
a remedy ends for a while only are those next to the ones that it ends, and what it makes worse are the last.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from simulations.changes import FaultBegins, ScheduledChange, after
from simulations.faults import Fault, Fix
from simulations.state import MachineState


class Harm(StrEnum):
    """What a fault does to the job on its node."""

    KILLS = "ends the job, and every job that starts there"
    HANGS = "the job makes no progress until its watchdog ends it"
    SLOWS = "every node of the job waits for this one"
    NONE = "none"


class Cured(StrEnum):
    """What ends a fault when no remedy has."""

    HANDS = "hands: a part is reseated or replaced"
    TIME = "time: it passes by itself"
    JOB = "the end of the job: nothing is wrong with the node"


class PeerRemedy(StrEnum):
    """What NVSentinel does about it: its monitors see GPUs, NVSwitches and the kernel's GPU lines (shared with no fabric)."""

    NOTHING = "not seen"
    RESET = "cordon, drain, reset of the GPUs"
    REBOOT = "cordon, drain, reboot"


class Reach(StrEnum):
    """Which nodes one fault hits, besides the one on which it falls."""

    NODE = ""
    LEAF = "all nodes of its leaf switch"
    RACK = "all nodes of its rack"
    CELL = "all nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Onset:
    """Where and how one fault begins: what a kind makes its plan from."""

    # Unique in the fleet; the name of the fault on its machine.
    name: str
    machine: MachineState
    # Each of them ends it.
    fixes: tuple[Fix, ...]
    # Which of the node's like parts it hits, 0 to 7.
    part: int
    # Until it passes by itself.
    lasts_s: float
    # Whether a diagnosis finds it, where nothing else shows it.
    found: bool
    # Each of them ends it for `relapse_s` only; each of them makes it worse.
    soothed_by: tuple[Fix, ...] = ()
    relapse_s: float = 0.0
    worsened_by: tuple[Fix, ...] = ()
    # The how manieth of the nodes that it hits, from 0.
    nth: int = 0


Plan = tuple[ScheduledChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    """One kind of fault."""

    name: str
    summary: str
    # The changes of the machine; the first one begins the fault `Onset.name`.
    plan: Callable[[Onset], Plan]
    harm: Harm
    # Remedy -> the share of these faults that it ends, at least; from the gentlest.
    cures: Mapping[Fix, float] = field(default_factory=dict)
    cured: Cured = Cured.HANDS
    # What gpuward with its shipped rules takes it for; empty: for nothing.
    seen_as: str = ""
    # Remedy -> the share of these faults that it seems to end: they come again after a time (median, sigma; seconds).
    soothes: Mapping[Fix, float] = field(default_factory=dict)
    relapses: tuple[float, float] = (8 * 3600.0, 0.8)
    # Remedy -> the share of these faults that it makes worse.
    worsens: Mapping[Fix, float] = field(default_factory=dict)
    # How long it lasts where time ends it, seconds: median and sigma of a lognormal distribution.
    lasts: tuple[float, float] = (600.0, 0.5)
    # Whether it harms the job only after it has lasted so long.
    late: bool = False
    # Whether alerts on the usual exporters (DCGM's, the node's, systemd's) see it, and a health check on the node.
    alerts: bool = True
    checked: bool = True
    peer: PeerRemedy = PeerRemedy.NOTHING
    reach: Reach = Reach.NODE
    # Where the numbers are from; empty: stated here.
    source: str = ""

    @property
    def benign(self) -> bool:
        """Whether nothing is to be done about the node: it passes, or is about a job."""
        return self.cured is not Cured.HANDS


# What ends a fault besides remedies.
ALWAYS: Mapping[Cured, tuple[Fix, ...]] = {
    Cured.HANDS: (),
    Cured.TIME: (Fix.TIME,),
    Cured.JOB: (Fix.END_JOB,),
}


def begins(onset: Onset, component: str, *, hangs_node: bool = False, target: str = "") -> ScheduledChange:
    """The fault itself, without a symptom of its own: its kind tells the rest."""
    fault = Fault(
        name=onset.name,
        component=component,
        fixes=onset.fixes,
        hangs_node=hangs_node,
        target=target or onset.name,
    )
    return after(0, FaultBegins(fault=fault))
