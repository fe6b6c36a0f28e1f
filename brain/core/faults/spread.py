"""How many nodes make a cause shared: what counts is how many show a symptom now, and how it grows (law 6). Pure.

A node counts as long as it shows the symptom, or a run of ours has set it aside and is not over. Nodes that recovered
count for the growth: a fault that goes from node to node is one cause, though few show it at any moment. In the cell a
node that a remedy healed counts as long as its facts would have lasted: remedies must not hide how many had the fault.
"""

import math
from collections.abc import Callable, Mapping

from agent.contract.components import NODE
from brain.core import ids
from brain.core.context import Context
from brain.core.pack.spec import Symptom
from brain.core.pack.topology import CELL, component_of, node_of
from brain.core.state import SetAside, SymptomState

SMALL_SITE_NODES = 3  # fewer nodes with one symptom share no cause, however small the site
GROWS_S = 300.0  # a spread that few nodes show is not over while the newest of them began so lately


def watchers(ctx: Context, name: str, scope: str) -> list[tuple[Symptom, str, str]]:
    """The `spread` symptoms that count the nodes with this symptom: (spread, its place, the node)."""
    node = node_of(scope)
    places = [
        (symptom, ctx.compiled.topology.at(node, component_of(scope), symptom.scope), node)
        for symptom in (ctx.compiled.spreads.get(name, ()) if node else ())
    ]
    return [each for each in places if each[1]]


def shows(ctx: Context, name: str, node: str, symptom: Symptom, scope: str) -> bool:
    """Whether the node shows it at any of its components within the wider scope, or a run has set it aside there."""
    here = [other.scope for other in ctx.index.active.get(node, {}).values() if other.name == name]
    for key in ctx.state.set_aside:
        other, place = ids.split(key)
        if other == name and node_of(place) == node:
            here.append(place)
    return any(ctx.compiled.topology.at(node, component_of(place), symptom.scope) == scope for place in here)


def _needed(ctx: Context, symptom: Symptom, scope: str) -> float:
    """How many nodes make the symptom spread, whenever it began on them. Of a small site, a few are many (law 6)."""
    size = ctx.compiled.topology.size(scope, len(ctx.state.nodes))
    few = (
        min(symptom.at_least, max(SMALL_SITE_NODES, ctx.compiled.settings.shared_small_share * size))
        if symptom.enough
        else symptom.at_least
    )
    return max(few, symptom.share * size)


def _least(ctx: Context, symptom: Symptom, scope: str) -> float:
    """The smallest number of nodes with which the symptom may have become spread."""
    needed = _needed(ctx, symptom, scope)
    return min(needed, symptom.enough) if symptom.enough else needed


def reached(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """So many nodes show it now; or so many began within `within_s`, and at least half as many show it still."""
    count = len(wide.members)
    if (not symptom.within_s or symptom.enough) and _with_treated(ctx, wide) >= _needed(
        ctx, symptom, wide.scope
    ):
        return True
    least = _least(ctx, symptom, wide.scope)
    if not symptom.within_s or count < least / 2:
        return False
    begun = _begun(ctx, wide)
    since = max(begun, default=0.0) - symptom.within_s
    return sum(1 for at in begun if at >= since) >= least


def over(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """No node shows it; or fewer than half of those that it takes, and it does not grow any more."""
    return not wide.members or (_few(ctx, symptom, wide) and ctx.now >= _grows_until(ctx, symptom, wide))


def due(ctx: Context, symptom: Symptom, wide: SymptomState) -> float:
    """When a spread may end without news of a node; infinity: never."""
    return _grows_until(ctx, symptom, wide) if wide.active and _few(ctx, symptom, wide) else math.inf


def recovers(ctx: Context, symptom: Symptom, wide: SymptomState, node: str) -> None:
    """Counts a node out; remembers for `within_s` when it began there."""
    key = ids.key(wide.name, wide.scope)
    began = wide.members.pop(node)
    if ctx.now < began + symptom.within_s:
        ctx.state.recovered.setdefault(key, {})[node] = began
        _arm(ctx, key, began + symptom.within_s)


def was_treated(ctx: Context, key: str, aside: SetAside) -> None:
    """The run that had set a symptom aside is over: in the cell its node counts as long as the facts would have lasted."""
    state = ctx.state.symptoms.get(key)
    if state is not None and state.active:
        return  # it came back, and counts as it is
    for symptom, place, _ in watchers(ctx, *ids.split(key)):
        if place == CELL and ctx.now < aside.until:
            wide = ids.key(symptom.name, place)
            ctx.state.treated.setdefault(wide, {})[key] = aside
            _arm(ctx, wide, aside.until)


def is_over(ctx: Context, key: str, at: float) -> None:
    """A fact, from then, says that a symptom is over: if that is newer than the remedy, the remedy hides nothing."""
    if (aside := ctx.state.set_aside.get(key)) is not None and aside.at <= at < math.inf:
        aside.until = ctx.now
    _forget_treated(ctx, lambda treated, aside: treated == key and aside.at <= at)


def is_healthy(ctx: Context, node: str) -> None:
    """An operator says that the node is well."""
    for key, aside in ctx.state.set_aside.items():
        if node_of(ids.split(key)[1]) == node:
            aside.until = ctx.now
    _forget_treated(ctx, lambda treated, _: node_of(ids.split(treated)[1]) == node)


def forget_node(ctx: Context, node: str) -> list[str]:
    """A node is gone for good: it counts nowhere, and what it showed counts for no growth. The spreads that counted it."""
    for key in [key for key in ctx.state.set_aside if node_of(ids.split(key)[1]) == node]:
        del ctx.state.set_aside[key]
    _forget_treated(ctx, lambda treated, _: node_of(ids.split(treated)[1]) == node)
    for key, begun in list(ctx.state.recovered.items()):
        if begun.pop(node, None) is not None and not begun:
            del ctx.state.recovered[key]
    counted = [key for key, wide in ctx.state.symptoms.items() if node in wide.members]
    for key in counted:
        del ctx.state.symptoms[key].members[node]
    return counted


def redefined(ctx: Context, before: Mapping[str, Symptom]) -> None:
    """Other rules are in force: what was remembered for a spread of another symptom does not count for this one."""
    for remembered in (ctx.state.recovered, ctx.state.treated):
        for key in list(remembered):
            was, now = before.get(ids.name_of(key)), ctx.compiled.symptoms.get(ids.name_of(key))
            if was is None or now is None or was.of != now.of:
                del remembered[key]


def forget_moved(ctx: Context) -> None:
    """Other places are in force: a node that recovered does not count where it stood."""
    for key, begun in list(ctx.state.recovered.items()):
        name, place = ids.split(key)
        symptom = ctx.compiled.symptoms.get(name)
        for node in list(begun):
            now = ctx.compiled.topology.at(node, NODE, symptom.scope) if symptom is not None else ""
            if now and now != place:
                del begun[node]
        if not begun:
            del ctx.state.recovered[key]


def _forget_treated(ctx: Context, over: Callable[[str, SetAside], bool]) -> None:
    for wide, treated in list(ctx.state.treated.items()):
        for key in [key for key, aside in treated.items() if over(key, aside)]:
            del treated[key]
        if not treated:
            del ctx.state.treated[wide]


def joins(ctx: Context, wide: SymptomState, node: str, began: float) -> None:
    """Counts a node in. A spread does not grow with a node that was counted before: one that flaps keeps none alive."""
    before = ctx.state.recovered.get(ids.key(wide.name, wide.scope), {}).pop(node, began)
    wide.members[node] = wide.members.get(node, before if wide.active else began)


def forget_old(ctx: Context, key: str) -> None:
    """The timer of recovered nodes fired: forgets those that count no more."""
    symptom = ctx.compiled.symptoms.get(ids.name_of(key))
    within_s = symptom.within_s if symptom is not None else 0
    begun = ctx.state.recovered.pop(key, {})
    left = {node: began for node, began in begun.items() if ctx.now < began + within_s}
    if left:
        ctx.state.recovered[key] = left
        _arm(ctx, key, min(left.values()) + within_s)
    treated = ctx.state.treated.pop(key, {}) if symptom is not None else {}
    treated = {name: aside for name, aside in treated.items() if ctx.now < aside.until}
    if treated:
        ctx.state.treated[key] = treated
        _arm(ctx, key, min(aside.until for aside in treated.values()))


def _arm(ctx: Context, key: str, due: float) -> None:
    name = f"recovered:{key}"
    present = ctx.state.timers.get(name)
    if present is None or present > due or present <= ctx.now:
        ctx.set_timer(name, due)


def _with_treated(ctx: Context, wide: SymptomState) -> int:
    """How many nodes show it, or would without our remedies."""
    treated = ctx.state.treated.get(ids.key(wide.name, wide.scope), {})
    nodes = {node_of(ids.split(key)[1]) for key, aside in treated.items() if ctx.now < aside.until}
    return len(nodes | wide.members.keys())


def _few(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    return _with_treated(ctx, wide) < _least(ctx, symptom, wide.scope) / 2


def _begun(ctx: Context, wide: SymptomState) -> list[float]:
    return [*wide.members.values(), *ctx.state.recovered.get(ids.key(wide.name, wide.scope), {}).values()]


def _grows_until(ctx: Context, symptom: Symptom, wide: SymptomState) -> float:
    return max(_begun(ctx, wide)) + min(GROWS_S, symptom.within_s)
