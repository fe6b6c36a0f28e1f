"""Lemon nodes: one that needs a remedy on one day after the other, whatever each was for, while its peers do not. Pure.

Each remedy that disturbs a whole node to heal it, and that no person asked for, is kept for 28 days (`State.bouts`); what
follows within half a day of one belongs to it. A node with five of them or more is a lemon if so many are hardly chance at the
rate of the other nodes: the tail of Poisson's distribution, times the number of nodes, is at most ALPHA. Decision 66.
"""

from collections import Counter
from math import exp

from agent.contract.components import NODE
from agent.contract.counted import counted, span
from agent.contract.messages import Event, Severity, clip
from brain.core.context import Context
from brain.core.faults import symptoms
from brain.core.pack.vocabulary import NODE_LEMON
from brain.core.state import Bout, State, SymptomState

WITHIN_S = 28 * 86400.0  # how long a remedy counts
APART_S = 43200.0  # what a node needs within so long of its last bout belongs to that one
AT_LEAST = 5  # bouts of a lemon
ALPHA = 0.01  # how likely one false lemon may be, over all nodes of one moment
# Bouts of one other node that count for the rate of all, so that no lemon hides another in a small cell (law 15).
MOST_OF_ONE = 2
MAX_BOUTS = 12  # that are remembered of one node


def remedied(ctx: Context, node: str, cause: str) -> list[SymptomState]:
    """A remedy for this cause begins to disturb the node. Returns the symptom of a lemon, where it is one."""
    here = [one for one in ctx.state.bouts.get(node, ()) if one.at > ctx.now - WITHIN_S]
    if here and ctx.now - here[-1].at <= APART_S:
        return []
    here = ctx.state.bouts[node] = [*here, Bout(at=ctx.now, cause=cause)][-MAX_BOUTS:]
    if len(here) < AT_LEAST or chance(ctx.state, node) * max(1, len(ctx.state.nodes)) > ALPHA:
        return []
    causes = Counter(one.cause for one in here)
    named = ", ".join(f"{count} × {name}" if count > 1 else name for name, count in causes.items())
    ill = sum(
        any(one.at > ctx.now - WITHIN_S for one in bouts)
        for other, bouts in ctx.state.bouts.items()
        if other != node
    )
    of = max(0, len(ctx.state.nodes) - 1)
    text = (
        f"{node} needed {counted(len(here), 'remedy', 'remedies')} on as many days within {span(ctx.now - here[0].at)} "
        f"({named}); {ill} of {counted(of, 'other node')} needed any in 28 days"
    )
    ctx.note("node.lemon", text, scope=f"node/{node}")
    event = Event(
        id=ctx.cause, node=node, kind=NODE_LEMON, component=NODE, severity=Severity.ERROR, at="", age_s=0.0, boot="",
        count=1, data={"remedies": len(here), "causes": clip(named), "others_ill": ill, "others": of}, evidence=clip(text),
    )  # fmt: skip
    return symptoms.feed(ctx, event)


def chance(state: State, node: str) -> float:
    """How likely so many bouts of this node are at the rate of the others: 0 to 1."""
    since = state.now - WITHIN_S
    counts = {name: sum(one.at > since for one in bouts) for name, bouts in state.bouts.items()}
    mine = counts.pop(node, 0)
    # One more than there were: a cell in which nothing else has happened is no proof that nothing does.
    rate = (1 + sum(min(count, MOST_OF_ONE) for count in counts.values())) / max(1, len(state.nodes))
    less, term = 0.0, exp(-rate)
    for count in range(mine):
        less += term
        term *= rate / (count + 1)
    return max(0.0, 1.0 - less)


def forget_node(ctx: Context, node: str) -> None:
    """A person has looked after the node, or it is gone for good: what was before says nothing of it any more."""
    ctx.state.bouts.pop(node, None)
