"""The way of detection `unlike`: a node that differs from the nodes that are otherwise like it.

    driver_unlike:
      detect: unlike
      on: [{kind: node.inventory}]
      alike: [product, gpu_models]     # nodes with equal values here are compared
      compare: driver                  # in this
      at_least: 5                      # so many of them must have one value,
      share: 0.8                       # and so large a share; then it is the usual one
      for_s: 86400                     # an upgrade goes through a fleet node by node

What nodes said is kept as one text a node (State.likes); the counts over it are derived (Index.likes). A node that says
nothing new costs nothing; only when another value becomes the usual one are all of its likes judged again.
"""

import json
from collections.abc import Iterator

from agent.contract.messages import Event
from brain.core import symptoms
from brain.core.spec import Symptom
from brain.core.state import Evidence, SymptomState
from brain.core.turn import Turn
from brain.core.usual import Likes


def feed(turn: Turn, event: Event) -> list[SymptomState]:
    """Takes what a node says of itself into every symptom that compares it."""
    compared = turn.book.unlikes.get(event.kind)
    if compared is None:
        return []
    fields = sorted({name for symptom in compared for name in (*symptom.alike, symptom.compare)})
    text = json.dumps({name: str(event.data[name]) for name in fields if name in event.data})
    known = turn.index.likes
    for symptom in compared:
        if symptom.name not in known:
            known[symptom.name] = Likes(symptom, turn.state)
    key = f"{event.kind} {event.node}"
    before = turn.state.likes.get(key)
    turn.state.likes[key] = text
    changed: list[SymptomState] = []
    for symptom in compared:
        changed += _moved(turn, symptom, known[symptom.name], event, before, text)
    return changed


def _moved(
    turn: Turn, symptom: Symptom, likes: Likes, event: Event, before: str | None, text: str
) -> Iterator[SymptomState]:
    groups = {
        place[0]: likes.usual(place[0]) for one in (before, text) if one and (place := likes.place(one))
    }
    if before != text:
        if before is not None:
            likes.add(before, -1)
        likes.add(text, 1)
    turned = [group for group, usual in groups.items() if likes.usual(group) != usual]
    prefix = f"{event.kind} "
    nodes = {event.node: text}
    if turned:
        nodes |= {
            key.removeprefix(prefix): said
            for key, said in turn.state.likes.items()
            if key.startswith(prefix) and (place := likes.place(said)) is not None and place[0] in turned
        }
    for node, said in nodes.items():
        yield from _judge(turn, symptom, likes, event, node, said)


def _judge(
    turn: Turn, symptom: Symptom, likes: Likes, event: Event, node: str, said: str
) -> Iterator[SymptomState]:
    place = likes.place(said)
    usual = likes.usual(place[0]) if place is not None else ""
    scope = f"node/{node}"
    key = symptoms.key_of(symptom.name, scope)
    state = turn.state.symptoms.get(key)
    if place is None or not usual or place[1] == usual:
        if state is not None and state.active:
            yield from symptoms.end(turn, state, f"its {symptom.compare} is the usual one, or there is none")
        elif state is not None:
            symptoms.forget(turn, key)
        return
    if state is None:
        state = turn.state.symptoms[key] = SymptomState(
            name=symptom.name, scope=scope, since=turn.now, last=turn.now, on=True
        )
    state.heard = turn.now
    state.carried |= {f"{symptom.compare}_here": place[1], f"{symptom.compare}_usual": usual}
    text = likes.text(place)
    state.evidence[:] = [
        Evidence(id=event.id, at=turn.now, node=node, kind=event.kind, component="node", text=text)
    ]
    if not state.active and turn.now - state.since >= symptom.for_s:
        yield from symptoms.start(turn, key, state)
    symptoms.arm(turn, key, symptom, state)
