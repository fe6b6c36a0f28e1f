"""Runs the examples that rules carry, on a real engine in simulated time. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from agent.contract import kernel_text
from agent.contract.actions.spec import ActionSpec
from agent.contract.lines import KernelReader
from agent.contract.messages import Event, Severity, UnsentEvent
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, NodeState, PackLoaded
from brain.core.pack.compiled import Compiled, CompiledCache
from brain.core.pack.lint_symptoms import KINDS
from brain.core.pack.rulebook import MATCHER, Matcher
from brain.core.pack.spec import Example, Expect, Given, Pack, Place, Settings
from brain.core.rehearsal.timeline import Timeline
from brain.core.state import Incident, IncidentState

START = 1_000_000.0  # when examples begin, by the log's clock
SILENT_S = 16.0  # since the last beat of a node, when it becomes unreachable


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleResult:
    """The result of one example."""

    rule: str
    # in the rule's list, from 0
    number: int
    example: str
    ok: bool
    # what was expected and what happened; empty when ok
    text: str


def run_all(
    pack: Pack, actions: Mapping[str, ActionSpec], *, matcher: Matcher = MATCHER
) -> list[ExampleResult]:
    """Runs all examples of all rules, each on a new engine. Lint must find nothing in the pack."""
    results = []
    cache = CompiledCache(matcher=matcher)
    for rule in pack.rules:
        for number, example in enumerate(rule.examples):
            text = run(pack, actions, example, cache)
            results.append(
                ExampleResult(rule=rule.name, number=number, example=example.name, ok=not text, text=text)
            )
    cache.close()
    return results


def run(
    pack: Pack,
    actions: Mapping[str, ActionSpec],
    example: Example,
    compile_pack: Callable[[Pack], Compiled] = Compiled,
) -> str:
    """Runs one example. Returns an empty text if it gives what it expects, else a sentence.

    The site's settings, its topology and the schedules of runbooks have no effect on it. Its overrides neither, except on an
    example that shows what they do: it holds without them or with them.
    """
    without = _run(replace(pack, overrides=()), actions, example, compile_pack)
    return _run(pack, actions, example, compile_pack) if without and pack.overrides else without


def _run(
    pack: Pack, actions: Mapping[str, ActionSpec], example: Example, compile_pack: Callable[[Pack], Compiled]
) -> str:
    timeline, last = begun(pack, actions, example, compile_pack)
    timeline.run(START + last + patience(pack))
    timeline.engine.close()
    return _compare(example.expect, _reportable(timeline))


def begun(
    pack: Pack, actions: Mapping[str, ActionSpec], example: Example, compile_pack: Callable[[Pack], Compiled]
) -> tuple[Timeline, float]:
    """(an engine before which all of the example lies, from START on; when its last fact comes, in seconds after START)."""
    engine = Engine(actions=actions, observe_all=True, compile_pack=compile_pack)
    timeline = Timeline(engine)
    timeline.feed(PackLoaded(id="pack", pack=alone(pack, example)), START)
    for at, fact in facts(example):
        timeline.feed(fact, START + at)
    return timeline, max((given.at for given in example.given), default=0.0)


def alone(pack: Pack, example: Example, settings: Settings | None = None) -> Pack:
    """The pack with the example's places, these settings (default: none of the site's), and no schedules."""
    names = (
        {node for given in example.given for node in _nodes(given)} if example.leaf or example.rack else set()
    )
    places = {node: Place(leaf=example.leaf, rack=example.rack) for node in sorted(names)}
    unscheduled = tuple(
        replace(runbook, every_s=0) if runbook.every_s else runbook for runbook in pack.runbooks
    )
    return replace(pack, settings=settings or Settings(), places=places, runbooks=unscheduled)


def facts(example: Example) -> Iterator[tuple[float, EventSeen | NodeState]]:
    """(seconds after the example's start, what is told then), in order; each event has an id of its own."""
    for index, given in enumerate(sorted(example.given, key=lambda given: given.at)):
        for node in _nodes(given):
            for number, fact in enumerate(_facts(given, node, f"{index}")):
                yield given.at, _numbered(fact, index, number)


def _nodes(given: Given) -> list[str]:
    return [given.node] if given.nodes == 1 else [f"n{n}" for n in range(1, given.nodes + 1)]


def _facts(given: Given, node: str, name: str) -> Iterator[EventSeen | NodeState]:
    if given.unreachable:
        yield NodeState(id=f"silent-{name}-{node}", node=node, alive=False, silent_s=SILENT_S)
    elif given.kernel:
        reader = KernelReader()
        for _, line in kernel_text.records(given.kernel.splitlines()):
            for unsent in reader.read(line.text):
                yield EventSeen(event=event_of(unsent, node, given.age_s))
    else:
        severity = Severity(given.severity) if given.severity else KINDS[given.event].severity
        unsent = UnsentEvent(kind=given.event, component=given.component, severity=severity, data=given.data)
        yield EventSeen(event=event_of(unsent, node, given.age_s))


def event_of(unsent: UnsentEvent, node: str, age_s: float = 0.0, *, order: int = 1) -> Event:
    """An event as the agent of `node` would send it."""
    return Event(
        id=f"{node}:example:{order}",
        node=node,
        kind=unsent.kind,
        component=unsent.component,
        severity=unsent.severity,
        at="",
        age_s=age_s,
        boot="example",
        count=unsent.count,
        data=unsent.data,
        evidence=unsent.evidence,
    )


def _numbered(fact: EventSeen | NodeState, index: int, number: int) -> EventSeen | NodeState:
    """Gives an event a sequence number by its place in the example: the engine ignores repeats."""
    if isinstance(fact, NodeState):
        return fact
    order = 1000 * index + number + 1
    return EventSeen(event=replace(fact.event, id=f"{fact.event.node}:example:{order}"))


def patience(pack: Pack) -> float:
    """Seconds from the last fact to the verdict: until every hold-off is over and every `lasting` symptom has begun."""
    hold_off = max((rule.hold_off_s for rule in pack.rules), default=0.0)
    # `unlike` takes days, and until then all else is forgotten: its examples give a later fact to wait for.
    lasting = max((symptom.for_s for symptom in pack.symptoms if symptom.detect != "unlike"), default=0.0)
    return hold_off + lasting + 10.0


def _reportable(timeline: Timeline) -> list[Incident]:
    """The incidents that people would be paged for or see: not those explained, or over within their hold-off."""
    in_hold_off = {
        note.incident for note in timeline.notes if note.kind == "incident.closed" and note.data.get("quiet")
    }
    return [
        incident
        for incident in timeline.incidents.values()
        if incident.state is not IncidentState.EXPLAINED and incident.id not in in_hold_off
    ]


def _compare(expect: Expect, found: list[Incident]) -> str:
    """Empty if the incidents are as expected, else a sentence."""
    shown = "; ".join(_shown(incident) for incident in found) or "no incident"
    if expect.nothing:
        return f"expected no incident, came: {shown}" if found else ""
    if expect.incidents is not None and len(found) != expect.incidents:
        return f"expected {expect.incidents} incidents, came: {shown}"
    if not expect.incident:
        return ""
    for incident in found:
        if (
            incident.cause == expect.incident
            and expect.scope in ("", incident.scope)
            and expect.runbook in ("", incident.runbook)
        ):
            return ""
    wanted = expect.incident + (f" at {expect.scope}" if expect.scope else "")
    return f"expected {wanted}{f' with runbook {expect.runbook}' if expect.runbook else ''}, came: {shown}"


def _shown(incident: Incident) -> str:
    runbook = f" with runbook {incident.runbook}" if incident.runbook else ""
    return f"{incident.cause} at {incident.scope}{runbook}"
