"""What a gate is: it judges a case, and answers with a verdict and its reason."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from brain.core.context import Context
from brain.core.pack.spec import Rung
from brain.core.state import Incident, Run

RETRY_S = 15.0  # how soon a gate is asked again that says nothing else


class Decision(StrEnum):
    """A gate's answer."""

    GO = "go"
    HOLD = "hold"  # not now; the gates are asked again later
    APPROVAL = "approval"  # only if an operator approves
    STOP = "stop"  # not at all: people must take over


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A gate's answer and its reason."""

    answer: Decision
    gate: str
    reason: str
    # HOLD: ask again after this long, unless something else wakes the run before; APPROVAL: not before
    retry_s: float = RETRY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a gate judges: may this rung of this run begin now?"""

    ctx: Context
    run: Run
    incident: Incident
    rung: Rung


Gate = Callable[[Case], Verdict | None]
