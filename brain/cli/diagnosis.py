"""What kernel logs mean: their lines as events through an engine in observe mode. Does no I/O."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agent.contract import kernel_text
from agent.contract.kernel_text import Clock
from agent.contract.lines import KernelReader
from agent.contract.messages import Draft
from brain.core.actions import ACTIONS
from brain.core.engine import Engine
from brain.core.examples import event_of
from brain.core.inputs import EventSeen, PackLoaded
from brain.core.spec import Pack
from brain.core.state import Incident, IncidentState
from brain.core.timeline import Timeline

SHOWN = 6  # lines that are quoted for one finding


@dataclass(slots=True, kw_only=True)
class Finding:
    """One thing that is wrong: the incident that gpuward would open, and what it says of it."""

    id: str
    state: str
    cause: str
    severity: str
    scope: str
    because: str
    symptoms: list[str]
    runs: list[str]  # ids
    opened_at: float  # seconds since the first record
    sure: str  # how sure, in a sentence
    shown: list[str]  # "<log>:<line>: <text>"
    explains: int  # other incidents that it is the cause of
    advice: dict[str, dict[str, str]]  # cause, todo -> en, zh
    links: list[str]
    runbook: str
    plan: list[str]  # what gpuward would run, one line a rung

    def knowledge(self, lang: str) -> tuple[str, str]:
        """(cause, what to do) in a language; empty where no rule says it."""
        return self.advice.get("cause", {}).get(lang, ""), self.advice.get("todo", {}).get(lang, "")


@dataclass(slots=True, kw_only=True)
class Diagnosis:
    """What some logs mean."""

    lines: int = 0
    meaningful: int = 0
    findings: list[Finding] = field(default_factory=list)  # the worst first
    other: list[str] = field(default_factory=list)  # lines with a meaning that no finding rests on

    def data(self) -> dict[str, Any]:
        """A JSON-ready dict."""
        known = asdict(self)
        return {"ok": not self.findings, "incidents": known.pop("findings"), **known}


def of(pack: Pack, logs: Mapping[str, Sequence[str]], *, driver: str = "") -> Diagnosis:
    """The diagnosis of logs by node name. Time is that of the lines."""
    engine = Engine(actions=ACTIONS, observe_all=True)
    timeline = Timeline(engine)
    found = Diagnosis(lines=sum(map(len, logs.values())))
    sources: dict[str, _Source] = {}  # by event id
    last = 0.0
    timeline.feed(PackLoaded(id="pack", pack=pack), 0.0)
    for node, number, at, draft in _together({node: _read(lines, driver) for node, lines in logs.items()}):
        event = event_of(draft, node, order=len(sources) + 1)
        sources[event.id] = _Source(node=node, line=number, draft=draft)
        timeline.feed(EventSeen(event=event), at)
        last = max(last, at)
    found.meaningful = len(sources)
    timeline.run(last + max((rule.settle_s for rule in pack.rules), default=0.0) + 1.0)
    quiet = {
        note.incident for note in timeline.notes if note.kind == "incident.closed" and note.data.get("quiet")
    }
    used: set[object] = set()
    for incident in sorted(
        timeline.incidents.values(), key=lambda one: (one.severity, one.opened_at, one.id)
    ):
        used.update(sources[fact.id].sort for fact in incident.evidence if fact.id in sources)
        if incident.state is not IncidentState.EXPLAINED and incident.id not in quiet:
            found.findings.append(_finding(pack, timeline, incident, sources))
    found.other = [str(source) for source in sources.values() if source.sort not in used]
    engine.close()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where an event comes from."""

    node: str
    line: int
    draft: Draft

    @property
    def sort(self) -> tuple[object, ...]:
        """The same for lines that say the same of the same part."""
        return (self.node, self.draft.kind, self.draft.component, self.draft.data.get("code"))

    def __str__(self) -> str:
        data = self.draft.data
        meaning = f"{data.get('name', self.draft.kind)}: {data.get('action') or self.draft.severity.value}"
        return f"{self.quote()}  ({meaning})"

    def quote(self) -> str:
        return f"{self.node}:{self.line}: {' '.join(self.draft.evidence.split())}"


@dataclass(slots=True, kw_only=True)
class _Log:
    """One log's facts, by the times of its lines."""

    begin: float | None = None  # time of its first record
    clock: Clock = Clock.NONE
    drafts: list[tuple[int, float, Draft]] = field(default_factory=list)  # (line, seconds since begin, fact)


def node_name(stem: str, taken: Sequence[str]) -> str:
    """A node name of a file's: one that scopes and ids can hold, and that is not taken."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-")[:50] or "this-node"
    many = 2
    wanted = name
    while wanted in taken:
        wanted, many = f"{name}-{many}", many + 1
    return wanted


def _read(lines: Sequence[str], driver: str) -> _Log:
    reader = KernelReader(driver=driver)
    log = _Log()
    newest = 0.0
    for number, line in kernel_text.records(lines):
        if line.clock is not Clock.NONE:
            if log.begin is None:
                log.begin, log.clock = line.mono_s, line.clock
            newest = max(newest, line.mono_s - log.begin)  # a log that was put together never runs backwards
        log.drafts += [(number, newest, draft) for draft in reader.read(line.text)]
    return log


def _together(logs: Mapping[str, _Log]) -> list[tuple[str, int, float, Draft]]:
    """(node, line, time, fact) of all logs. Those on other clocks than the wall's are taken to begin together."""
    wall = all(log.clock is Clock.WALL for log in logs.values())
    first = min((log.begin for log in logs.values() if log.begin is not None), default=0.0)
    facts = []
    for node, log in logs.items():
        later = (log.begin or 0.0) - first if wall else 0.0
        facts += [(node, number, later + at, draft) for number, at, draft in log.drafts]
    return sorted(facts, key=lambda fact: fact[2])


def _finding(pack: Pack, timeline: Timeline, incident: Incident, sources: Mapping[str, _Source]) -> Finding:
    rule = next((rule for rule in pack.rules if rule.name == incident.rule), None)
    facts = [fact for fact in incident.evidence if fact.id in sources]
    plan = next(
        (
            note.data.get("plan")
            for note in timeline.notes
            if note.kind == "run.started" and note.incident == incident.id
        ),
        [],
    )
    return Finding(
        id=incident.id,
        state=incident.state.value,
        runs=incident.runs,
        opened_at=incident.opened_at,
        cause=incident.cause,
        severity=incident.severity,
        scope=incident.scope,
        because=incident.because,
        symptoms=incident.symptoms,
        sure=_sure(incident, len(facts)),
        shown=[sources[fact.id].quote() for fact in facts[:SHOWN]],
        explains=incident.explains,
        advice={} if rule is None else asdict(rule.knowledge, dict_factory=_texts),
        links=[] if rule is None else list(rule.knowledge.links),
        runbook=incident.runbook,
        plan=plan if isinstance(plan, list) else [],
    )


def _texts(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if name != "links"}


def _sure(incident: Incident, lines: int) -> str:
    """How many signs say so."""
    kinds = len({fact.kind for fact in incident.evidence})
    if incident.nodes > 1:
        return f"very: {incident.nodes} nodes show it at once"
    if kinds > 1:
        return f"very: {kinds} different signs agree, in {lines} lines"
    if lines > 1:
        return f"fairly: {lines} lines of one kind say so"
    return "one line says so, nothing else confirms it"
