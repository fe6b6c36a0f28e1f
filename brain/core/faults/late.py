"""Facts that arrive after what ended them: an end is remembered for a while, so that an older beginning opens nothing. Pure.

A node's second spool, another system or a source that reads slowly may tell that a fault began after it was told that it is
over. What counts is when a fact occurred, as if all had come in that order. The other way round needs no memory: an end that
is older than the newest fact of a symptom ends nothing (symptoms.py).
"""

from agent.contract.messages import Event
from brain.core import ids
from brain.core.context import Context
from brain.core.faults import apart
from brain.core.pack.spec import Symptom
from brain.core.pack.topology import node_of
from brain.core.state import State

KEPT_S = 3600.0  # so long after it arrived an end is remembered
SLACK_S = 2.0  # a fact may be on its way so long without that being in its age
MAX_OF_NODE = 64  # ends of one node that are remembered, the newest; of wider scopes together as many
MAX_NODES = 2000  # whose ends are remembered, those heard last: agents that all start anew tell 10,000 nodes well at once
# Which ends say nothing of what began before them: an agent that starts reads the kernel log of its boot only then.
AGENT_STARTED = "agent.started"
_OTHERWISE = ("flapping", "absence")  # ways of detection for which an event that clears is no end


def remember(ctx: Context, symptom: Symptom, scope: str, key: str, event: Event, at: float) -> None:
    """An event that clears arrived: the symptom (`key`), or one of its facts that are told apart, was over then (s since 1970).

    Most events of healthy nodes are such ends, so this costs each of them.
    """
    if symptom.detect in _OTHERWISE or event.kind == AGENT_STARTED:
        return
    over, node = ctx.state.over, node_of(scope)
    here = over.pop(node, None)
    if here is None:
        here = {}
        if len(over) >= MAX_NODES:
            del over[next(iter(over))]
    over[node] = here  # what was heard last stands last
    if symptom.apart and _ends_one(symptom, event):
        key = _key(symptom, scope, event)
    known = here.pop(key, None)
    here[key] = (at if known is None or known[0] < at else known[0], ctx.now)
    while len(here) > MAX_OF_NODE or _is_old(next(iter(here.values())), ctx.now):
        del here[next(iter(here))]


def was_over(ctx: Context, symptom: Symptom, scope: str, event: Event, at: float) -> float:
    """When what the event says had ended already, in seconds since 1970; 0: that is not known."""
    if event.age_s <= SLACK_S:  # nothing that has arrived is so much newer
        return 0.0
    here = ctx.state.over.get(node_of(scope))
    if not here:
        return 0.0
    keys = (ids.key(symptom.name, scope), _key(symptom, scope, event))
    ended = max(here[key][0] if key in here else 0.0 for key in keys)
    return ended if at < ended - SLACK_S else 0.0


def forget_old(state: State) -> None:
    """Forgets the ends that are too old to matter: those of the nodes that were heard longest ago stand first."""
    while state.over:
        node, here = next(iter(state.over.items()))
        if here and not _is_old(next(reversed(here.values())), state.now):
            return
        del state.over[node]


def _is_old(end: tuple[float, float], now: float) -> bool:
    return now >= end[1] + KEPT_S


def _ends_one(symptom: Symptom, event: Event) -> bool:
    """Whether it ends only the facts that are about the same."""
    return any(match.kind == event.kind for match in symptom.on)


def _key(symptom: Symptom, scope: str, event: Event) -> str:
    key = ids.key(symptom.name, scope)
    return f"{key}\n{apart.tag(symptom, event)}" if symptom.apart else key
