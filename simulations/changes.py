"""What can happen to a simulated machine: plain values. Pure.

Faults are lists of them (simulations/faults.py), remedies lead to them (simulations/remedies.py), and
simulations/machines.py says what each does to the machine's state.
"""

from dataclasses import dataclass

from simulations.ailments import Ailment, Cure


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSays:
    """A line in the kernel log; the agent's own parser reads it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLost:
    """A GPU stops answering; nobody has noticed."""

    bdf: str
    dead: bool = False  # nothing brings it back but another card; else cutting its power does


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlAsks:
    """NVML asks a GPU, and tells when it does not answer."""

    bdf: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRemoved:
    """The kernel gives up the PCI device of a lost GPU."""

    bdf: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReturned:
    """It answers again."""

    bdf: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFails:
    """A job writes a CUDA error into its log."""

    bdf: str
    job: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuIdles:
    """A GPU is held by a job or a unit and does nothing; it was so already `idle_s` seconds."""

    bdf: str
    job: str = ""
    unit: str = ""
    idle_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleGoesOn:
    """The watch looks again; nothing when the GPU works meanwhile."""

    bdf: str
    idle_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFreed:
    """Nobody holds it any more."""

    bdf: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PortErrs:
    """A port begins to make errors, `per_s` a second."""

    device: str
    per_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorsGoOn:
    """The counters are read again; nothing when the errors have ended."""

    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PortDown:
    """A port is taken down, or loses its link for good (`cut`) or until it is trained anew (`stuck`)."""

    device: str
    stuck: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PortUp:
    """A port is trained anew: its errors end, and it has a link again if its cable is whole."""

    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterMoves:
    """Another subnet manager is master: every port learns its LID."""

    sm_lid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierLost:
    """A link loses its carrier: for good (`cut`), or until it is taken down and up."""

    link: str
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminDown:
    """A link is taken down."""

    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminUp:
    """A link is taken up: a stuck one gets its carrier, a cut one does not."""

    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitIs:
    """A systemd unit changes its state."""

    unit: str
    active: str  # active | inactive | failed
    result: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FallsSilent:
    """The node sends nothing and hears nothing for so long; what it sees meanwhile it sends afterwards."""

    for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FallsIll:
    """An ailment begins."""

    ailment: Ailment


@dataclass(frozen=True, slots=True, kw_only=True)
class SaysAgain:
    """The agent repeats the signs of an ailment that lasts."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Treated:
    """A cure is applied to a part."""

    cure: Cure
    component: str
    what: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoesDown:
    """The node goes down: for `for_s`, after which it boots, or until it is switched on (inf)."""

    for_s: float
    power: bool = False  # its power was cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Boots:
    """The node is up again with another boot id, and its agent looks at everything anew."""

    power: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBegins:
    """A job is on the node."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnds:
    """A job leaves the node, and lets go of its GPUs."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """The scheduler gives the node no new jobs; an empty reason: it does again."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """People were there: every part is whole again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnds:
    """A command that the node was told has ended; the node reports it."""

    command: str
    outcome: str  # agent.contract.commands.Outcome
    why: str
    took_s: float


Change = (
    KernelSays
    | GpuLost
    | NvmlAsks
    | GpuRemoved
    | GpuReturned
    | JobFails
    | GpuIdles
    | IdleGoesOn
    | GpuFreed
    | PortErrs
    | ErrorsGoOn
    | PortDown
    | PortUp
    | MasterMoves
    | CarrierLost
    | AdminDown
    | AdminUp
    | UnitIs
    | FallsSilent
    | FallsIll
    | SaysAgain
    | Treated
    | GoesDown
    | Boots
    | JobBegins
    | JobEnds
    | Drained
    | Mended
    | CommandEnds
)


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """A change that comes `s` seconds from now."""

    s: float
    change: Change
