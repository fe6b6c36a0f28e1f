"""The shape of a fault that a drill can inject, and what its plans share. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agent.contract.errors import Refused
from simulations.ailments import Ailment
from simulations.changes import After, FallsIll
from simulations.machines import Machine

JOB = "4711"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One row of `gpuward drill --list`."""

    name: str
    summary: str
    nodes: Literal["one", "all"]
    ends: str  # what ends it, for people
    plan: Callable[
        [Machine], tuple[After, ...]
    ]  # Refused when the machine has nothing left that can break so
    heals: bool = True  # False: it goes to a person
    approval: bool = False  # its remedy waits until a person agrees
    breaks: bool = True  # False: it mends


def ill(*ailments: Ailment) -> Callable[[Machine], tuple[After, ...]]:
    """A plan: these ailments begin, one after the other within a second. Refused where one is there already."""

    def plan(machine: Machine) -> tuple[After, ...]:
        for ailment in ailments:
            if ailment.name in machine.ailments:
                raise Refused(f"{machine.name} has {ailment.name} already: wait until it is mended")
        return tuple(After(s=0.1 * n, change=FallsIll(ailment=one)) for n, one in enumerate(ailments))

    return plan


def pick(candidates: list[str], machine: Machine, what: str) -> str:
    """The first of what is whole still. Refused when nothing is."""
    if not candidates:
        raise Refused(
            f"{machine.name} has no healthy {what} left: wait until it is mended, or name another node"
        )
    return candidates[0]
