"""`gpuward return`: an operator says that a node is healthy. That ends what nobody else would ever end, and no more.

A part was replaced while the node was off: no agent will say that the old one is well. So the word ends the node's symptoms.
But a cut link is reported once, when it is cut: if the word ended that, nobody would hear of it again. So the node looks
again first (`agent.look`), and what it reports then stands.
"""

from brain.core import ids
from brain.core.context import Context
from brain.core.faults import lemons, spread, symptoms
from brain.core.pack import vocabulary
from brain.core.people import do
from brain.core.state import Incident, IncidentState, SymptomState

_OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)


def healthy(ctx: Context, node: str, who: str, since: float) -> list[Incident]:
    """Ends the node's symptoms of which nothing has been reported `since` then; infinity: all that are not known to last.

    Returns the incidents of the node that have nothing left that could end, and waited for a person.
    """
    says = f"{do(who, 'says')} that the node is healthy"
    lemons.forget_node(ctx, node)
    ended = [one for one in ctx.index.active.get(node, {}).values() if not _lasts(ctx, node, one, since)]
    keys = [ids.key(one.name, one.scope) for one in ended]
    for symptom in ended:
        ctx.changed.extend(symptoms.end(ctx, symptom, says))
    if not ctx.index.active.get(node):
        spread.is_healthy(ctx, node)
    stay = [
        ids.key(one.name, one.scope) for one in ctx.index.active.get(node, {}).values() if one not in ended
    ]
    if stay:
        ctx.note("node.not_healthy", f"{node} still reports {', '.join(stay)}", scope=f"node/{node}")
    done = []
    for incident in ctx.index.open_at.get(node, {}).values():
        left = [key for key in incident.symptoms if key in ctx.state.symptoms and key not in keys]
        if not left and incident.state is not IncidentState.HEALING:
            incident.vouched_by, incident.unproven = who, False
            if not incident.matching_rules and incident.state not in (*_OVER, IncidentState.RECOVERED):
                done.append(incident)
    return done


def _lasts(ctx: Context, node: str, symptom: SymptomState, since: float) -> bool:
    """Whether the fault is known to be there still: it was reported since, or the node is not heard."""
    if symptom.arrived >= since:
        return True
    spec, known = ctx.compiled.symptoms.get(symptom.name), ctx.state.nodes.get(node)
    silent = known is not None and not known.alive
    return silent and spec is not None and any(one.kind == vocabulary.NODE_UNREACHABLE for one in spec.on)
