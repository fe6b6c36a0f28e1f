"""`detect: unlike`: a node that differs from its peers, the nodes that are otherwise like it.

    driver_unlike:
      detect: unlike
      on: [{kind: node.inventory}]
      alike: [product, gpu_models]     # nodes with equal values in these fields are peers
      compare: driver                  # the field that is compared among peers
      at_least: 5                      # a value is the baseline if at least so many peers have it
      share: 0.8                       # and at least this share of them
      for_s: 86400                     # so long may a node differ: an upgrade takes the nodes one by one

`State.peers` keeps what each node last reported; the counts are derived from it (brain/core/baseline.py). An event
that repeats the old values is cheap. Only when the baseline of a group changes are all its nodes judged again.
"""

import json
from collections.abc import Iterator

from agent.contract.messages import Event
from brain.core import ids
from brain.core.baseline import Baseline
from brain.core.context import Context
from brain.core.faults import releases, rolled_out, suspects, symptoms
from brain.core.pack.spec import Symptom
from brain.core.state import Evidence, SymptomState


def feed(ctx: Context, event: Event) -> list[SymptomState]:
    """Compares what a node reports of itself with its peers. Returns the symptoms that began or ended."""
    compared = ctx.compiled.unlikes.get(event.kind)
    if compared is None:
        return []
    fields = sorted({name for symptom in compared for name in (*symptom.alike, symptom.compare)})
    values = json.dumps({name: str(event.data[name]) for name in fields if name in event.data})
    baselines = ctx.index.baselines
    for symptom in compared:  # built from the peers as they were before this event
        if symptom.name not in baselines:
            baselines[symptom.name] = Baseline(symptom, ctx.state)
    key = f"{event.kind} {event.node}"
    before = ctx.state.peers.get(key)
    ctx.state.peers[key] = values
    changed: list[SymptomState] = []
    for symptom in compared:
        changed += _compare(ctx, symptom, baselines[symptom.name], event, before, values)
    if event.kind == releases.KIND:
        rolled_out_too = releases.moved(ctx, event.node, before, values)
        changed += rolled_out.seen(ctx) if rolled_out_too else ()
        changed += suspects.left(ctx) if before != values else ()
    return changed


def _compare(
    ctx: Context, symptom: Symptom, baseline: Baseline, event: Event, before: str | None, values: str
) -> Iterator[SymptomState]:
    """Moves the node from its old values to the new ones and judges every node whose verdict may have changed."""
    groups = {
        place[0]: baseline.value(place[0])
        for reported in (before, values)
        if reported and (place := baseline.locate(reported))
    }
    if before != values:
        if before is not None:
            baseline.count(before, -1)
        baseline.count(values, 1)
    shifted = [group for group, value in groups.items() if baseline.value(group) != value]
    prefix = f"{event.kind} "
    nodes = {event.node: values}
    if shifted:
        nodes |= {
            key.removeprefix(prefix): reported
            for key, reported in ctx.state.peers.items()
            if key.startswith(prefix)
            and (place := baseline.locate(reported)) is not None
            and place[0] in shifted
        }
    for node, reported in nodes.items():
        yield from _judge(ctx, symptom, baseline, event, node, reported)


def _judge(
    ctx: Context, symptom: Symptom, baseline: Baseline, event: Event, node: str, values: str
) -> Iterator[SymptomState]:
    """Begins, continues or ends the symptom of one node."""
    place = baseline.locate(values)
    expected = baseline.value(place[0]) if place is not None else ""
    scope = f"node/{node}"
    key = ids.key(symptom.name, scope)
    state = ctx.state.symptoms.get(key)
    if place is None or not expected or place[1] == expected:
        if state is not None and state.active:
            yield from symptoms.end(ctx, state, f"its {symptom.compare} is the usual one, or there is none")
        elif state is not None:
            symptoms.forget(ctx, key)
        return
    if state is None:
        state = ctx.state.symptoms[key] = SymptomState(
            name=symptom.name, scope=scope, since=ctx.now, last=ctx.now, on=True
        )
    state.arrived = ctx.now
    carried = {f"{symptom.compare}_here": place[1], f"{symptom.compare}_usual": expected}
    renewed = state.active and carried != {name: state.carried.get(name) for name in carried}
    state.carried |= carried
    text = baseline.difference(*place)
    state.evidence[:] = [
        Evidence(id=event.id, at=ctx.now, node=node, kind=event.kind, component="node", text=text)
    ]
    if not state.active and ctx.now - state.since >= symptom.for_s:
        yield from symptoms.start(ctx, key, state)
    elif renewed:
        yield state
    symptoms.arm(ctx, key, symptom, state)
