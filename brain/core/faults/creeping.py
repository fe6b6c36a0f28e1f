"""A place whose nodes fall ill one after the other, too slowly for the limits of a shared cause, while its like are well. Pure.

A leaf switch that loses a port every twelve minutes never has four within a quarter of an hour, and one that takes its ports
down in turn, for a minute each, never has two (passing.py); one node after the other would be drained for it. But of 512 nodes
that share nothing the third that falls ill within hours is hardly under the same switch as the first two. Fisher's exact test
says how hardly: of the nodes of the place, and of those elsewhere, how many fell ill within hours?
It is asked only of what a place of that kind does to its nodes, and its p counts for every place of the kind. Decision 85.

Of the two nodes of a chassis both must show it: one of them may have made it up, so it is only what accuses a chassis (heat, too
little power, silence), in a cell large enough that chance hardly ever chooses two that are neighbours. Decision 93.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from agent.contract.counted import counted, span
from brain.core import ids
from brain.core.context import Context
from brain.core.faults import passing
from brain.core.faults.fisher import p_at_least
from brain.core.pack.shared import NAMES, scope_zh
from brain.core.pack.spans import span_text
from brain.core.pack.spec import Symptom, Text
from brain.core.pack.topology import CELL, component_of, type_of
from brain.core.state import SymptomState

WITHIN_S = passing.KEPT_S  # the nodes began to show it within this time
APART_S = 120.0  # with at least this pause between two of them; what comes faster reaches the limits by number in a moment
ALPHA = 0.01  # how likely one false suspicion may be, over all places of the kind
ASKS = 0.1  # and with which one a person is asked before one more node is disturbed
_SHOWN = 6  # nodes that are named
MAX_ILL = 200  # so many in the cell are judged in other ways
TWINS = 2  # the nodes of the smallest chassis
FEWEST = 3  # one of the nodes may have made it up
_KINDS = (
    "chassis",
    "leaf",
    "rack",
    "power",
    "cooling",
)  # places that do such things to their nodes: by what, passing.py says
_ASKED = ("chassis", "leaf", "rack")  # of which a remedy asks, whatever its fault was told by


@dataclass(frozen=True, slots=True, kw_only=True)
class Creep:
    """How the nodes of one place fell ill, beside the others."""

    ill: int
    of: int
    others: int
    of_others: int
    # since the first of them, s
    for_s: float
    # by chance, in any of the places of the kind
    p: float


def suspected(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """Whether so many nodes of the place show it that it is the suspect, though they fell ill one by one."""
    found = seen(ctx, symptom, wide)
    return found is not None and found.p <= ALPHA


def tell(ctx: Context, symptom: Symptom, wide: SymptomState) -> None:
    """Notes why the place is suspected."""
    found = seen(ctx, symptom, wide)
    if found is None:
        return
    text = (
        f"{found.ill} of {counted(found.of, 'node')} of {wide.scope} fell ill within {span(found.for_s)}, one after the other, "
        f"and {found.others} of {found.of_others} others (Fisher's exact test, over all such places: p = {found.p:.1g})"
    )
    ctx.note("place.suspected", text, scope=wide.scope, data={"symptom": symptom.of})


def because(ctx: Context, symptom: Symptom, wide: SymptomState) -> Text | None:
    """Why the place is the suspect, in place of what is said of many nodes at once, as a clause."""
    found = seen(ctx, symptom, wide)
    if found is None:
        return None
    kind, within = type_of(wide.scope), span_text(found.for_s)
    return Text(
        en=f"{found.ill} of {counted(found.of, 'node')} of one {NAMES.get(kind, kind)} fell ill within {within.en}, one after "
        f"the other, and {found.others} of {found.of_others} others, so the cause is taken to be shared, not theirs",
        zh=f"{within.zh}内，{scope_zh(kind)}的 {found.of} 个节点中先后有 {found.ill} 个出现该故障，其他 {found.of_others} "
        f"个节点中有 {found.others} 个，因此认定原因是它们共有的，而不在各自",
    )


def seen(ctx: Context, symptom: Symptom, wide: SymptomState) -> Creep | None:
    """What there is to judge; None: nothing, or the number of nodes says more."""
    fewest = FEWEST
    counts = ctx.compiled.symptoms.get(symptom.of)
    if counts is not None and len(wide.members) == TWINS and _are_twins(ctx, counts, wide.scope):
        fewest = TWINS
    if (
        symptom.scope not in _KINDS
        or not wide.members
        or counts is None
        or not passing.can_cause(symptom.scope, counts)
    ):
        return None
    newest = max(wide.members.values())
    here = passing.lately(ctx, wide.name, wide.scope, newest - WITHIN_S) if fewest > TWINS else {}
    here |= {node: at for node, at in wide.members.items() if at > newest - WITHIN_S}
    if len(here) < fewest:
        return None
    if newest - min(here.values()) < APART_S * (len(here) - 1):
        return None
    everywhere = _ill_in_cell(ctx, symptom, newest - WITHIN_S)
    if len(everywhere) > MAX_ILL:
        return None
    known = len(ctx.state.nodes)
    of = max(ctx.compiled.topology.size(wide.scope, known), len(here))
    elsewhere = sum(node not in here for node in everywhere)
    of_others = known - of
    if of_others < of or elsewhere > of_others:
        return None  # the place has no like
    p = p_at_least(len(here), of, elsewhere, of_others) * _places(ctx, symptom.scope, of)
    return Creep(
        ill=len(here), of=of, others=elsewhere, of_others=of_others, for_s=newest - min(here.values()), p=p
    )


def of_one_place(ctx: Context, node: str, scope: str, treated: Sequence[str]) -> str:
    """Why a fault at a scope of a node may be that of a place around it, as a sentence; empty: it may not.

    `treated`: the other nodes with the same fault lately, all that needed a remedy for it. It takes less than for a suspicion: a
    person who is asked says in a minute whether it is the place.
    """
    topology, known = ctx.compiled.topology, len(ctx.state.nodes)
    for kind in _ASKED:
        parts = passing.PARTS[kind]
        if parts and type_of(scope) not in parts:
            continue
        for place in topology.all_at(node, component_of(scope), kind):
            here = [one for one in treated if place in topology.above(one)]
            of = topology.size(place, known)
            if len(here) + 1 < FEWEST or known - of < of:
                continue
            elsewhere = len(treated) - len(here)
            p = p_at_least(len(here) + 1, of, elsewhere, known - of) * _places(ctx, kind, of)
            if p <= ASKS:
                named = ", ".join(here[:_SHOWN])
                return f"{named} of the same {kind} ({place}) needed it, too, and of all others {elsewhere}: is it the {kind}?"
    return ""


def _places(ctx: Context, kind: str, of: int) -> int:
    """How many places like this one there are: of a kind of which a node may have two, as power feeds, as many as are known."""
    return max(math.ceil(len(ctx.state.nodes) / of), ctx.compiled.topology.number(kind))


def _are_twins(ctx: Context, counts: Symptom, place: str) -> bool:
    """Whether the place is a chassis of two nodes, and the fault one that accuses a chassis."""
    kind = "chassis"
    return (
        type_of(place) == kind
        and kind in counts.accuses
        and ctx.compiled.topology.size(place, len(ctx.state.nodes)) == TWINS
    )


def _ill_in_cell(ctx: Context, symptom: Symptom, since: float) -> list[str]:
    """The nodes that show it anywhere or did for a while, and began to since then; of very many the newest."""
    whole = next((one for one in ctx.compiled.spreads.get(symptom.of, ()) if one.scope == CELL), None)
    if whole is None:
        return []
    cell = ctx.state.symptoms.get(ids.key(whole.name, CELL))
    members = cell.members if cell is not None else {}
    if len(members) <= MAX_ILL:
        ill = [node for node, at in members.items() if at > since]
        return [*dict.fromkeys((*ill, *passing.lately(ctx, whole.name, CELL, since)))]
    newest = takewhile(lambda node: members[node] > since, reversed(members))
    return [node for node, _ in zip(newest, range(MAX_ILL + 1), strict=False)]
