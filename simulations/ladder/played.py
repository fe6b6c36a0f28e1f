"""What comes of a play of a runbook. Pure."""

from dataclasses import dataclass, field

from agent.contract.actions.spec import Disrupts
from brain.core.effects import SendPage, Step
from brain.core.pack.spec import Rung
from brain.core.state import Incident, IncidentState
from simulations.ladder.ends import StepEnd


@dataclass(slots=True, kw_only=True)
class TriedStep:
    """A step that has left, and how it ended."""

    step: Step
    at: float
    run: int  # the number of its run, from 1
    runbook: str
    rung: Rung
    number: int  # of its rung in its part of the runbook, from 1
    attempt: int
    returning: bool
    approved: bool  # by a person, after it was asked for
    broken: bool  # whether the fault was there
    disrupts: Disrupts
    end: StepEnd | None = None
    ended_at: float = 0.0


@dataclass(slots=True, kw_only=True)
class LadderPlayed:
    """What came of a play. `waits`: the step for which the script said nothing."""

    steps: list[TriedStep] = field(default_factory=list)
    waits: TriedStep | None = None
    incidents: list[Incident] = field(default_factory=list)
    pages: list[tuple[float, SendPage]] = field(default_factory=list)
    drained: bool = False
    around: tuple[object, ...] = ()  # what else goes on when a step waits, on which it depends what follows
    broken: bool = False
    ended_at: float = 0.0
    begun_at: float = 0.0

    def told(self) -> dict[str, float]:
        """What people were paged about since the last step left: id -> when first."""
        since = self.steps[-1].at if self.steps else 0.0
        found: dict[str, float] = {}
        for at, page in self.pages:
            if at >= since:
                found.setdefault(page.subject.id, at)
        return found

    def calls(self) -> list[SendPage]:
        """The pages that tell something, in order; not repeats and resolutions."""
        return [page for _, page in self.pages if page.what in ("open", "update")]

    def settled_at(self) -> float:
        """When the last of its incidents was closed, or people were told of it; else when the play ended."""
        told = self.told()
        times = [
            one.closed_at if one.state is IncidentState.CLOSED else told.get(one.id, self.ended_at)
            for one in self.incidents
        ]
        return max(times, default=self.ended_at)
