"""Diagnoses kernel logs: passes their lines as events through an engine in observe mode. Does no I/O."""

import re
from calendar import isleap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from agent.contract import kernel_text
from agent.contract.counted import counted
from agent.contract.coverage import Coverage
from agent.contract.kernel_text import Clock
from agent.contract.lines import KernelReader
from agent.contract.lines.pcie import pci_drivers
from agent.contract.messages import UnsentEvent
from brain.cli.log_hosts import by_host
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, PackLoaded
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import rule_named
from brain.core.pack.spec import Pack
from brain.core.pack.topology import component_of, node_of
from brain.core.rehearsal.examples import event_of, patience
from brain.core.rehearsal.timeline import Timeline
from brain.core.state import Incident, IncidentState

_YEAR_2001_S = datetime(2001, 1, 1, tzinfo=UTC).timestamp()
_LEAP_YEAR_S = 366 * 86_400.0  # the year 2000
_NEW_YEAR_S = 300 * 86_400.0  # a log whose times have no year goes back by more: a year has begun
_FEBRUARY, _LEAP_DAY = 2, 29
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
    # Log -> which line could not be read, and why: silence about it is no all-clear
    blind: dict[str, str] = field(default_factory=dict)
    # What has not ended first, of these the most severe
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


def diagnose(pack: Pack, logs: Mapping[str, Sequence[str]], *, driver: str = "") -> Diagnosis:
    """Diagnoses logs by node name. Time is that of the lines."""
    engine = Engine(actions=ACTIONS, observe_all=True)
    timeline = Timeline(engine)
    found = Diagnosis(lines=sum(map(len, logs.values())))
    sources: dict[str, _Source] = {}  # by event id
    last = 0.0
    read: dict[str, _Log] = {}
    for node, lines, positions in _by_node(logs):
        coverage = Coverage()
        read[node] = _read(lines, driver, coverage, positions)
        found.unread += coverage.unread
        if coverage.blind:
            found.blind[node] = coverage.blind
    facts, end_s = _together(read)
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
    explained, used = _explained(timeline, sources, quotes)
    for incident in sorted(
        timeline.incidents.values(),
        key=lambda one: (bool(_lasted_s(one)), one.severity, one.opened_at, one.id),
    ):
        used.update(sources[fact.id].meaning for fact in incident.evidence if fact.id in sources)
        if incident.state is not IncidentState.EXPLAINED and incident.id not in quiet:
            why = explained.get(incident.id, [])
            found.incidents.append(_diagnosed(pack, timeline, incident, sources, quotes, why, end_s))
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

    def _quote(self, likeness: tuple[object, ...], meaning: bool) -> str:
        first, *further = self._alike[likeness]
        unsent = first.unsent
        said = f"{unsent.data.get('name', unsent.kind)}: {unsent.data.get('action') or unsent.severity.value}"
        lines = {one.line for one in further} - {first.line}
        more = f"  [{len(lines) + 1} lines like this, to line {max(lines)}]" if lines else ""
        return f"{first.quote()}{f'  ({said})' if meaning else ''}{more}"


@dataclass(slots=True, kw_only=True)
class _Log:
    """The events of one log, by the times of its lines."""

    # Time of its first record
    begin: float | None = None
    clock: Clock = Clock.NONE
    # Seconds from the first to the last record
    length_s: float = 0.0
    # (line, seconds since begin, event)
    unsent_events: list[tuple[int, float, UnsentEvent]] = field(default_factory=list)


def _explained(
    timeline: Timeline, sources: Mapping[str, _Source], quotes: _Quotes
) -> tuple[dict[str, list[Explained]], set[object]]:
    """What each incident explains, by its id; and the meanings of lines that say so.

    A fault that began before what explains it was an incident until then; one that began later never is.
    """
    found: dict[str, list[Explained]] = {}
    used: set[object] = set()
    for incident in timeline.incidents.values():
        if incident.state is IncidentState.EXPLAINED:
            lines = [sources[fact.id] for fact in incident.evidence if fact.id in sources]
            one = Explained(cause=incident.cause, scope=incident.scope, shown=quotes.of(lines)[:SHOWN])
            found.setdefault(_root(timeline, incident).id, []).append(one)
    for note in timeline.notes:
        if note.kind != "incident.explains" or note.incident not in timeline.incidents:
            continue
        node, component = node_of(note.scope), component_of(note.scope)
        lines = [one for one in sources.values() if (one.node, one.unsent.component) == (node, component)]
        cause = note.text.partition(f" at {note.scope}")[0]
        listed = found.setdefault(_root(timeline, timeline.incidents[note.incident]).id, [])
        if all((one.cause, one.scope) != (cause, note.scope) for one in listed):
            listed.append(Explained(cause=cause, scope=note.scope, shown=quotes.of(lines)[:SHOWN]))
            used.update(line.meaning for line in lines)
    return found, used


def _root(timeline: Timeline, incident: Incident) -> Incident:
    while incident.state is IncidentState.EXPLAINED and incident.explained_by in timeline.incidents:
        incident = timeline.incidents[incident.explained_by]
    return incident


def node_name(stem: str, taken: Sequence[str]) -> str:
    """Returns a node name for a file name: valid in scopes and ids, and not taken."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-")[:50] or "this-node"
    many = 2
    wanted = name
    while wanted in taken:
        wanted, many = f"{name}-{many}", many + 1
    return wanted


def _by_node(logs: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Sequence[str], Sequence[int]]]:
    """(node, lines, their positions in the log): a log in which several machines speak is several nodes' (log_hosts.py)."""
    taken = list(logs)
    for name, lines in logs.items():
        hosts = by_host(lines)
        for host, positions in hosts.items():
            node = node_name(host, [one for one in taken if one != name])
            taken.append(node)
            yield node, [lines[position] for position in positions], positions
        if not hosts:
            yield name, lines, range(len(lines))


def _read(lines: Sequence[str], driver: str, coverage: Coverage, positions: Sequence[int]) -> _Log:
    reader = KernelReader(driver=driver, kept=True, drivers=pci_drivers(lines))
    log = _Log()
    years_s = 0.0
    for number, line in kernel_text.records(lines, coverage.see):
        if line.clock is not Clock.NONE:
            at = line.mono_s + years_s
            if log.begin is None:
                log.begin, log.clock = at, line.clock
            elif _without_year(line) and at < log.begin + log.length_s - _NEW_YEAR_S:
                years_s += _LEAP_YEAR_S
                at += _LEAP_YEAR_S
            # Even in a concatenated log, time never runs backwards.
            log.length_s = max(log.length_s, at - log.begin)
        if line.facility == kernel_text.KERNEL:  # what a program says is not the kernel's word
            where = positions[number - 1] + 1
            log.unsent_events += [(where, log.length_s, unsent) for unsent in reader.read(line.text)]
    return log


def _without_year(line: kernel_text.Line) -> bool:
    return line.clock is Clock.WALL and line.mono_s < _YEAR_2001_S


def _together(logs: Mapping[str, _Log]) -> tuple[list[tuple[str, int, float, UnsentEvent]], float]:
    """Returns (node, line, time, event) of all logs, and the time at which the last one ends. Logs without wall clock times are
    assumed to begin together; one whose times have no year is of the year in which it comes closest to those that have.
    """
    wall = all(log.clock is Clock.WALL for log in logs.values())
    dated = [log.begin for log in logs.values() if log.begin is not None and log.begin >= _YEAR_2001_S]
    begins = {node: _dated(log.begin or 0.0, dated) if wall else 0.0 for node, log in logs.items()}
    first = min(begins.values(), default=0.0)
    facts = []
    for node, log in logs.items():
        later = begins[node] - first
        facts += [(node, number, later + at, unsent) for number, at, unsent in log.unsent_events]
    end_s = max((begins[node] - first + log.length_s for node, log in logs.items()), default=0.0)
    return sorted(facts, key=lambda fact: fact[2]), end_s


def _dated(begin: float, dated: Sequence[float]) -> float:
    """A time of the year 2000 (kernel_text: one without a year), in the year in which it is closest to the first of `dated`."""
    if not dated or begin >= _YEAR_2001_S:
        return begin
    then = datetime.fromtimestamp(begin, UTC)
    near = datetime.fromtimestamp(dated[0], UTC).year
    years = [
        year
        for year in (near - 1, near, near + 1)
        if then.month != _FEBRUARY or then.day < _LEAP_DAY or isleap(year)
    ]
    return min(
        (then.replace(year=year).timestamp() for year in years),
        key=lambda at: abs(at - dated[0]),
        default=begin,
    )


def _diagnosed(
    pack: Pack,
    timeline: Timeline,
    incident: Incident,
    sources: Mapping[str, _Source],
    quotes: _Quotes,
    explained: list[Explained],
    end_s: float,
) -> DiagnosedIncident:
    rule = rule_named(pack, incident.rule)
    facts = [sources[fact.id] for fact in incident.evidence if fact.id in sources]
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
        symptoms=incident.symptoms,
        # One line may be two facts: it counts once.
        sure=_sure(incident, len({fact.quote() for fact in facts})),
        lasted_s=_lasted_s(incident),
        silent_s=_silent_s(incident, facts, end_s),
        shown=quotes.of(facts)[:SHOWN],
        explains=incident.explains,
        explained=explained,
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


def _texts(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if name != "links"}


def _sure(incident: Incident, lines: int) -> str:
    """Returns how sure the diagnosis is, by the number of independent signs."""
    kinds = len({fact.kind for fact in incident.evidence})
    if incident.nodes > 1:
        return f"very: {incident.nodes} nodes show it at once"
    if kinds > 1:
        return f"very: {kinds} different signs agree, in {counted(lines, 'line')}"
    if lines > 1:
        return f"fairly: {lines} lines of one kind say so"
    return "one line says so, nothing else confirms it"
