"""From facts to symptoms: seen, count, sum, lasting, absence, flapping, spread; each with a time to live. `unlike`: likes.py.

Windows go by the facts' own times (arrival minus age), so that a backlog after an outage is not taken for a burst.
Every function returns the symptoms that changed what rules can see; the engine then judges their scopes.
"""

from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import replace

from agent.contract.messages import Event, Scalar, clip
from brain.core import conditions
from brain.core.spec import Match, Override, Symptom
from brain.core.state import Evidence, SymptomState
from brain.core.topology import component_of, node_of, type_of
from brain.core.turn import Turn

MAX_HITS = 1000  # facts remembered in one window; a window that needs more is refused by `gpuward check`
MAX_EVIDENCE = 6  # first ones and the newest
LASTING = ("lasting", "unlike")  # begin when they have lasted for_s


def key_of(name: str, scope: str) -> str:
    """The name of one symptom at one scope."""
    return f"{name}@{scope}"


def feed(turn: Turn, event: Event) -> list[SymptomState]:
    """Takes one event into every symptom that it concerns."""
    feeds = turn.book.feeds.get(event.kind)
    if feeds is None:
        return []
    if (overrides := turn.book.overrides.get(event.kind)) is not None:
        event = overruled(overrides, event)
    changed: list[SymptomState] = []
    for symptom, match, starts in feeds:
        if match.where and not _matches(match, event):
            continue
        scope = turn.book.topology.at(event.node, event.component, symptom.scope)
        if not scope:
            continue
        if starts:
            changed.extend(_hit(turn, symptom, scope, event))
        else:
            changed.extend(_cleared(turn, symptom, scope, event))
    return changed


def overruled(overrides: Iterable[Override], event: Event) -> Event:
    """The event as the site wants it judged; data then names the override. The log keeps what the node said."""
    for override in overrides:
        if _matches(override.on, event):
            data = {**event.data, "overruled_by": override.name}
            if override.action:
                data["action"] = override.action
            said = f"{event.evidence} [{override.name}: {override.because}]".lstrip()
            return replace(event, severity=override.severity or event.severity, data=data, evidence=said)
    return event


def _matches(match: Match, event: Event) -> bool:
    for name, want in match.where.items():
        value: Scalar | None
        if name == "severity":
            value = event.severity.value
        elif name == "component":
            value = event.component
        elif name == "component_type":
            value = type_of(event.component)
        elif name == "count":
            value = event.count
        else:
            value = event.data.get(name)
        if not conditions.test(want, value):
            return False
    return True


def _hit(turn: Turn, symptom: Symptom, scope: str, event: Event) -> Iterator[SymptomState]:
    at = turn.now - event.age_s
    if event.age_s > symptom.ttl_s:
        turn.note(
            "symptom.late",
            f"{symptom.name}: a fact {event.age_s:.0f} s old is past its time to live of {symptom.ttl_s:.0f} s",
            scope=scope,
        )
        return
    key = key_of(symptom.name, scope)
    state = turn.state.symptoms.get(key)
    if state is None:
        state = turn.state.symptoms[key] = SymptomState(name=symptom.name, scope=scope, since=at)
    began = state.on
    state.on = True
    state.last = max(state.last, at)
    state.heard = turn.now
    state.total += event.count
    fresh_evidence = _remember(state, event, at)
    carried = _carry(symptom, state, event)
    if _reached(turn, symptom, state, event, at, began=began):
        if not state.active:
            yield from start(turn, key, state)
        elif carried or fresh_evidence:
            yield state
    elif symptom.detect == "absence" and state.active:
        yield from end(turn, state, "it was seen again")
        state.on = True
        turn.state.symptoms[key] = state
    arm(turn, key, symptom, state)


def _reached(
    turn: Turn, symptom: Symptom, state: SymptomState, event: Event, at: float, *, began: bool
) -> bool:
    """Is the symptom's condition met by now? (lasting and absence wait for their timer.)"""
    if state.active and symptom.detect not in ("flapping", "absence"):
        return True
    match symptom.detect:
        case "seen":
            return True
        case "count":
            return _window(state, at, event.count, symptom) >= symptom.at_least
        case "sum":
            value = event.data.get(symptom.sum_of, 0)
            weight = float(value) if isinstance(value, (int, float)) else 0.0
            return _window(state, at, weight, symptom) >= symptom.at_least
        case "flapping":
            changes = _window(state, at, 0 if began else 1, symptom)
            return state.active or changes >= symptom.at_least
        case "lasting":
            if not began:
                state.since = at
            return turn.now - state.since >= symptom.for_s
        case _:
            return False


def _window(state: SymptomState, at: float, weight: float, symptom: Symptom) -> float:
    """Adds a hit and returns the sum over the window that ends with the newest one."""
    if weight:
        insort(state.hits, (at, weight))
    newest = state.hits[-1][0] if state.hits else at
    state.hits = [hit for hit in state.hits if hit[0] > newest - symptom.within_s][-MAX_HITS:]
    if state.hits and not state.active:
        state.since = state.hits[0][0]
    return sum(hit[1] for hit in state.hits)


def _cleared(turn: Turn, symptom: Symptom, scope: str, event: Event) -> Iterator[SymptomState]:
    key = key_of(symptom.name, scope)
    state = turn.state.symptoms.get(key)
    if symptom.detect == "flapping":
        if state is None or not state.on:
            return
        state.on = False
        state.last = max(state.last, turn.now - event.age_s)
        state.heard = turn.now
        if _window(state, turn.now - event.age_s, 1, symptom) >= symptom.at_least and not state.active:
            yield from start(turn, key, state)
        arm(turn, key, symptom, state)
        return
    if state is None:
        return
    if turn.now - event.age_s < state.last:
        return  # it cleared before it last began: an older fact that came late
    if state.active:
        yield from end(turn, state, f"{event.kind} on {event.component}")
    else:
        forget(turn, key)


def start(turn: Turn, key: str, state: SymptomState) -> Iterator[SymptomState]:
    """Makes a symptom active."""
    state.active = True
    turn.index.started(key, state)
    line = f": {state.evidence[-1].text}" if state.evidence else ""
    turn.note(
        "symptom.started",
        f"{state.name} at {state.scope}{line}",
        scope=state.scope,
        data={"symptom": state.name, "events": [e.id for e in state.evidence]},
    )
    yield state
    yield from _spread(turn, state, began=True)


def end(turn: Turn, state: SymptomState, why: str) -> Iterator[SymptomState]:
    """Ends an active symptom and forgets it."""
    key = key_of(state.name, state.scope)
    state.active = False
    turn.index.ended(key, state)
    forget(turn, key)
    turn.note(
        "symptom.ended",
        f"{state.name} at {state.scope} ended: {why}",
        scope=state.scope,
        data={"symptom": state.name},
    )
    yield state
    yield from _spread(turn, state, began=False)


def _spread(turn: Turn, state: SymptomState, *, began: bool) -> Iterator[SymptomState]:
    """Counts a symptom's nodes in the wider scopes that watch for a shared cause."""
    node = node_of(state.scope)
    for symptom in turn.book.spreads.get(state.name, ()) if node else ():
        scope = turn.book.topology.at(node, component_of(state.scope), symptom.scope)
        if not scope:
            continue
        key = key_of(symptom.name, scope)
        wide = turn.state.symptoms.get(key)
        if began:
            if wide is None:
                wide = turn.state.symptoms[key] = SymptomState(
                    name=symptom.name, scope=scope, since=state.since
                )
            wide.members[node] = state.since
            wide.last = max(wide.last, state.last)
            wide.heard = turn.now
            wide.total += 1
            if len(wide.evidence) < MAX_EVIDENCE and state.evidence:
                wide.evidence.append(state.evidence[0])
            if not wide.active and _spread_reached(turn, symptom, wide):
                yield from start(turn, key, wide)
            arm(turn, key, symptom, wide)
        elif wide is not None and not _elsewhere(turn, state, symptom, scope):
            wide.members.pop(node, None)
            if not wide.members:
                if wide.active:
                    yield from end(turn, wide, "no node shows it any more")
                else:
                    forget(turn, key)
            elif wide.active and len(wide.members) < _needed(turn, symptom, scope) / 2:
                yield from end(turn, wide, f"only {len(wide.members)} nodes show it still")


def _elsewhere(turn: Turn, state: SymptomState, symptom: Symptom, scope: str) -> bool:
    """Does the same node show the symptom on another component within the same wider scope?"""
    node = node_of(state.scope)
    return any(
        other.name == state.name
        and turn.book.topology.at(node, component_of(other.scope), symptom.scope) == scope
        for other in turn.index.active.get(node, {}).values()
    )


def _needed(turn: Turn, symptom: Symptom, scope: str) -> float:
    size = turn.book.topology.size(scope, len(turn.state.nodes))
    return max(symptom.at_least, symptom.share * size)


def _spread_reached(turn: Turn, symptom: Symptom, wide: SymptomState) -> bool:
    needed = _needed(turn, symptom, wide.scope)
    if len(wide.members) < needed:
        return False
    if not symptom.within_s:
        return True
    newest = max(wide.members.values())
    return sum(1 for at in wide.members.values() if at >= newest - symptom.within_s) >= needed


def tick(turn: Turn, key: str) -> list[SymptomState]:
    """A symptom's timer fired: it lasted long enough, was missed, or outlived its time."""
    state = turn.state.symptoms.get(key)
    if state is None:
        return []
    symptom = turn.book.symptoms.get(state.name)
    if symptom is None:
        return list(end(turn, state, "its definition was removed")) if state.active else []
    if state.active:
        if turn.now >= _expires(symptom, state):
            return list(end(turn, state, "nothing renewed it within its time to live"))
    elif (symptom.detect in LASTING and state.on and turn.now - state.since >= symptom.for_s) or (
        symptom.detect == "absence" and turn.now - state.last >= symptom.for_s
    ):
        changed = list(start(turn, key, state))
        arm(turn, key, symptom, state)
        return changed
    elif symptom.detect not in (*LASTING, "absence") and turn.now >= _expires(symptom, state):
        forget(turn, key)
        return []
    arm(turn, key, symptom, state)
    return []


def _expires(symptom: Symptom, state: SymptomState) -> float:
    """When a symptom, or the window that fills, is over unless something renews it."""
    if symptom.detect == "spread":
        return state.heard + symptom.ttl_s
    if not state.active or symptom.detect == "flapping":
        return state.heard + (symptom.within_s or symptom.ttl_s)
    return state.heard + symptom.ttl_s


def arm(turn: Turn, key: str, symptom: Symptom, state: SymptomState) -> None:
    """Sees to it that a timer will look at the symptom again; a timer that is set already looks early and re-arms."""
    if key not in turn.state.symptoms:
        return
    name = f"symptom:{key}"
    if not state.active and symptom.detect in LASTING:
        due = state.since + symptom.for_s
    elif not state.active and symptom.detect == "absence":
        due = state.last + symptom.for_s
    else:
        due = _expires(symptom, state)
    due = max(due, turn.now + 0.001)
    present = turn.state.timers.get(name)
    if present is None or present > due or present <= turn.now:
        turn.set_timer(name, due)


def forget(turn: Turn, key: str) -> None:
    """Drops a symptom that is not active."""
    turn.state.symptoms.pop(key, None)
    turn.cancel_timer(f"symptom:{key}")


def _carry(symptom: Symptom, state: SymptomState, event: Event) -> bool:
    """Takes over the event's fields that the situation shall have; did any change?"""
    changed = False
    for field, source in symptom.carry.items():
        value = event.data.get(source)
        if value is not None and state.carried.get(field) != value:
            state.carried[field] = value
            changed = True
    return changed


def _remember(state: SymptomState, event: Event, at: float) -> bool:
    """Keeps the first few facts and the newest; is the event one of the first few?"""
    text = event.evidence or ", ".join(f"{name}={value}" for name, value in event.data.items())
    evidence = Evidence(
        id=event.id, at=at, node=event.node, kind=event.kind, component=event.component, text=clip(text)
    )
    if len(state.evidence) < MAX_EVIDENCE:
        state.evidence.append(evidence)
        return True
    state.evidence[-1] = evidence
    return False
