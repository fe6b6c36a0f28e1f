"""One incident as spans: what has ended of it, in the order in which it ended, and the incident itself when it is over.

A span is told once and does not change: each is made only when its end is known, from notes, which never change. Whoever makes
them again later, or in another brain, gets the same ids and times.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from agent.contract.messages import clip
from brain.core import ids
from brain.core.state import IncidentState
from brain.traces.ids import span_id
from brain.traces.run_story import ENDS as RUN_ENDS
from brain.traces.run_story import OVER as RUN_OVER
from brain.traces.run_story import run_spans
from brain.traces.spans import MAX_EVENTS, MAX_SPANS, MAX_TEXT, Span, SpanEvent, SpanKind, on, said

Json = Mapping[str, Any]
OVER = (IncidentState.CLOSED.value, IncidentState.EXPLAINED.value)
_STATES = {f"incident.{state.value}": state for state in IncidentState}
# The last of these notes completes a trace.
_ENDS = (*(f"incident.{state}" for state in OVER), "page.delivered", "page.undelivered", *RUN_ENDS)
_OPENED = ("incident.opened", "incident.reopened")
# What stands in spans of its own.
_TOLD = (*_STATES, *_OPENED, "page.sent", "page.delivered", "page.undelivered")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the read model holds of one incident, as the engine's fields."""

    incident: Json
    runs: list[dict[str, Any]]
    # of the incident and its runs, in order
    notes: list[dict[str, Any]]
    # are there more notes than these?
    cut: bool = False
    # on the symptoms that its evidence caused
    symptom_notes: list[dict[str, Any]] = field(default_factory=list)


def root_of(incident: Json) -> str:
    """The first span of an incident; one that was opened again has another one in the same trace, each time."""
    return span_id(incident["id"], *_time(incident))


def spans(told: Told) -> list[Span]:
    """The spans that have ended, since it was opened for the last time. The one of the incident itself comes last; with it all is
    told of this time.
    """
    told = _this_time(told)
    incident = told.incident
    root = root_of(incident)
    found = sorted(
        [*_facts(told, root), *_states(told, root), *_pages(told, root), *_runs(told, root)],
        key=lambda span: span.end,  # stable: who ends later never pushes out what was told
    )
    kept = found[: MAX_SPANS - 1]
    if _is_over(told):
        kept.append(_whole(told, root, found, len(found) - len(kept)))
    about = said(incident_id=incident["id"])
    return [replace(span, attributes={**about, **span.attributes}) for span in kept]


def _time(incident: Json) -> tuple[str, ...]:
    """What tells the spans of this time from those before: nothing for the first."""
    times = incident.get("times", 1)
    return ("again", str(times)) if times > 1 else ()


def _this_time(told: Told) -> Told:
    """Without what was before the incident was opened again: that has spans of its own, and was told when it was over."""
    before = told.incident.get("episodes") or ()
    if not before:
        return told
    over, notes = before[-1]["closed_at"], told.notes
    begins = [place for place, note in enumerate(notes) if note["kind"] == "incident.reopened"]
    return replace(
        told,
        notes=notes[begins[-1] :] if begins else [note for note in notes if note["at"] > over],
        runs=[run for run in told.runs if run["started_at"] > over],
        symptom_notes=[note for note in told.symptom_notes if note["at"] > over],
    )


def _is_over(told: Told) -> bool:
    """Whether nothing can follow: a page may still have to be delivered, and a cancelled step to end."""
    incident = told.incident
    ended = all(run["state"] in RUN_OVER for run in told.runs)
    return incident["state"] in OVER and not incident["pages"]["waiting"] and ended


def _whole(told: Told, root: str, found: list[Span], left_out: int) -> Span:
    incident = told.incident
    since = (incident.get("episodes") or [{"closed_at": 0.0}])[-1]["closed_at"]
    facts = [fact["at"] for fact in incident["evidence"] if fact["at"] > since]
    begins = [incident["opened_at"], *facts, *(span.start for span in found)]
    ends = [incident["closed_at"], *(span.end for span in found)]
    human = next((note for note in told.notes if note["kind"] == "incident.needs_human"), None)
    attributes = on(incident["node"]) | said(
        cause=incident["cause"],
        scope=incident["scope"],
        nodes=incident["nodes"],
        severity=incident["severity"],
        rule=incident["rule"],
        rules_version=incident["pack"],
        because=incident["because"],
        incident_state=incident["state"],
        why=incident["closed_why"],
        explained_by=incident["explained_by"],
    )
    if left_out:
        attributes |= said(spans_left_out=left_out)
    last = max((place for place, one in enumerate(told.notes) if one["kind"] in _ENDS), default=-1)
    other = [one for one in told.notes[:last] if not one["run"] and one["kind"] not in _TOLD]
    events = tuple(_event(one["at"], one["kind"], one["text"]) for one in other[:MAX_EVENTS])
    span = Span(
        id=root,
        parent="",
        name=f"incident {incident['cause']}",
        start=min(begins),
        end=max(ends),
        attributes=attributes,
        events=events,
        links=(incident["explained_by"],) if incident["explained_by"] else (),
    )
    return failed(span, "needs_human", human["text"]) if human else span


def failed(span: Span, kind: str, text: str) -> Span:
    """The span with an error."""
    return replace(
        span,
        error=kind,
        message=clip(text, MAX_TEXT),
        attributes={**span.attributes, "error.type": kind},
    )


def _event(at: float, name: str, text: str) -> SpanEvent:
    return SpanEvent(at=at, name=name, attributes=said(why=text))


def _facts(told: Told, root: str) -> Iterator[Span]:
    """How the facts came, what they made, and the decision: symptoms, below them their facts."""
    incident = told.incident
    evidence = {fact["id"]: fact for fact in incident["evidence"]}
    begun = [note for note in told.symptom_notes if note["kind"] == "symptom.started"]
    known: dict[str, None] = {}
    before = [note["at"] for note in begun if note["at"] <= incident["opened_at"]]
    for key in incident["symptoms"]:
        name, scope = ids.split(key)
        own = [note for note in begun if note["data"].get("symptom") == name and note["scope"] == scope]
        for note in own:
            ids_of_facts = dict.fromkeys((*note["data"].get("events", ()), note["caused_by"]))
            facts = [evidence[one] for one in ids_of_facts if one in evidence]
            symptom = _symptom(incident["id"], root, note, facts, name)
            yield symptom
            fact = evidence.get(note["caused_by"])
            if fact is not None and fact["id"] not in known:
                known[fact["id"]] = None
                yield _fact(incident["id"], symptom.id, fact, note["at"])
    opened = next((note for note in told.notes if note["kind"] in _OPENED), None)
    if before and opened:
        by = opened["data"]  # the rules in force then: newer ones may have rejudged it
        yield Span(
            id=span_id(incident["id"], *_time(incident), "decide"),
            parent=root,
            name="decide",
            start=max(before),
            end=incident["opened_at"],
            attributes=said(rule=by.get("rule", ""), rules_version=by.get("pack", ""), why=opened["text"]),
        )


def _symptom(incident: str, root: str, note: Json, facts: list[Json], name: str) -> Span:
    """A symptom whose facts may have come from several nodes, over some time: those that are still in the evidence."""
    return Span(
        id=span_id(incident, "symptom", note["id"]),
        parent=root,
        name=f"symptom {name}",
        start=min([note["at"], *(fact["at"] for fact in facts)]),
        end=note["at"],
        attributes=said(symptom=name, scope=note["scope"], why=note["text"]),
        events=tuple(
            SpanEvent(at=fact["at"], name=f"fact {fact['kind']}", attributes=_of_fact(fact))
            for fact in facts[:MAX_EVENTS]
        ),
    )


def _fact(incident: str, symptom: str, fact: Json, arrived: float) -> Span:
    """The fact that began a symptom: when it stood on the log is known by the note that it caused."""
    age_s = max(0.0, arrived - fact["at"])
    return Span(
        id=span_id(incident, "fact", fact["id"]),
        parent=symptom,
        name=f"fact {fact['kind']}",
        start=min(fact["at"], arrived),
        end=arrived,
        attributes=_of_fact(fact) | said(event_age_s=round(age_s, 6)),
    )


def _of_fact(fact: Json) -> dict[str, Any]:
    return on(fact["node"]) | said(
        event_id=fact["id"],
        event_kind=fact["kind"],
        event_component=fact["component"],
        event_text=fact["text"],
    )


def _states(told: Told, root: str) -> Iterator[Span]:
    """The states in which an incident waits, each until the next one."""
    incident = told.incident
    changes = [note for note in told.notes if note["kind"] in _STATES]
    if changes and (changes[0]["kind"] == "incident.open" or changes[0]["data"].get("quiet")):
        yield Span(
            id=span_id(incident["id"], *_time(incident), "hold-off"),
            parent=root,
            name="hold-off",
            start=incident["opened_at"],
            end=changes[0]["at"],
            attributes=said(why=changes[0]["text"]),
        )
    names = {IncidentState.NEEDS_HUMAN: "needs human", IncidentState.RECOVERED: "recovered"}
    for note, after in pairwise(changes):
        state = _STATES[note["kind"]]
        if state in names:
            span = Span(
                id=span_id(incident["id"], "state", note["id"]),
                parent=root,
                name=names[state],
                start=note["at"],
                end=after["at"],
                attributes=said(why=note["text"]),
            )
            came_back = state is IncidentState.RECOVERED and _STATES[after["kind"]] is IncidentState.OPEN
            yield failed(span, "recurred", after["text"]) if came_back else span


def _pages(told: Told, root: str) -> Iterator[Span]:
    """Each page, from when it was due. One that another has replaced ends with its last attempt, or when that one was due."""
    waiting = told.incident["pages"]["waiting"]
    failures = [note for note in told.notes if note["kind"] == "page.undelivered"]
    taken = {note["data"].get("page", ""): note for note in told.notes if note["kind"] == "page.delivered"}
    sent = [note for note in told.notes if note["kind"] == "page.sent"]
    for place, note in enumerate(sent):
        page = note["data"].get("page", "")
        if page in waiting:
            continue
        own = [one for one in failures if one["data"].get("page") == page]
        delivered = taken.get(page)
        if not delivered and told.cut:
            continue  # it may have been delivered later
        replaced = next(
            (one for one in sent[place + 1 :] if one["data"].get("to") == note["data"].get("to")), note
        )
        attempts = len(own) + bool(delivered)
        span = Span(
            id=span_id(told.incident["id"], "page", page),
            parent=root,
            name=f"page {note['data'].get('what', '')}".strip(),
            start=note["at"],
            end=(delivered or (own[-1] if own else replaced))["at"],
            kind=SpanKind.CLIENT,
            attributes=said(
                page_id=page,
                page_group=str(note["data"].get("to", "")),
                page_channel=str(delivered["data"].get("channel", "")) if delivered else "",
                page_failed=str(delivered["data"].get("failed", "")) if delivered else "",
                page_attempts=attempts,
                why=note["text"],
            ),
            events=tuple(_event(one["at"], one["kind"], one["text"]) for one in own[:MAX_EVENTS]),
        )
        gone = "another page, which says more, took its place"
        yield span if delivered else failed(span, "undelivered", own[-1]["text"] if own else gone)


def _runs(told: Told, root: str) -> Iterator[Span]:
    for run in told.runs:
        own = [note for note in told.notes if note["run"] == run["id"]]
        yield from run_spans(told.incident["id"], run, own, root)
