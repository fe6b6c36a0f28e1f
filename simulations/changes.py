"""What can happen to a simulated machine: plain values. Pure.

Faults are lists of them (simulations/faults.py), remedies lead to them (simulations/remedies.py), and
simulations/machines.py says what each does to the machine's state.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSays:
    """A line in the kernel log; the agent's own parser reads it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLost:
    """A GPU stops answering; nobody has noticed. `repair_s` after its evidence was collected it is mended (0: never)."""

    bdf: str
    repair_s: float


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
    repair_s: float = 0.0  # so long after its evidence was collected the scheduler ends the job; 0: never


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
    """A port is taken down."""

    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PortUp:
    """A port is trained anew: its errors end."""

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
    | Mended
    | CommandEnds
)


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """A change that comes `s` seconds from now."""

    s: float
    change: Change
