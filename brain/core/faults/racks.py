"""A rack whose nodes need one remedy far more often than the others, though no two at once: heat, dust, bad power. Pure.

What is counted are the nodes, each once, that needed a remedy for one cause within 28 days (`State.bouts`, lemons.py). Nodes of
the rack that fell ill within half a day count once together: what befalls a rack at once is judged elsewhere, and remedies that
wait for each other come one after the other. The p of Fisher's exact test counts for all racks, causes and ill nodes that are
asked about. Decision 66.
"""

from collections import Counter
from itertools import pairwise

from agent.contract.components import NODE
from agent.contract.counted import span
from agent.contract.messages import Event, Severity, clip
from brain.core.context import Context
from brain.core.faults import lemons, symptoms
from brain.core.faults.fisher import p_at_least
from brain.core.pack.vocabulary import FLEET_RACK
from brain.core.state import SymptomState

AT_LEAST = 4  # nodes of the rack that fell ill, apart from each other; one of them may have made it up
TIMES = 5.0  # and so many times the share of the others
ALPHA = 0.01  # how likely one false suspicion may be, over all questions of one moment


def remedied(ctx: Context, node: str, cause: str) -> list[SymptomState]:
    """A remedy for this cause begins to disturb the node. Returns the symptom of its rack, where that is the suspect."""
    topology, since = ctx.compiled.topology, ctx.now - lemons.WITHIN_S
    rack = topology.at(node, NODE, "rack")
    if not rack:
        return []
    ill = {
        one: max(bout.at for bout in bouts if bout.cause == cause)
        for one, bouts in ctx.state.bouts.items()
        if any(bout.cause == cause and bout.at > since for bout in bouts)
    }
    here = sorted(at for one, at in ill.items() if topology.at(one, NODE, "rack") == rack)
    apart = bool(here) + sum(after - before > lemons.APART_S for before, after in pairwise(here))
    racks = Counter(topology.at(one, NODE, "rack") for one in ctx.state.nodes)
    of, others = racks[rack], len(ctx.state.nodes) - racks[rack]
    elsewhere = len(ill) - len(here)
    if apart < AT_LEAST or not others or apart * others < TIMES * elsewhere * of:
        return []
    causes = {bout.cause for bouts in ctx.state.bouts.values() for bout in bouts if bout.at > since}
    p = p_at_least(apart, of, elsewhere, others)
    asked = len(racks) * len(causes) * len(ill)  # it is asked anew with each node that fell ill
    if p * asked > ALPHA:
        return []
    text = (
        f"{apart} of {of} nodes of {rack} needed a remedy for {cause} within {span(ctx.now - here[0])}, on different days, and "
        f"{elsewhere} of {others} others did in 28 days (Fisher's exact test: p = {p:.1g}, {asked} questions asked)"
    )
    ctx.note("rack.suspected", text, scope=rack)
    event = Event(
        id=ctx.cause, node=node, kind=FLEET_RACK, component=NODE, severity=Severity.ERROR, at="", age_s=0.0, boot="", count=1,
        data={"cause": cause, "nodes": apart, "of": of, "others": elsewhere, "of_others": others, "p": p}, evidence=clip(text),
    )  # fmt: skip
    return symptoms.feed(ctx, event)
