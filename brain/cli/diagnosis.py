"""Diagnoses kernel logs: passes their lines as events through an engine in observe mode. Does no I/O."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agent.contract.coverage import Coverage
from agent.contract.messages import UnsentEvent
from agent.shared.words import many, t
from brain.cli import log_times
from brain.cli.log_nodes import by_node
from brain.cli.log_times import Log
from brain.core.engine import Engine
from brain.core.healing import advice
from brain.core.inputs import EventSeen, PackLoaded
from brain.core.pack.actions import ACTIONS
from brain.core.pack.shared import rule_named
from brain.core.pack.spec import Pack
from brain.core.pack.topology import component_of, node_of
from brain.core.rehearsal.examples import event_of, patience
from brain.core.rehearsal.timeline import Timeline
from brain.core.state import Incident, IncidentState

_LONG_S = 3600.0
SHOWN = 6  # lines that are quoted for one incident


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A fault that an incident explains: it is paged and remedied with it."""

    cause: str
    scope: str
    # "<log>:<line>: <text>"
    shown: list[str]


@dataclass(slots=True, kw_only=True)
class DiagnosedIncident:
    """An incident that gpuward would open, and what it would tell the operator about it."""

    id: str
    state: str
    cause: str
    severity: str
    scope: str
    because: str
    # Of the same in Chinese; empty: there is only the English
    because_zh: str
    symptoms: list[str]
    # Ids
    runs: list[str]
    # Seconds since the first record
    opened_at: float
    # How sure the diagnosis is, as a sentence
    sure: str
    # A line says that it has ended; seconds that it lasted, 0: none does
    lasted_s: float
    # None says so, and its last sign is so many seconds before the end of the log; 0: less than an hour
    silent_s: float
    # "<log>:<line>" at which the machine started again after its last sign: what was before may be over. Empty: it did not
    booted: str
    # "<log>:<line>: <text>"; of lines that differ in numbers only the first, and how many there are
    shown: list[str]
    # Number of other incidents that it explains
    explains: int
    # Those that the logs show
    explained: list[Explained]
    # cause, todo -> en, zh
    advice: dict[str, dict[str, str]]
    links: list[str]
    runbook: str
    # What gpuward would run, one line per rung
    plan: list[str]

    def knowledge(self, lang: str) -> tuple[str, str]:
        """Returns (cause, what to do) in a language; empty where no rule gives it."""
        return self.advice.get("cause", {}).get(lang, ""), self.advice.get("todo", {}).get(lang, "")


@dataclass(slots=True, kw_only=True)
class Diagnosis:
    """The result for some logs."""

    lines: int = 0
    meaningful: int = 0
    # Lines that could not be read
    unread: int = 0
    # Lines that look like no kernel's, in a log whose own have times
    foreign: int = 0
    # Log -> which line could not be read, and why: silence about it is no all-clear
    blind: dict[str, str] = field(default_factory=dict)
    # Log -> of which of its lines an all-clear does not speak: of what looks like no kernel line, of a last one without its end
    aside: dict[str, str] = field(default_factory=dict)
    # What has not ended first, after it what was before a boot; of these the most severe
    incidents: list[DiagnosedIncident] = field(default_factory=list)
    # Lines with a meaning that are evidence of no incident; those that differ in numbers only once, with their number
    other: list[str] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """Returns a dict that JSON can hold."""
        known = asdict(self)
        return {"ok": self.is_well(), "incidents": known.pop("incidents"), **known}

    def is_well(self) -> bool:
        """Whether the logs could be read, and nothing is wrong."""
        return bool(self.lines) and not self.incidents and not self.blind


def diagnose(
    pack: Pack,
    logs: Mapping[str, Sequence[str]],
    *,
    driver: str = "",
    unended: Container[str] = (),
) -> Diagnosis:
    """Diagnoses logs by node name. Time is that of the lines. `unended`: logs whose last line has no end."""
    engine = Engine(actions=ACTIONS, observe_all=True)
    timeline = Timeline(engine)
    found = Diagnosis(lines=sum(map(len, logs.values())))
    sources: dict[str, _Source] = {}  # by event id
    last = 0.0
    read: dict[str, Log] = {}
    for own in by_node(logs, unended):
        coverage = Coverage(unended=own.unended, positions=own.positions)
        read[own.node] = log = log_times.read(own, driver, coverage)
        found.unread += coverage.unread
        found.foreign += coverage.foreign if coverage.timed else 0
        if doubt := coverage.blind or ("" if log.unsent_events else coverage.no_log):
            found.blind[own.node] = doubt
        if coverage.aside:
            found.aside[own.node] = coverage.aside
    facts, end_s = log_times.together(read)
    timeline.feed(PackLoaded(id="pack", pack=pack), 0.0)
    for node, number, at, unsent in facts:
        event = event_of(unsent, node, order=len(sources) + 1)
        sources[event.id] = _Source(node=node, line=number, at=at, unsent=unsent)
        timeline.feed(EventSeen(event=event), at)
        last = max(last, at)
    found.meaningful = len(sources)
    timeline.run(last + patience(pack))  # what the log's end leaves open lasts
    quiet = {
        note.incident for note in timeline.notes if note.kind == "incident.closed" and note.data.get("quiet")
    }
    quotes = _Quotes(sources.values())
    explained = _explained(timeline, sources)
    used: set[object] = {
        line.meaning for ones in explained.values() for lines in ones.values() for line in lines
    }
    boots = {node: log.boots for node, log in read.items()}
    for incident in timeline.incidents.values():
        used.update(sources[fact.id].meaning for fact in incident.evidence if fact.id in sources)
        if incident.state is not IncidentState.EXPLAINED and incident.id not in quiet:
            others = explained.get(incident.id, {})
            found.incidents.append(
                _diagnosed(pack, timeline, incident, sources, quotes, others, boots, end_s)
            )
    found.incidents.sort(
        key=lambda one: (bool(one.lasted_s), bool(one.booted), one.severity, one.opened_at, one.id)
    )
    found.other = quotes.of((one for one in sources.values() if one.meaning not in used), meaning=True)
    engine.close()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The line from which an event comes."""

    node: str
    line: int
    # Seconds, as the timeline counts them
    at: float
    unsent: UnsentEvent

    @property
    def meaning(self) -> tuple[object, ...]:
        """A key that is equal for lines with the same meaning about the same part."""
        return (self.node, self.unsent.kind, self.unsent.component, self.unsent.data.get("code"))

    @property
    def likeness(self) -> tuple[object, ...]:
        """A key that is equal for lines that differ in numbers only."""
        words = {name: value for name, value in self.unsent.data.items() if isinstance(value, str)}
        words.pop("message", None)
        return (*self.meaning, self.unsent.data.get("link"), *sorted(words.items()))

    def quote(self) -> str:
        return f"{self.node}:{self.line}: {' '.join(self.unsent.evidence.split())}"


class _Quotes:
    """Quotes lines; of those that differ in numbers only the first, with how many there are."""

    def __init__(self, sources: Iterable[_Source]) -> None:
        self._alike: dict[tuple[object, ...], list[_Source]] = {}
        for source in sources:
            self._alike.setdefault(source.likeness, []).append(source)

    def of(self, sources: Iterable[_Source], *, meaning: bool = False) -> list[str]:
        """The quotes of some; `meaning`: with what each means."""
        return [self._quote(likeness, meaning) for likeness in dict.fromkeys(one.likeness for one in sources)]

    def lines(self, sources: Iterable[_Source]) -> int:
        """How many lines are like some; one that is two facts counts once."""
        alike = (one for likeness in {source.likeness for source in sources} for one in self._alike[likeness])
        return len({(one.node, one.line) for one in alike})

    def _quote(self, likeness: tuple[object, ...], meaning: bool) -> str:
        first, *further = self._alike[likeness]
        unsent = first.unsent
        said = f"{unsent.data.get('name', unsent.kind)}: {unsent.data.get('action') or unsent.severity.value}"
        lines = {one.line for one in further} - {first.line}
        more = (
            t("  [{lines} lines like this, to line {lines2}]", lines=len(lines) + 1, lines2=max(lines))
            if lines
            else ""
        )
        return f"{first.quote()}{f'  ({said})' if meaning else ''}{more}"


def _explained(
    timeline: Timeline, sources: Mapping[str, _Source]
) -> dict[str, dict[tuple[str, str], list[_Source]]]:
    """What each incident explains, by its id: cause and scope of each fault, and the lines that say so.

    A fault that began before what explains it was an incident until then; one that began later never is.
    """
    found: dict[str, dict[tuple[str, str], list[_Source]]] = {}
    for incident in timeline.incidents.values():
        if incident.state is IncidentState.EXPLAINED:
            listed = found.setdefault(_root(timeline, incident).id, {}).setdefault(
                (incident.cause, incident.scope), []
            )
            listed += [sources[fact.id] for fact in incident.evidence if fact.id in sources]
    for note in timeline.notes:
        if note.kind != "incident.explains" or note.incident not in timeline.incidents:
            continue
        node, component = node_of(note.scope), component_of(note.scope)
        lines = [one for one in sources.values() if (one.node, one.unsent.component) == (node, component)]
        cause = note.text.partition(f" at {note.scope}")[0]
        root = _root(timeline, timeline.incidents[note.incident])
        found.setdefault(root.id, {}).setdefault((cause, note.scope), lines)
    return found


def _root(timeline: Timeline, incident: Incident) -> Incident:
    while incident.state is IncidentState.EXPLAINED and incident.explained_by in timeline.incidents:
        incident = timeline.incidents[incident.explained_by]
    return incident


def _diagnosed(
    pack: Pack,
    timeline: Timeline,
    incident: Incident,
    sources: Mapping[str, _Source],
    quotes: _Quotes,
    explained: Mapping[tuple[str, str], list[_Source]],
    boots: Mapping[str, Sequence[int]],
    end_s: float,
) -> DiagnosedIncident:
    rule = rule_named(pack, incident.rule)
    rule = advice.fitted(rule, timeline.engine.state, incident) if rule is not None else None
    facts = [sources[fact.id] for fact in incident.evidence if fact.id in sources]
    signs = [*facts, *(line for lines in explained.values() for line in lines)]
    plan = next(
        (
            note.data.get("plan")
            for note in timeline.notes
            if note.kind == "run.started" and note.incident == incident.id
        ),
        [],
    )
    return DiagnosedIncident(
        id=incident.id,
        state=incident.state.value,
        runs=incident.runs,
        opened_at=incident.opened_at,
        cause=incident.cause,
        severity=incident.severity,
        scope=incident.scope,
        because=incident.because,
        because_zh=incident.because_zh,
        symptoms=incident.symptoms,
        sure=_sure(incident, signs, quotes),
        lasted_s=_lasted_s(incident),
        silent_s=_silent_s(incident, facts, end_s),
        booted=_booted(incident, signs, boots),
        shown=quotes.of(facts)[:SHOWN],
        explains=incident.explains,
        explained=[
            Explained(cause=cause, scope=scope, shown=quotes.of(lines)[:SHOWN])
            for (cause, scope), lines in explained.items()
        ],
        advice={} if rule is None else asdict(rule.knowledge, dict_factory=_texts),
        links=[] if rule is None else list(rule.knowledge.links),
        runbook=incident.runbook,
        plan=plan if isinstance(plan, list) else [],
    )


def _lasted_s(incident: Incident) -> float:
    over = incident.state in (IncidentState.RECOVERED, IncidentState.CLOSED)
    if incident.unproven or not over:
        return 0.0
    return max(0.001, round(incident.clear_since - incident.opened_at, 3))


def _silent_s(incident: Incident, facts: Sequence[_Source], end_s: float) -> float:
    """Silence proves nothing: what was not told again has not ended by that."""
    silent_s = end_s - max((fact.at for fact in facts), default=incident.opened_at)
    return 0.0 if _lasted_s(incident) or silent_s < _LONG_S else round(silent_s, 3)


def _booted(incident: Incident, signs: Sequence[_Source], boots: Mapping[str, Sequence[int]]) -> str:
    """Where its machine started again after all of its signs."""
    last = max((sign.line for sign in signs), default=0)
    later = [line for line in boots.get(incident.node, ()) if line > last]
    return f"{incident.node}:{later[0]}" if last and later and not _lasted_s(incident) else ""


def _texts(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if name not in ("links", "advice")}


def _sure(incident: Incident, signs: Sequence[_Source], quotes: _Quotes) -> str:
    """Returns how sure the diagnosis is, by the number of independent signs, those of what it explains too. All lines that are
    like its signs count: an incident itself keeps the newest facts only.
    """
    kinds = len({fact.kind for fact in incident.evidence} | {sign.unsent.kind for sign in signs})
    lines = quotes.lines(signs)
    if incident.nodes > 1:
        return t("very: {nodes} nodes show it at once", nodes=incident.nodes)
    if kinds > 1:
        return t("very: {kinds} different signs agree, in {lines}", kinds=kinds, lines=many(lines, "line"))
    if lines > 1:
        return t("fairly: {lines} lines of one kind say so", lines=lines)
    return t("one line says so, nothing else confirms it")
