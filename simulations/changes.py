"""What can happen to a simulated machine: plain values. Pure.

Drills plan them (simulations/drills), actions cause them (simulations/actions), and simulations/machines.py decides
what each does to the state of the machine and what its agent reports.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.contract.messages import Scalar, UnsentEvent
from simulations.faults import Fault, Fix

# GPUs, and what holds them


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLost:
    """A GPU stops answering; nothing has been reported yet."""

    bdf: str
    # Only another card helps; otherwise a power cycle brings it back.
    dead: bool = False
    # A boot brings it back too, without a power cycle.
    warm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlQueried:
    """The agent queries a GPU by NVML, and reports when it does not answer."""

    bdf: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRemoved:
    """The kernel removes the PCI device of a lost GPU."""

    bdf: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReturned:
    """A GPU answers again."""

    bdf: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuIdles:
    """A job or a unit holds a GPU that does nothing, and has not for `idle_s` seconds."""

    bdf: str
    job: str = ""
    unit: str = ""
    idle_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleChecked:
    """The agent looks at an idle GPU again; it reports nothing when the GPU works by then."""

    bdf: str
    idle_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReleased:
    """Nothing holds a GPU any more."""

    bdf: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaErrorLogged:
    """A job writes a CUDA error about a GPU into its log."""

    bdf: str
    job: str
    name: str


# InfiniBand ports


@dataclass(frozen=True, slots=True, kw_only=True)
class PortErrorsBegin:
    """A port begins to count `per_s` errors a second."""

    device: str
    per_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountersRead:
    """The agent reads the error counters of a port; it reports nothing when they do not grow any more."""

    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PortDown:
    """A port is taken down, or loses its link: for good (`cut`), or until it is reset (`stuck`)."""

    device: str
    stuck: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PortUp:
    """The link of a port is trained again: its errors end, and it comes up unless its cable is cut."""

    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterChanges:
    """Another subnet manager becomes master: every port learns its LID."""

    sm_lid: int


# Network interfaces


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierLost:
    """An interface loses its carrier: for good (`cut`), or until it is taken down and up."""

    link: str
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminDown:
    """An interface is taken down."""

    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminUp:
    """An interface is taken up: it gets its carrier if it was stuck, not if its cable is cut."""

    link: str


# The operating system and its jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLogs:
    """A line in the kernel log; the agent's own parser reads it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSays:
    """The agent reports something that changes nothing of the machine's own state."""

    unsent: UnsentEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitChanges:
    """A systemd unit changes its state."""

    unit: str
    # active | inactive | failed
    active: str
    result: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarts:
    """A job starts on the node."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnds:
    """A job ends, and releases its GPUs."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LooksAgain:
    """The agent looks again and tells which conditions are present and which are well."""

    # Only what concerns it; empty: everything.
    component: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnds:
    """A command of the node ends; the agent reports its result."""

    command: str
    # agent.contract.commands.Outcome
    outcome: str
    why: str
    took_s: float
    # agent.look: sources of kinds that could not look, comma separated.
    blind: str = ""
    # Further fields of its event.
    data: Mapping[str, Scalar] = field(default_factory=dict)


# The whole node


@dataclass(frozen=True, slots=True, kw_only=True)
class GoesUnreachable:
    """The node sends and receives nothing for so long; what it sees meanwhile it sends afterwards."""

    for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GoesDown:
    """The node goes down: for `for_s` seconds, after which it boots, or until it is switched on (inf)."""

    for_s: float
    # Its power is cut too.
    power: bool = False
    # Somebody asked for a restart: its agent is stopped before, and says so when it starts again.
    in_order: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Boots:
    """The node is up again with another boot id, and its agent looks at everything again."""

    power: bool = False
    in_order: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainSet:
    """The scheduler drains the node for this reason; with an empty one it resumes it."""

    reason: str


# Faults


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultBegins:
    """A fault begins."""

    fault: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class SymptomsRepeat:
    """The agent reports the symptoms of a fault again, if it lasts."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultGrows:
    """A fault that lasts by now is this one from then on; nothing where it has ended."""

    fault: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultReturns:
    """A fault that only seemed to end is there again; nothing where people have repaired the node since."""

    fault: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class FixApplied:
    """A fix is applied to a part; it ends the faults that it fixes."""

    fix: Fix
    component: str
    # The module, job or unit that the fix is about.
    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """People have repaired the node: every part works again."""

    # Whether it stays drained; otherwise they have given it back by themselves.
    stays_drained: bool = False


Change = (
    GpuLost
    | NvmlQueried
    | GpuRemoved
    | GpuReturned
    | GpuIdles
    | IdleChecked
    | GpuReleased
    | CudaErrorLogged
    | PortErrorsBegin
    | CountersRead
    | PortDown
    | PortUp
    | MasterChanges
    | CarrierLost
    | AdminDown
    | AdminUp
    | KernelLogs
    | AgentSays
    | UnitChanges
    | JobStarts
    | JobEnds
    | LooksAgain
    | CommandEnds
    | GoesUnreachable
    | GoesDown
    | Boots
    | DrainSet
    | FaultBegins
    | FaultGrows
    | FaultReturns
    | SymptomsRepeat
    | FixApplied
    | Repaired
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledChange:
    """A change that comes `delay_s` seconds from now."""

    delay_s: float
    change: Change


def after(delay_s: float, change: Change) -> ScheduledChange:
    """`change`, `delay_s` seconds from now."""
    return ScheduledChange(delay_s=delay_s, change=change)
