"""Faults that situations are made of, as moves on the machines of a cell."""

import math
from collections.abc import Iterable

from agent.contract.messages import Severity
from simulations import changes as ch
from simulations.events import event
from simulations.faults import Fault, Fix
from simulations.scenarios.moves import GPU, Moves, change, lasting, xid

INFO = Severity.INFO


def gpu_lost(
    at_s: float, on: Iterable[str], gpu: str = GPU, *, dead: bool = False, every_s: float = 0
) -> Moves:
    """A GPU falls off the bus; a power cycle brings it back, unless it is dead."""
    bdf = gpu.removeprefix("gpu/")
    return change(
        at_s,
        on,
        ch.GpuLost(bdf=bdf, dead=dead),
        ch.KernelLogs(text=xid(79, gpu, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")),
        ch.NvmlQueried(bdf=bdf),
        every_s=every_s,
    )


def gpu_wants_reset(at_s: float, on: Iterable[str], gpu: str = GPU, *, every_s: float = 0) -> Moves:
    """An uncontained memory error: XID 95, and NVML wants a reset until the GPU is reset."""
    fault = Fault(
        name=f"reset wanted {gpu} {at_s}",
        component=gpu,
        fixes=(Fix.RESET_GPU, Fix.TIME),
        symptoms=(event("gpu.recovery_action", gpu, action=1, name="reset"),),
        recovery=(event("gpu.recovery_action", gpu, INFO, action=0, name="none"),),
    )
    text = xid(95, gpu, "pid=1234, name=python3, Uncontained: FBHUB (0x1). RST: Yes, D-RST: No")
    return change(at_s, on, ch.KernelLogs(text=text), ch.FaultBegins(fault=fault), every_s=every_s)


def nic_broken(at_s: float, on: Iterable[str]) -> Moves:
    """The firmware of a card does not answer until the card is reset."""
    bad = event("nic.driver", "nic/mlx5_1", Severity.FATAL, what="health_compromised", message="miss count")
    return lasting(at_s, on, bad, fixes=(Fix.RESET_NIC,))


def rows_spent(at_s: float, on: Iterable[str]) -> Moves:
    """A row of a GPU's memory can no longer be remapped: the card must be replaced."""
    rows = {"pending": False, "corrected": 0}
    bad = event("gpu.remap", GPU, Severity.FATAL, failure=True, uncorrected=8, **rows)
    return lasting(at_s, on, bad, event("gpu.remap", GPU, INFO, failure=False, uncorrected=0, **rows))


def port_down(
    at_s: float, on: Iterable[str], *, for_s: float = math.inf, every_s: float = 0, port: str = "mlx5_0"
) -> Moves:
    """An InfiniBand port loses its link, as when the switch's end is dead: no reset brings it back."""
    given = tuple(on)
    down = change(at_s, given, ch.PortDown(device=port, cut=True), every_s=every_s)
    if for_s == math.inf:
        return down
    return down + change(at_s + for_s, given, ch.Repaired())


def dark(at_s: float, on: Iterable[str], for_s: float, *, every_s: float = 0) -> Moves:
    """Nodes lose their power, and boot when they have it again."""
    return change(at_s, on, ch.GoesDown(for_s=for_s, power=True), every_s=every_s)


def restarts(at_s: float, on: Iterable[str], for_s: float, *, every_s: float = 0) -> Moves:
    """Somebody restarts nodes in order: their agents are stopped before, and say so when they start again."""
    return change(at_s, on, ch.GoesDown(for_s=for_s, in_order=True), every_s=every_s)


def agent_restarts(at_s: float, on: Iterable[str], silent_s: float, *, every_s: float = 0) -> Moves:
    """An agent is silent for so long and starts again."""
    started = event("agent.started", "node", INFO, version="0.2.0", kernel="6.1.0", gpus=8)
    fault = Fault(name=f"start {at_s}", component="node", fixes=(Fix.TIME,), symptoms=(started,))
    given = tuple(on)
    gone = change(at_s, given, ch.GoesUnreachable(for_s=silent_s), every_s=every_s)
    back = change(
        at_s + silent_s, given, ch.FaultBegins(fault=fault), ch.FixApplied(fix=Fix.TIME, component="node"), every_s=every_s
    )  # fmt: skip
    return gone + back


def hot(at_s: float, on: Iterable[str], gpus: Iterable[str], for_s: float) -> Moves:
    """GPUs are at their temperature limit."""
    moves: Moves = ()
    for gpu in gpus:
        bad = event("gpu.temperature", gpu, active=True, sensor="gpu", margin_c=-1.0)
        moves += lasting(
            at_s, on, bad, event("gpu.temperature", gpu, INFO, active=False, sensor="gpu", margin_c=9.0), for_s=for_s
        )  # fmt: skip
    return moves
