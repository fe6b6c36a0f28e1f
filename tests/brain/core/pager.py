"""Paging by itself: its state, a clock, and a notifier that delivers what it is given, or does not.

The test is the rest of the engine: it opens incidents, raises them and ends them. `Pager().opens("a")` pages the chain
of P1: on call at once, the lead after 5 minutes, the manager after 15. Times are in seconds since the story began.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from brain.core.context import Context
from brain.core.effects import Note, SendPage, ShowIncident
from brain.core.index import Index
from brain.core.inputs import Delivery
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import EscalationStep, Pack, Paging, Priority, Settings
from brain.core.paging import escalation
from brain.core.state import AlertGroup, Evidence, Incident, IncidentState, State

T = TypeVar("T")
BEGAN = 50_000.0
CHAIN = (
    EscalationStep(to="oncall"),
    EscalationStep(to="lead", after_s=300),
    EscalationStep(to="manager", after_s=900),
)
ALONE: dict[str, Any] = {"group_at_least": 0, "escalation": {Priority.P1: CHAIN}}  # no alert groups


def fact(at: float, text: str = "a line") -> Evidence:
    """One event behind an incident, so long after the story began."""
    return Evidence(id=f"e{at:g}", at=BEGAN + at, node="n1", kind="gpu.lost", component="node", text=text)


class Pager:
    """`delivers`: the notifier delivers each page at once, by the channel `chat`."""

    def __init__(self, *, delivers: bool = True, **settings: Any) -> None:
        given = Settings(**(ALONE | settings))
        pack = Pack(version="p", symptoms=(), rules=(), runbooks=(), settings=given, places={})
        self.state = State(now=BEGAN)
        self.delivers = delivers
        self.sent: list[tuple[float, SendPage]] = []
        self.notes: list[Note] = []
        self.shown: list[str] = []  # ids of the incidents that each input shows
        self._compiled = Compiled(pack)
        self._inputs = 0

    def handles(self, part: Callable[[Context], T]) -> T:
        """One input, of which `part` is all that the engine does."""
        self._inputs += 1
        index = Index(self.state)
        ctx = Context(self.state, self._compiled, index, ACTIONS, f"i{self._inputs}", observe_all=False)
        came = part(ctx)
        pages: list[SendPage] = []
        for effect in ctx.finish():
            match effect:
                case SendPage():
                    pages.append(effect)
                case Note():
                    self.notes.append(effect)
                case ShowIncident(incident=incident):
                    self.shown.append(incident.id)
        self.sent += [(self.now, page) for page in pages]
        for page in pages if self.delivers else ():
            self.answers(page.id)
        return came

    @property
    def now(self) -> float:
        """Seconds since the story began."""
        return round(self.state.now - BEGAN, 3)

    def knows(self, id_: str = "a", severity: str = "P1", **more: Any) -> Incident:
        """An incident that nobody has been paged for."""
        fields: dict[str, Any] = {"scope": f"node/n-{id_}", "node": f"n-{id_}"} | more
        incident = Incident(
            id=id_, cause="gpu_lost", state=IncidentState.OPEN, severity=Priority(severity), rule="lost",
            because="it is lost", runbook="", pack="p", opened_at=self.state.now, hold_off_until=self.state.now,
            resolve_delay_s=60, page=Paging.OPEN, **fields,
        )  # fmt: skip
        self.state.incidents[id_] = incident
        return incident

    def opens(self, *ids: str, severity: str = "P1", **more: Any) -> list[Incident]:
        """Incidents open, and are paged for."""
        incidents = [self.knows(id_, severity, **more) for id_ in ids]
        for one in incidents:
            self.handles(lambda ctx, one=one: escalation.open_page(ctx, one, "it is lost"))  # type: ignore[misc]
        return incidents

    def pages(self, id_: str, what: Any, text: str, **to: Any) -> None:
        """A run, or a gate, pages for an incident."""
        self.handles(lambda ctx: escalation.page(ctx, self.state.incidents[id_], what, text, **to))

    def raises(self, id_: str, severity: str) -> None:
        """An incident is more urgent than it was."""
        incident = self.state.incidents[id_]
        before, incident.severity = incident.severity, Priority(severity)
        self.handles(lambda ctx: escalation.raised(ctx, incident, before))

    def ends(self, *ids: str, why: str = "it is back") -> None:
        """Incidents are over."""
        for id_ in ids:
            incident = self.state.incidents[id_]
            self.handles(lambda ctx, one=incident: escalation.resolve(ctx, one, why))  # type: ignore[misc]

    def acknowledges(self, *ids: str, who: str = "ann") -> None:
        """A person acknowledges incidents or alert groups."""
        for id_ in ids:
            about = self.state.alert_groups.get(id_) or self.state.incidents[id_]
            acknowledge: Any = (
                escalation.acknowledge_group if isinstance(about, AlertGroup) else escalation.acknowledge
            )
            self.handles(lambda ctx, of=about, do=acknowledge: do(ctx, of, who))  # type: ignore[misc]

    def answers(
        self, page: str, *, ok: bool = True, channel: str = "chat", why: str = "", **tickets: str
    ) -> list[str]:
        """The notifier reports an outcome. The ids of the incidents that have a page less to deliver. `tickets`: by channel."""
        given = Delivery(id="d", page=page, ok=ok, channel=channel, why=why, tickets=tickets)
        done = self.handles(lambda ctx: escalation.delivered(ctx, given))
        return [incident.id for incident in done]

    def refuses(self, page: str, why: str = "no route") -> None:
        """No channel accepts the page."""
        self.answers(page, ok=False, channel="", why=why)

    def fires(self, kind: str, what: str) -> None:
        """A timer fires."""
        self.handles(lambda ctx: escalation.timer(ctx, kind, what))

    def passes(self, seconds: float) -> None:
        """Time passes: the timers that are due fire in order."""
        until = self.state.now + seconds
        timers = self.state.timers
        while name := min(timers, key=lambda one: timers[one], default=""):
            if timers[name] > until:
                break
            self.state.now = max(self.state.now, timers.pop(name))
            self.fires(*name.split(":", 1))
        self.state.now = until

    @property
    def timers(self) -> dict[str, float]:
        """Name -> when it fires."""
        return {name: round(due - BEGAN, 3) for name, due in self.state.timers.items()}

    def told(self, *whats: str) -> list[str]:
        """What went to the notifier, without the words: `"310 open lead a"`, or those of the kinds only."""
        return [
            f"{at:g} {page.what} {page.to} {page.subject.id}"
            for at, page in self.sent
            if not whats or page.what in whats
        ]

    def words(self) -> list[str]:
        """The text of each page."""
        return [page.text for _, page in self.sent]

    def said(self, kind: str) -> list[tuple[str, str]]:
        """(incident or alert group, text) of the notes of a kind."""
        return [(note.incident, note.text) for note in self.notes if note.kind == kind]

    @property
    def group(self) -> AlertGroup:
        """The newest alert group."""
        return list(self.state.alert_groups.values())[-1]
