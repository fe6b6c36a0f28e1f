"""What one event says of a symptom: whether it matches, what counts in the window, what is kept of it."""

from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter

from agent.contract.messages import Event, clip
from brain.core.pack.feeds import Where, field_of
from brain.core.pack.spec import Override, Symptom
from brain.core.state import Evidence, SymptomState

MAX_HITS = 1000  # facts kept in one window; `gpuward check` refuses a flapping symptom that needs more
MAX_EVIDENCE = 6  # the first facts and the newest
_time_of, _weight_of = itemgetter(0), itemgetter(1)  # of a hit


def overruled(overrides: Iterable[tuple[Override, Where]], event: Event) -> Event:
    """The event with the first override that fits applied, and named in its data. The log keeps the node's own."""
    for override, where in overrides:
        if matches(where, event):
            data = {**event.data, "overruled_by": override.name}
            if override.action:
                data["action"] = override.action
            evidence = f"{event.evidence} [{override.name}: {override.because}]".lstrip()
            return replace(event, severity=override.severity or event.severity, data=data, evidence=evidence)
    return event


def matches(where: Where, event: Event) -> bool:
    """Whether all tests pass. Asked several times for each event: a generator would take twice as long."""
    data = event.data
    for name, passes in where.data:
        if not passes(data.get(name)):
            return False
    for name, passes in where.envelope:  # noqa: SIM110 - see above
        if not passes(field_of(event, name)):
            return False
    return True


def window(state: SymptomState, at: float, weight: float, symptom: Symptom) -> float:
    """Adds a hit (weight 0: none). Returns the sum of the weights in the window that ends with the newest hit."""
    hits = state.hits
    if weight:
        insort(hits, (at, weight))
    if not hits:
        return 0
    # Nearly always nothing leaves, or one hit: to make the list anew took a sixth of the time that an event takes.
    begin = hits[-1][0] - symptom.within_s
    if hits[0][0] <= begin:
        del hits[: bisect_right(hits, begin, key=_time_of)]
    if len(hits) > MAX_HITS:
        del hits[:-MAX_HITS]
    if hits and not state.active:
        state.since = hits[0][0]
    total: float = sum(map(_weight_of, hits))
    return total


def met(symptom: Symptom, state: SymptomState, event: Event, at: float, now: float, *, was_on: bool) -> bool:
    """Whether the symptom's condition is met with this event. `lasting` and `absence` begin by their timer."""
    if state.active and symptom.detect not in ("flapping", "absence"):
        return True
    match symptom.detect:
        case "seen":
            return True
        case "count":
            return window(state, at, event.count, symptom) >= symptom.at_least
        case "sum":
            value = event.data.get(symptom.sum_of, 0)
            weight = float(value) if isinstance(value, (int, float)) else 0.0
            return window(state, at, weight, symptom) >= symptom.at_least
        case "flapping":
            changes = window(state, at, 0 if was_on else 1, symptom)
            return state.active or changes >= symptom.at_least
        case "lasting":
            if not was_on:
                state.since = at
            return now - state.since >= symptom.for_s
        case _:
            return False


def carry(symptom: Symptom, state: SymptomState, event: Event) -> bool:
    """Takes over the event's fields that the situation carries. Whether any changed."""
    changed = False
    for field, source in symptom.carry.items():
        value = event.data.get(source)
        if isinstance(value, str) and source in symptom.apart:
            continue  # of all open facts: apart.py
        if value is not None and state.carried.get(field) != value:
            state.carried[field] = value
            changed = True
    return changed


def remember(state: SymptomState, event: Event, at: float) -> bool:
    """Keeps the event as evidence: the first few and the newest. Whether it is one of the first few."""
    text = event.evidence or ", ".join(f"{name}={value}" for name, value in event.data.items())
    evidence = Evidence(
        id=event.id, at=at, node=event.node, kind=event.kind, component=event.component, text=clip(text)
    )
    if len(state.evidence) < MAX_EVIDENCE:
        state.evidence.append(evidence)
        return True
    state.evidence[-1] = evidence
    return False
