"""How a step of a runbook can end in a rehearsal, and which of these ends a step can have. Pure."""

from enum import StrEnum

from agent.contract.actions.spec import ActionSpec
from agent.shared.words import later
from brain.core.effects import Step
from brain.core.pack.spec import Rung

NINE_MINUTES_S = 540.0  # after so long the fault is back: a remedy that only seemed to help


class StepEnd(StrEnum):
    """What comes of one step."""

    WORKS = later("works")  # of a step that heals nothing
    HEALS = later("heals")  # and the fault is gone
    STAYS = later("done, and the fault stays")
    RETURNS = later("heals for nine minutes")
    FAILS = later("fails")
    REFUSED = later("is refused")
    SILENT = later("never answers")
    DIES = later("the node dies in it")  # it starts again after a while, and the fault is there still
    LEADER_DIES = later("the brain dies in it")  # another one leads, and does it or asks


def possible(spec: ActionSpec, rung: Rung, step: Step, *, broken: bool) -> tuple[StepEnd, ...]:
    """The ends of a step, the good ones first. `broken`: the fault is there, so that it can be healed."""
    heals = broken and spec.heals and rung.verify is not None
    good = (StepEnd.HEALS, StepEnd.STAYS, StepEnd.RETURNS) if heals else (StepEnd.WORKS,)
    refused = (StepEnd.REFUSED,) if rung.on_refusal else ()
    dies = StepEnd.LEADER_DIES if step.where == "brain" else StepEnd.DIES
    return (*good, StepEnd.FAILS, *refused, StepEnd.SILENT, dies)
