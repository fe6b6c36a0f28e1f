"""The shape of a simulated action, and what the actions share. Pure.

An action reads the state of a machine and answers how it ends and which changes it causes; parameters have been checked
already. Whether it helps is decided by the state and by the fault, not by the action: a bounced link gets its carrier
only if it was stuck, not if its cable is cut; the reset of a GPU brings none back that is off the bus.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.contract.commands import Outcome
from agent.contract.figures import Figure, encode
from agent.contract.messages import Scalar
from simulations.changes import FixApplied, ScheduledChange, after
from simulations.faults import Fix
from simulations.state import ActionTimes, MachineState

ASK_S = 0.1  # a request that is answered at once
COLLECT_S = 0.5
TRAIN_S = 1.0  # the training of a link
Params = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequest:
    """What an action is to be done on."""

    machine: MachineState
    params: Params
    # Cause and rule; only the brain's own actions get it, for the reason of a drain.
    why: str = ""
    # How long an action that waits has waited so far; infinite: it is not to wait, and does now what it does at its end.
    waited_s: float = math.inf

    @property
    def times(self) -> ActionTimes:
        """How long the long actions take on this machine."""
        return self.machine.times

    def text(self, name: str) -> str:
        """A required parameter as text."""
        return str(self.params[name])

    def number(self, name: str, default: float) -> float:
        """An optional parameter as a number."""
        return float(self.params.get(name, default))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedResult:
    """How an action ends `took_s` after it began, and what it changes meanwhile."""

    outcome: Outcome
    why: str
    took_s: float = 0.0
    # It is not over yet, and is asked again in this time; 0: it is over.
    again_s: float = 0.0
    changes: tuple[ScheduledChange, ...] = ()
    # agent.look: sources of kinds that could not look, comma separated.
    blind: str = ""
    # What it measured, and what nodes like it are made of.
    figures: tuple[Figure, ...] = ()
    alike: str = ""
    # A drain: why somebody else keeps the node out of service; empty: nobody else does.
    kept_out: str = ""

    @property
    def data(self) -> dict[str, Scalar]:
        """Further fields of the event with the result."""
        if self.kept_out:
            return {"ours": False, "reason": self.kept_out}
        return {"figures": encode(self.figures), "alike": self.alike} if self.figures else {}


SimulatedAction = Callable[[ActionRequest], SimulatedResult]
# About a whole fabric: it sees all machines, and its changes come to each of them.
FabricAction = Callable[[Sequence[MachineState]], SimulatedResult]


def succeeded(why: str, took_s: float, *changes: ScheduledChange) -> SimulatedResult:
    """It worked."""
    return SimulatedResult(outcome=Outcome.OK, why=why, took_s=took_s, changes=changes)


def waiting(request: ActionRequest, why: str, left_s: float, *changes: ScheduledChange) -> SimulatedResult:
    """It waits, for `left_s` at most."""
    again_s = min(request.times.look_s, left_s)
    return SimulatedResult(outcome=Outcome.UNKNOWN, why=why, again_s=again_s, changes=changes)


def failed(why: str, took_s: float, *changes: ScheduledChange) -> SimulatedResult:
    """It was done, or partly done, and did not reach its aim."""
    return SimulatedResult(outcome=Outcome.FAILED, why=why, took_s=took_s, changes=changes)


def refused(why: str) -> SimulatedResult:
    """Nothing was done."""
    return SimulatedResult(outcome=Outcome.REFUSED, why=why)


def fixed(why: str, took_s: float, component: str, *fixes: Fix) -> SimulatedResult:
    """It worked, and applies these fixes to a part when it ends."""
    return succeeded(why, took_s, *(after(took_s, FixApplied(fix=fix, component=component)) for fix in fixes))


def no_unit(machine: MachineState, name: str) -> SimulatedResult:
    """Refused: there is no such systemd unit."""
    return refused(f"{name} is not a unit of this node (have: {', '.join(machine.units)})")


def jobs_hold_gpus(machine: MachineState) -> SimulatedResult:
    """Refused: the processes of jobs hold GPUs."""
    return refused(f"processes of job {', '.join(machine.jobs)} hold GPUs")


def measured(result: SimulatedResult, *figures: Figure) -> SimulatedResult:
    """The result with these figures; all simulated machines are made of the same parts."""
    return replace(result, figures=figures, alike="simulated; 8 NVIDIA H100; 8 MT4129")


def faulty_gpus(machine: MachineState) -> list[str]:
    """Components of the GPUs that are lost or have a fault, and of such NVSwitches."""
    lost = [gpu.component for gpu in machine.gpus.values() if not gpu.present]
    return lost + [
        fault.component
        for fault in machine.faults.values()
        if fault.component.startswith(("gpu/", "nvswitch/"))
    ]
