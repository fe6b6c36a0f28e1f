"""How often rules fired and runbooks ran, counted from the history. Whoever asks again within a minute gets the same."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median

from brain.console.brain_view import History
from brain.core.state import IncidentState, RunState

KEPT_S = 60.0
_OVER = (IncidentState.CLOSED.value, IncidentState.EXPLAINED.value)


@dataclass(slots=True, kw_only=True)
class Fired:
    """Of a rule."""

    fired: int = 0
    open: int = 0
    last_at: float = 0.0
    # seconds from opening to the end of the run that healed it
    healed_s: list[float] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Ran:
    """Of a runbook."""

    # state -> how many
    states: dict[str, int] = field(default_factory=dict)
    last_at: float = 0.0
    # seconds that those took which succeeded
    took_s: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of everything."""

    # rule -> its figures
    rules: Mapping[str, Fired]
    # runbook -> its figures
    runbooks: Mapping[str, Ran]


class Counting:
    """Counts when the last count is old. For one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counted: Figures | None = None
        self._at_s = 0.0

    def figures(self, history: History) -> Figures:
        """Returns the figures, at most KEPT_S old."""
        if self._counted is None or self._clock() >= self._at_s + KEPT_S:
            self._counted, self._at_s = count(history), self._clock()
        return self._counted


def count(history: History) -> Figures:
    """Counts."""
    runbooks: dict[str, Ran] = {}
    healed: dict[str, float] = {}
    for incident, runbook, state, started_at, ended_at in history.run_figures():
        ran = runbooks.setdefault(runbook, Ran())
        ran.states[state] = ran.states.get(state, 0) + 1
        ran.last_at = max(ran.last_at, started_at)
        if state == RunState.SUCCEEDED:
            ran.took_s.append(ended_at - started_at)
            healed[incident] = max(healed.get(incident, 0.0), ended_at)
    rules: dict[str, Fired] = {}
    for id_, rule, state, opened_at in history.incident_figures():
        fired = rules.setdefault(rule, Fired())
        fired.fired += 1
        fired.open += state not in _OVER
        fired.last_at = max(fired.last_at, opened_at)
        if id_ in healed:
            fired.healed_s.append(max(0.0, healed[id_] - opened_at))
    return Figures(rules=rules, runbooks=runbooks)


def middle(values: list[float]) -> float | None:
    """Returns the median, in seconds; None: of nothing."""
    return round(median(values), 3) if values else None
