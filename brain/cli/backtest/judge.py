"""The real engine in recorded time: takes inputs in the order of their times, keeps what it opens, decides, holds and pages.

Nothing is performed: nobody is there to do it (law 9). It holds what is open and what it has found, not what it was given.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

from agent.contract.actions.spec import Disrupts
from brain.cli.backtest.outcome import (
    BacktestOutcome,
    FoundDecision,
    FoundHold,
    FoundIncident,
    FoundPage,
    When,
)
from brain.core.effects import Note, SendPage
from brain.core.engine import Engine
from brain.core.inputs import Delivery, Input, Intent, TimerFired
from brain.core.pack.actions import ACTIONS
from brain.core.rehearsal.timeline import Timeline
from brain.core.state import Incident, IncidentState

# Of brain.core.healing.outline.
_DISRUPTS = re.compile(r" — disrupts (\w+)")
_GATES = re.compile(r"; gates: (\w+) \((.*)\)(?:; verified by |$)")
_RANKS = (Disrupts.NOTHING, Disrupts.JOB, Disrupts.NODE, Disrupts.FABRIC)
_WAITS = {"run.held": "hold", "run.approval": "approval", "run.exhausted": "stop"}
_MOST_NODES = 64  # nodes of one incident that are listed


@dataclass(slots=True, kw_only=True)
class OnLog:
    """What a recorded log answers itself: nobody else may."""

    # (name, due)
    timers: set[tuple[str, float]] = field(default_factory=set)
    # Of steps whose intent is there, and of pages that were delivered or not.
    intents: set[str] = field(default_factory=set)
    pages: set[str] = field(default_factory=set)

    def take(self, given: Input) -> None:
        """One input of the log."""
        match given:
            case TimerFired(name=name, due=due):
                self.timers.add((name, due))
            case Intent(step=step):
                self.intents.add(step)
            case Delivery(page=page):
                self.pages.add(page)

    def has(self, given: Input) -> bool:
        """Whether such an input comes by itself."""
        match given:
            case TimerFired(name=name, due=due):
                return (name, due) in self.timers
            case Intent(step=step):
                return step in self.intents
            case Delivery(page=page):
                return page in self.pages
        return False


class _Recorded(Timeline):
    """A timeline that lets the log answer what the log has answered; the rest it answers as always, such as timers that this
    version sets otherwise than the one that wrote the log.
    """

    def __init__(self, engine: Engine, on_log: OnLog) -> None:
        super().__init__(engine)
        self._on_log = on_log

    def feed(self, given: Input, at: float) -> None:
        """What follows from an effect."""
        if not self._on_log.has(given):
            self.given(given, at)

    def given(self, given: Input, at: float) -> None:
        """What the recording has."""
        super().feed(given, at)


@dataclass(slots=True, kw_only=True)
class _Paged:
    at: float
    newest: SendPage
    sent: Counter[str] = field(default_factory=Counter)


class Judge:
    """One engine. Call `close` at the end."""

    def __init__(self, *, observe: bool, when: When, on_log: OnLog | None = None) -> None:
        """`observe`: every runbook in observe mode, whatever the settings are. `when`: how a time is shown. `on_log`: what will
        be given; None: facts only.
        """
        self._engine = Engine(actions=ACTIONS, observe_all=observe)
        self._timeline = _Recorded(self._engine, on_log or OnLog())
        self._when = when
        self._plans: dict[str, tuple[float, Note]] = {}  # by run
        self._held: list[tuple[float, Note, str]] = []
        self._quiet: set[str] = set()
        self._paged: dict[tuple[str, str], _Paged] = {}

    def feed(self, given: Input, at: float) -> None:
        """The next input. Times never run backwards: whoever gives them sees to that."""
        self._timeline.given(given, at)
        self.run(at)

    def run(self, until: float) -> None:
        """Everything that is due by then."""
        while (due := self._timeline.next_at()) is not None and due <= until:
            self._timeline.run(due)
            self._take()
        self._timeline.run(until)

    def close(self) -> None:
        """Frees the matcher."""
        self._engine.close()

    def _take(self) -> None:
        for note in self._timeline.notes:
            if note.kind == "run.started":
                self._plans[note.run] = (note.at, note)
            elif note.kind == "incident.closed" and note.data.get("quiet"):
                self._quiet.add(note.incident)
            elif note.kind in _WAITS and note.data.get("gate"):
                self._held.append((note.at, note, _WAITS[note.kind]))
        self._timeline.notes.clear()
        for page in self._timeline.pages:
            paged = self._paged.setdefault(
                (page.subject.key or page.subject.id, page.to), _Paged(at=self._timeline.now, newest=page)
            )
            paged.newest = page
            paged.sent[page.what] += 1
        self._timeline.pages.clear()

    def outcome(self) -> BacktestOutcome:
        """What came of it."""
        known = self._timeline.incidents
        found = BacktestOutcome(quiet=len(self._quiet))
        for incident in sorted(known.values(), key=_order):
            if incident.state is IncidentState.EXPLAINED:
                found.explained += 1
            elif incident.id not in self._quiet:
                found.incidents.append(self._incident(incident))
        for run, (at, note) in self._plans.items():
            about = known.get(note.incident)
            if about is None or about.id in self._quiet:
                continue
            decision = self._decision(run, at, note, about)
            found.decisions.append(decision)
            found.holds += self._foreseen(decision)
        for at, note, answer in self._held:
            if (about := known.get(note.incident)) is not None:
                hold = FoundHold(
                    run=note.run,
                    cause=about.cause,
                    place=about.scope,
                    at=self._when(at),
                    gate=str(note.data["gate"]),
                    answer=answer,
                    why=note.text,
                )
                found.holds.append(hold)
        for (subject, to), paged in self._paged.items():
            about_ = paged.newest.subject
            found.pages.append(
                FoundPage(
                    subject=subject,
                    cause=about_.cause,
                    place=about_.scope,
                    severity=about_.severity,
                    to=to,
                    since=self._when(paged.at),
                    sent=dict(sorted(paged.sent.items())),
                )
            )
        return found

    def _incident(self, incident: Incident) -> FoundIncident:
        over = incident.state in (IncidentState.RECOVERED, IncidentState.CLOSED)
        ended = incident.clear_since or incident.closed_at
        return FoundIncident(
            id=incident.id,
            cause=incident.cause,
            severity=incident.severity,
            place=incident.scope,
            since=self._when(_since(incident)),
            until=self._when(ended) if over else "",
            state=incident.state.value,
            nodes=incident.nodes,
            affected=sorted(incident.affected)[:_MOST_NODES],
            explains=incident.explains,
            rule=incident.rule,
            because=incident.because,
            because_zh=incident.because_zh,
            runbook=incident.runbook,
        )

    def _decision(self, run: str, at: float, note: Note, incident: Incident) -> FoundDecision:
        plan = note.data.get("plan")
        rungs = plan if isinstance(plan, list) else []
        disrupts = [Disrupts(match[1]) for rung in rungs if (match := _DISRUPTS.search(rung)) is not None]
        shown = self._timeline.runs.get(run)
        return FoundDecision(
            id=run,
            cause=incident.cause,
            place=incident.scope,
            at=self._when(at),
            runbook=str(note.data.get("runbook", "")),
            state=shown.state.value if shown is not None else "",
            disrupts=max(disrupts, key=_RANKS.index, default=Disrupts.NOTHING),
            rungs=list(rungs),
        )

    @staticmethod
    def _foreseen(decision: FoundDecision) -> list[FoundHold]:
        """What the gates said of an observed run as it began; the same answer to several rungs once."""
        told = dict.fromkeys(match.groups() for rung in decision.rungs if (match := _GATES.search(rung)))
        return [
            FoundHold(
                run=decision.id,
                cause=decision.cause,
                place=decision.place,
                at=decision.at,
                gate="",
                answer=str(answer),
                why=str(why),
            )
            for answer, why in told
        ]


def _since(incident: Incident) -> float:
    return min((fact.at for fact in incident.evidence), default=incident.opened_at)


def _order(incident: Incident) -> tuple[float, str, str, str]:
    return (_since(incident), incident.scope, incident.cause, incident.id)
