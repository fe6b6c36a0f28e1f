"""From facts to symptoms: seen, count, sum, lasting, absence, flapping, spread; each with a time to live.

`unlike` is in drift.py. Windows use the times when the facts occurred (arrival minus age), so that a backlog after an outage
is no burst. The functions return the symptoms that began, ended or carry something new: the scopes that see them are judged.
"""

import math
from collections.abc import Iterator, Sequence

from agent.contract.counted import counted
from agent.contract.messages import Event
from brain.core import ids, share
from brain.core.context import Context
from brain.core.faults import apart, asking, facts, jobs, late, releases, remembered, spread
from brain.core.pack.spec import Symptom
from brain.core.pack.topology import CELL, node_of
from brain.core.state import SetAside, SymptomState

LASTING = ("lasting", "unlike")  # ways of detection that begin a symptom after for_s


def feed(ctx: Context, event: Event) -> list[SymptomState]:
    """Counts one event for every symptom that names its kind. Returns the symptoms that changed."""
    feeds = ctx.compiled.feeds.get(event.kind)
    if feeds is None:
        return []
    if (overrides := ctx.compiled.overrides.get(event.kind)) is not None:
        event = facts.overruled(overrides, event)
    changed: list[SymptomState] = []
    for symptom, where, starts in feeds.of(event):
        if not facts.matches(where, event):
            continue
        scope = ctx.compiled.topology.at(event.node, event.component, symptom.scope)
        if not scope:
            continue
        if starts:
            changed.extend(_hit(ctx, symptom, scope, event))
        else:
            changed.extend(_cleared(ctx, symptom, scope, event))
    return changed


def _hit(ctx: Context, symptom: Symptom, scope: str, event: Event) -> Iterator[SymptomState]:
    """An event that starts or feeds a symptom."""
    at = ctx.now - event.age_s
    if event.age_s > symptom.ttl_s:
        ctx.note(
            "symptom.late",
            f"{symptom.name}: a fact {event.age_s:.0f} s old is past its time to live of {symptom.ttl_s:.0f} s",
            scope=scope,
        )
        return
    if ended := late.was_over(ctx, symptom, scope, event, at):
        ctx.note(
            "symptom.late",
            f"{symptom.name}: a fact {event.age_s:.0f} s old says what had ended {ended - at:.0f} s later",
            scope=scope,
        )
        return
    key = ids.key(symptom.name, scope)
    state = ctx.state.symptoms.get(key)
    if state is None:
        if not share.has_room(ctx, scope):
            yield from _left_out(ctx, event)
            return
        state = _know(ctx, key, SymptomState(name=symptom.name, scope=scope, since=at))
    was_on, state.on = state.on, True
    state.last = max(state.last, at)
    state.arrived = ctx.now
    state.total += event.count
    fresh_evidence = facts.remember(state, event, at)
    carried = facts.carry(symptom, state, event)
    carried = apart.begins(symptom, state, event, at) or carried
    other_job = jobs.told_by(ctx, symptom, state, event)
    if facts.met(symptom, state, event, at, ctx.now, was_on=was_on):
        if not state.active:
            yield from start(ctx, key, state)
            other_job = False
        elif carried or fresh_evidence or ctx.state.dismissed:
            yield state
        if other_job:
            yield from count_job_in(ctx, state, event.component)
    elif symptom.detect == "absence" and state.active:
        yield from end(ctx, state, "it was seen again")
        state.on = True
        _know(ctx, key, state)
    arm(ctx, key, symptom, state)


def _know(ctx: Context, key: str, state: SymptomState) -> SymptomState:
    ctx.state.symptoms[key] = state
    ctx.index.add_part(state.scope)
    return state


def _left_out(ctx: Context, event: Event) -> Iterator[SymptomState]:
    """A node has its share of what is open: what is more is not taken up, and one incident of the node says so."""
    told = share.crowded(ctx, event)
    yield from feed(ctx, told) if told is not None else ()


def _cleared(ctx: Context, symptom: Symptom, scope: str, event: Event) -> Iterator[SymptomState]:
    """An event that clears a symptom; for `flapping` it is one more change."""
    key = ids.key(symptom.name, scope)
    state = ctx.state.symptoms.get(key)
    at = ctx.now - event.age_s
    late.remember(ctx, symptom, scope, key, event, at)
    spread.is_over(ctx, key, at)
    if state is None:
        return
    carried = dict(state.carried)
    if symptom.detect == "flapping":
        if state.on:
            state.on = False
            state.last = max(state.last, at)
            state.arrived = ctx.now
            if facts.window(state, at, 1, symptom) >= symptom.at_least and not state.active:
                yield from start(ctx, key, state)
            arm(ctx, key, symptom, state)
    elif (what := apart.ends(symptom, state, event, at, ctx.now)) is apart.Ending.NONE:
        arm(ctx, key, symptom, state)  # what is left may end sooner
        if state.active and state.carried != carried:
            yield state
    elif state.active:
        proven = what is apart.Ending.PROVEN
        yield from end(ctx, state, f"{event.kind} on {event.component}", proven=proven)
    else:
        forget(ctx, key)


def start(ctx: Context, key: str, state: SymptomState) -> Iterator[SymptomState]:
    """Makes a symptom active and counts it in the spread symptoms around it."""
    asking.judged_now(state).active = True
    spread.is_over(ctx, key, math.inf)  # it counts as it is
    ctx.state.symptoms[key] = ctx.state.symptoms.pop(
        key
    )  # active ones stand in the order in which they began
    ctx.index.add_symptom(key, state)
    line = f": {state.evidence[-1].text}" if state.evidence else ""
    ctx.note(
        "symptom.started",
        f"{state.name} at {state.scope}{line}",
        scope=state.scope,
        data={"symptom": state.name, "events": [e.id for e in state.evidence]},
    )
    yield state
    for symptom, place, node in spread.counting(ctx, state):
        yield from count_in(ctx, symptom, place, node, state)
    releases.fell_ill(ctx, state)
    jobs.falls_ill(ctx, state.name, node_of(state.scope))


def end(
    ctx: Context, state: SymptomState, why: str, *, proven: bool = True, keep: bool = False
) -> Iterator[SymptomState]:
    """Ends an active symptom, forgets it (unless `keep`), and takes it out of the spread symptoms around it.

    `proven`: a fact, or an operator, says that it is over. Otherwise its incidents are not proven to be healed.
    """
    yield from _end(ctx, state, why, proven=proven, keep=keep)
    yield from _count_out_of(ctx, state.name, state.scope, state.jobs)


def set_aside(ctx: Context, state: SymptomState, run: str, why: str) -> Iterator[SymptomState]:
    """Ends an active symptom while a run's step is verified. Until the run is over, its node counts as showing it.

    A fault that goes round is not taken for single ones because our remedies follow it from node to node (law 6).
    """
    until = _expires(ctx.compiled.symptoms[state.name], state)
    ctx.state.set_aside[ids.key(state.name, state.scope)] = SetAside(
        run=run, at=ctx.now, until=until, jobs=list(state.jobs)
    )
    yield from _end(ctx, state, why, proven=False)


def run_ended(ctx: Context, run: str) -> list[SymptomState]:
    """What a run had set aside is over now, or has come back. Returns the spread symptoms that ended."""
    changed: list[SymptomState] = []
    for key, aside in [each for each in ctx.state.set_aside.items() if each[1].run == run]:
        del ctx.state.set_aside[key]
        spread.was_treated(ctx, key, aside)
        changed.extend(_count_out_of(ctx, *ids.split(key), aside.jobs))
    return changed


def recovered_long_ago(ctx: Context, key: str) -> list[SymptomState]:
    """The timer of recovered nodes fired. Returns the spread if it is over without them."""
    spread.forget_old(ctx, key)
    wide = ctx.state.symptoms.get(key)
    symptom = ctx.compiled.symptoms.get(ids.name_of(key))
    return list(recount(ctx, key, symptom, wide)) if wide is not None and symptom is not None else []


def _end(
    ctx: Context, state: SymptomState, why: str, *, proven: bool, keep: bool = False
) -> Iterator[SymptomState]:
    key = ids.key(state.name, state.scope)
    state.active = False
    ctx.index.remove_symptom(key, state)
    if not keep:
        forget(ctx, key)
    if not proven:
        for incident in ctx.state.incidents.values():
            if key in incident.symptoms:
                incident.unproven = True
    ctx.note(
        "symptom.ended",
        f"{state.name} at {state.scope} ended: {why}",
        scope=state.scope,
        data={"symptom": state.name},
    )
    yield state


def count_in(
    ctx: Context, symptom: Symptom, scope: str, node: str, state: SymptomState
) -> Iterator[SymptomState]:
    """A node counts in a wider scope."""
    key = ids.key(symptom.name, scope)
    wide = ctx.state.symptoms.get(key)
    if wide is None:
        wide = ctx.state.symptoms[key] = SymptomState(name=symptom.name, scope=scope, since=state.since)
    joined, bursts = node not in wide.members, len(wide.bursts)
    spread.joins(ctx, symptom, wide, node, state.since)
    wide.last = max(wide.last, state.last)
    wide.arrived = ctx.now
    wide.total += 1
    if len(wide.evidence) < facts.MAX_EVIDENCE and state.evidence:
        wide.evidence.append(state.evidence[0])
    if not wide.active and spread.reached(ctx, symptom, wide):
        spread.date(ctx, symptom, wide)
        yield from start(ctx, key, wide)
    elif wide.active and joined:
        dated = not wide.cause_at and spread.date(ctx, symptom, wide)
        if (
            dated
            or len(wide.bursts) != bursts  # those of another burst have incidents of their own by now
            or spread.grew_large(ctx, symptom, wide)
            or asking.is_due(ctx, symptom, wide, node)
        ):
            yield asking.judged_now(wide)
        elif asking.is_unjudged(ctx, symptom, wide):
            arm(ctx, key, symptom, wide)


def count_job_in(ctx: Context, state: SymptomState, job: str) -> Iterator[SymptomState]:
    """The log of one more job tells what is active on a node."""
    for symptom, place, node in spread.watchers(ctx, state.name, state.scope, (job,)):
        if place == job:
            yield from count_in(ctx, symptom, place, node, state)


def _count_out_of(ctx: Context, name: str, scope: str, by: Sequence[str]) -> Iterator[SymptomState]:
    """A node no longer shows a symptom at one of its components: it is counted no more where it was counted."""
    for symptom, place, node in spread.watchers(ctx, name, scope, by):
        key = ids.key(symptom.name, place)
        wide = ctx.state.symptoms.get(key)
        if wide is not None and node in wide.members and not spread.shows(ctx, name, node, symptom, place):
            spread.recovers(ctx, symptom, wide, node)
            yield from recount(ctx, key, symptom, wide)


def forget_node(ctx: Context, node: str, why: str) -> Iterator[SymptomState]:
    """A node is gone for good: its symptoms end, and it counts in no spread, not as one that recovered either."""
    for key, state in [each for each in ctx.state.symptoms.items() if node_of(each[1].scope) == node]:
        if state.active:
            yield from _end(ctx, state, why, proven=True)
        else:
            forget(ctx, key)
    for key in spread.forget_node(ctx, node):
        wide = ctx.state.symptoms[key]
        symptom = ctx.compiled.symptoms.get(wide.name)
        if symptom is not None:
            yield from recount(ctx, key, symptom, wide)


def new_places(ctx: Context) -> Iterator[SymptomState]:
    """Other places, or other spreads, are in force: each node counts where it belongs now, and nowhere else."""
    for state in list(ctx.state.symptoms.values()):
        around = spread.counting(ctx, state) if state.active else ()
        for symptom, place, node in around:
            wide = ctx.state.symptoms.get(ids.key(symptom.name, place))
            if wide is None or node not in wide.members:
                yield from count_in(ctx, symptom, place, node, state)
    for key, aside in ctx.state.set_aside.items():
        for symptom, place, node in spread.watchers(ctx, *ids.split(key), aside.jobs):
            wide_key = ids.key(symptom.name, place)
            if wide_key not in ctx.state.symptoms:
                made = SymptomState(name=symptom.name, scope=place, since=aside.at)
                ctx.state.symptoms[wide_key] = made
            if node not in ctx.state.symptoms[wide_key].members:
                spread.joins(ctx, symptom, ctx.state.symptoms[wide_key], node, aside.at)
    remembered.forget_moved(ctx)
    for key, wide in [each for each in ctx.state.symptoms.items() if each[1].members]:
        spec = ctx.compiled.symptoms[wide.name]
        for node in list(wide.members):
            if not spread.shows(ctx, spec.of, node, spec, wide.scope):
                del wide.members[node]
                ctx.index.recount(wide)
        if not wide.active and spread.reached(ctx, spec, wide):
            spread.date(ctx, spec, wide)
            yield from start(ctx, key, wide)
        yield from recount(ctx, key, spec, wide)


def more_nodes(ctx: Context) -> Iterator[SymptomState]:
    """A node was heard for the first time: the cell is larger, and what was a large share of it may be few."""
    for wide in list(ctx.index.active.get(CELL, {}).values()):
        symptom = ctx.compiled.symptoms.get(wide.name)
        if wide.members and symptom is not None:
            yield from recount(ctx, ids.key(wide.name, wide.scope), symptom, wide)


def recount(ctx: Context, key: str, symptom: Symptom, wide: SymptomState) -> Iterator[SymptomState]:
    """Ends a spread that is over; forgets one that nobody shows."""
    if wide.active and spread.over(ctx, symptom, wide):
        count = len(wide.members)
        why = (
            f"only {counted(count, 'node')} still {'shows' if count == 1 else 'show'} it"
            if count
            else "no node shows it any more"
        )
        yield from end(ctx, wide, why, keep=True)
        wide.cause_at, wide.at_once, wide.crept, wide.bursts = 0.0, False, False, []
    if wide.members:
        arm(ctx, key, symptom, wide)
    else:
        forget(ctx, key)


def tick(ctx: Context, key: str) -> list[SymptomState]:
    """A symptom's timer fired: begins one that lasted long enough or whose fact is missing, ends one past its time."""
    state = ctx.state.symptoms.get(key)
    if state is None:
        return []
    symptom = ctx.compiled.symptoms.get(state.name)
    if symptom is None:
        return list(end(ctx, state, "its definition was removed", proven=False)) if state.active else []
    if symptom.detect == "spread":
        changed = list(recount(ctx, key, symptom, state))
        if not changed and asking.is_unjudged(ctx, symptom, state):
            return [asking.judged_now(state)]
        return changed
    if state.active:
        if ctx.now >= _expires(symptom, state):
            return list(end(ctx, state, "nothing renewed it within its time to live", proven=False))
    elif (symptom.detect in LASTING and state.on and ctx.now - state.since >= symptom.for_s) or (
        symptom.detect == "absence" and ctx.now - state.last >= symptom.for_s
    ):
        changed = list(start(ctx, key, state))
        arm(ctx, key, symptom, state)
        return changed
    elif symptom.detect not in (*LASTING, "absence") and ctx.now >= _expires(symptom, state):
        forget(ctx, key)
        return []
    arm(ctx, key, symptom, state)
    return []


def _expires(symptom: Symptom, state: SymptomState) -> float:
    """When a symptom, active or not, ends unless a fact renews it."""
    if not state.active or symptom.detect == "flapping":
        return state.arrived + (symptom.within_s or symptom.ttl_s)
    return apart.newest(state) + symptom.ttl_s


def arm(ctx: Context, key: str, symptom: Symptom, state: SymptomState) -> None:
    """Sets the timer of a symptom. One that is due earlier already is left: when it fires, it sets the next."""
    if key not in ctx.state.symptoms:
        return
    name = f"symptom:{key}"
    if symptom.detect == "spread":  # it lives as long as what it counts
        due = spread.due(ctx, symptom, state)
        if asking.is_unjudged(ctx, symptom, state):
            due = min(due, ctx.now + asking.JUDGED_AGAIN_S)
    elif not state.active and symptom.detect in LASTING:
        due = state.since + symptom.for_s
    elif not state.active and symptom.detect == "absence":
        due = state.last + symptom.for_s
    else:
        due = _expires(symptom, state)
    if due == math.inf:
        return
    due = max(due, ctx.now + 0.001)
    present = ctx.state.timers.get(name)
    if present is None or present > due or present <= ctx.now:
        ctx.set_timer(name, due)


def forget(ctx: Context, key: str) -> None:
    """Forgets a symptom that is not active, and its timer."""
    known = ctx.state.symptoms.pop(key, None)
    if known is not None:
        ctx.index.remove_part(known.scope)
    ctx.cancel_timer(f"symptom:{key}")
