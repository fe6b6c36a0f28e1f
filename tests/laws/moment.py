"""One input with the effects that it led to, sorted once for all who look at them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from brain.core.effects import Effect, Note, Perform, SendPage, ShowIncident, ShowRun, Step
from brain.core.inputs import Input
from brain.core.state import Incident, Run


@dataclass(slots=True, kw_only=True)
class Moment:
    """What oracles see, before the cell's truth takes it over."""

    given: Input
    now: float
    # the steps that leave now
    performed: list[Step] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    pages: list[SendPage] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)


def moment(given: Input, now: float, effects: Iterable[Effect]) -> Moment:
    """The moment of one input, without the effects that no oracle and no truth is about."""
    made = Moment(given=given, now=now)
    for effect in effects:
        match effect:
            case Note():
                made.notes.append(effect)
            case ShowIncident(incident=incident):
                made.incidents.append(incident)
            case ShowRun(run=run):
                made.runs.append(run)
            case SendPage():
                made.pages.append(effect)
            case Perform(step=step):
                made.performed.append(step)
    return made
