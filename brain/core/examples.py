"""Runs the examples that rules carry, on a real engine in simulated time. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from agent.contract import kernel_text
from agent.contract.actions.spec import ActionSpec
from agent.contract.lines import KernelReader
from agent.contract.messages import Draft, Event, Severity
from brain.core.compiled import Compiled, Shelf
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, NodeState, PackLoaded
from brain.core.lint_symptoms import KINDS
from brain.core.spec import Example, Expect, Given, Pack, Place, Settings
from brain.core.state import Incident, IncidentState
from brain.core.timeline import Timeline

START = 1_000_000.0  # when examples begin, by the log's clock
SILENT_S = 16.0  # how long a node has been silent when that is said


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one example."""

    rule: str
    number: int  # in the rule's list, from 0
    example: str
    ok: bool
    text: str  # what was expected and what came; empty when ok


def run_all(pack: Pack, actions: Mapping[str, ActionSpec]) -> list[Outcome]:
    """Every rule's examples, each on an engine of its own. The pack must be free of lint."""
    outcomes = []
    shelf = Shelf()
    for rule in pack.rules:
        for number, example in enumerate(rule.examples):
            text = run(pack, actions, example, shelf)
            outcomes.append(
                Outcome(rule=rule.name, number=number, example=example.name, ok=not text, text=text)
            )
    shelf.close()
    return outcomes


def run(
    pack: Pack,
    actions: Mapping[str, ActionSpec],
    example: Example,
    books: Callable[[Pack], Compiled] = Compiled,
) -> str:
    """Empty when the example comes out as expected, else a sentence. The site's settings do not count."""
    engine = Engine(actions=actions, observe_all=True, books=books)
    timeline = Timeline(engine)
    names = {node for given in example.given for node in _nodes(given)} if example.leaf else set()
    places = {node: Place(leaf=example.leaf) for node in sorted(names)}
    unscheduled = tuple(replace(book, every_s=0) for book in pack.runbooks)
    plain = replace(pack, settings=Settings(), places=places, runbooks=unscheduled)
    timeline.feed(PackLoaded(id="pack", pack=plain), START)
    for index, given in enumerate(sorted(example.given, key=lambda given: given.at)):
        for node in _nodes(given):
            for number, fact in enumerate(_facts(given, node, f"{index}")):
                timeline.feed(_numbered(fact, index, number), START + given.at)
    last = max((given.at for given in example.given), default=0.0)
    timeline.run(START + last + _patience(pack))
    engine.close()
    return _compare(example.expect, _told(timeline))


def _nodes(given: Given) -> list[str]:
    return [given.node] if given.nodes == 1 else [f"n{n}" for n in range(1, given.nodes + 1)]


def _facts(given: Given, node: str, name: str) -> Iterator[EventSeen | NodeState]:
    if given.silent:
        yield NodeState(id=f"silent-{name}-{node}", node=node, alive=False, silent_s=SILENT_S)
    elif given.kernel:
        reader = KernelReader()
        for _, line in kernel_text.records(given.kernel.splitlines()):
            for draft in reader.read(line.text):
                yield EventSeen(event=event_of(draft, node, given.age_s))
    else:
        severity = Severity(given.severity) if given.severity else KINDS[given.event].severity
        draft = Draft(kind=given.event, component=given.component, severity=severity, data=given.data)
        yield EventSeen(event=event_of(draft, node, given.age_s))


def event_of(draft: Draft, node: str, age_s: float = 0.0, *, order: int = 1) -> Event:
    """An event as the agent of `node` would send it."""
    return Event(
        id=f"{node}:example:{order}",
        node=node,
        kind=draft.kind,
        component=draft.component,
        severity=draft.severity,
        at="",
        age_s=age_s,
        boot="example",
        count=draft.count,
        data=draft.data,
        evidence=draft.evidence,
    )


def _numbered(fact: EventSeen | NodeState, index: int, number: int) -> EventSeen | NodeState:
    """Facts of one node are numbered in the order of the example."""
    if isinstance(fact, NodeState):
        return fact
    order = 1000 * index + number + 1
    return EventSeen(event=replace(fact.event, id=f"{fact.event.node}:example:{order}"))


def _patience(pack: Pack) -> float:
    """How long after the last fact to look: until every rule has settled and all that lasts has lasted."""
    settle = max((rule.settle_s for rule in pack.rules), default=0.0)
    # `unlike` waits for days, in which all else would be forgotten: its examples say by themselves how long.
    lasting = max((symptom.for_s for symptom in pack.symptoms if symptom.detect != "unlike"), default=0.0)
    return settle + lasting + 10.0


def _told(timeline: Timeline) -> list[Incident]:
    """The incidents that people were or could have been told of: neither explained nor over before it settled."""
    quiet = {
        note.incident for note in timeline.notes if note.kind == "incident.closed" and note.data.get("quiet")
    }
    return [
        incident
        for incident in timeline.incidents.values()
        if incident.state is not IncidentState.EXPLAINED and incident.id not in quiet
    ]


def _compare(expect: Expect, came: list[Incident]) -> str:
    shown = "; ".join(_shown(incident) for incident in came) or "no incident"
    if expect.nothing:
        return f"expected no incident, came: {shown}" if came else ""
    if expect.incidents is not None and len(came) != expect.incidents:
        return f"expected {expect.incidents} incidents, came: {shown}"
    if not expect.incident:
        return ""
    for incident in came:
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
