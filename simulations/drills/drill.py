"""The shape of a drill, and what the plans of drills share. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.contract.errors import Refused
from simulations.changes import FaultBegins, ScheduledChange, after
from simulations.faults import Fault
from simulations.state import MachineState

JOB = "4711"  # the job that drills run, hang or crash
LEAVES = 2  # simulated nodes stand under so many leaf switches, in turn
FEW = 4  # nodes of one leaf: its switch is suspected, and not yet the fabric
Plan = tuple[ScheduledChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """One row of `gpuward drill --list`."""

    name: str
    # One sentence: what happens.
    summary: str
    # Which nodes it affects: one of them, some of one leaf switch, or all.
    nodes: Literal["one", "leaf", "all"]
    # What ends it, for people.
    ends: str
    # The changes that it makes to a machine; raises Refused when nothing healthy is left that can break this way.
    plan: Callable[[MachineState], Plan]
    # False: it goes to a person.
    heals: bool = True
    # Whether its runbook waits until a person approves.
    approval: bool = False
    # False: it repairs.
    breaks: bool = True


def of_one_leaf(names: Sequence[str], node: str) -> list[str]:
    """`node` and others of its leaf switch, FEW at most. `names`: of all simulated nodes, in their order."""
    mates = [name for name in names[names.index(node) % LEAVES :: LEAVES] if name != node]
    return [node, *mates][:FEW]


def always(*plan: ScheduledChange) -> Callable[[MachineState], Plan]:
    """The same plan whatever the state of the machine."""
    return lambda _: plan


def begin(*faults: Fault) -> Callable[[MachineState], Plan]:
    """A plan in which these faults begin a tenth of a second apart. Refused where the machine has one of them already."""

    def plan(machine: MachineState) -> Plan:
        for fault in faults:
            if fault.name in machine.faults:
                raise Refused(f"{machine.name} has {fault.name} already: wait until it is repaired")
        return tuple(after(0.1 * n, FaultBegins(fault=fault)) for n, fault in enumerate(faults))

    return plan


def first_healthy(candidates: list[str], machine: MachineState, what: str) -> str:
    """The first of the healthy parts. Refused when there is none."""
    if not candidates:
        raise Refused(
            f"{machine.name} has no healthy {what} left: wait until it is repaired, or name another node"
        )
    return candidates[0]


def healthy_gpu(machine: MachineState) -> str:
    """The first GPU that is there and not idle. Refused when there is none."""
    return first_healthy(
        [gpu.bdf for gpu in machine.gpus.values() if gpu.present and not gpu.idle], machine, "GPU"
    )
