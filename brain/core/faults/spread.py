"""How many nodes make a cause shared: what counts is how many show a symptom now, and how it grows (law 6). Pure.

A node counts as long as it shows the symptom, or a run of ours has set it aside and is not over. Nodes that recovered
count for the growth: a fault that goes from node to node is one cause, though few show it at any moment. In the cell a
node that a remedy healed counts as long as its facts would have lasted: remedies must not hide how many had the fault.

A cable that has been bad for hours counts when its switch goes, but says nothing of how the switch is: with the nodes that
fell ill when the shared cause began (`cause_at`), the spread is over, unless the old faults alone are as many as it takes.
"""

import math
from collections.abc import Callable, Sequence
from itertools import islice, pairwise

from agent.contract.components import NODE
from brain.core import ids
from brain.core.context import Context
from brain.core.faults import at_once, creeping, passing, rollouts
from brain.core.pack.spec import Symptom
from brain.core.pack.topology import CELL, JOB, component_of, node_of
from brain.core.state import Burst, SetAside, SymptomState

SMALL_SITE_NODES = 3  # fewer nodes with one symptom share no cause, however small the site
MAX_ASKED = 10  # nodes whose facts may take the place of those of others
GROWS_S = 300.0  # a spread that few nodes show is not over while the newest of them began so lately


def watchers(ctx: Context, name: str, scope: str, jobs: Sequence[str] = ()) -> list[tuple[Symptom, str, str]]:
    """The `spread` symptoms that count the nodes with this symptom: (spread, its place, the node). `jobs`: whose logs told it."""
    node = node_of(scope)
    return [
        (symptom, place, node)
        for symptom in (ctx.compiled.spreads.get(name, ()) if node else ())
        for place in (
            jobs
            if symptom.scope == JOB
            else ctx.compiled.topology.all_at(node, component_of(scope), symptom.scope)
        )
    ]


def counting(ctx: Context, state: SymptomState) -> list[tuple[Symptom, str, str]]:
    """The same for an active symptom: none, where a roll-out explains why its node is silent."""
    if rollouts.stands_aside(ctx, state.name, state.scope):
        return []
    return watchers(ctx, state.name, state.scope, state.jobs)


def shows(ctx: Context, name: str, node: str, symptom: Symptom, scope: str) -> bool:
    """Whether the node shows it at any of its components within the wider scope, or a run has set it aside there."""
    here = [
        (other.scope, other.jobs) for other in ctx.index.active.get(node, {}).values() if other.name == name
    ]
    for key, aside in ctx.state.set_aside.items():
        other, place = ids.split(key)
        if other == name and node_of(place) == node:
            here.append((place, aside.jobs))
    if symptom.scope == JOB:
        return any(scope in jobs for _, jobs in here)
    all_at = ctx.compiled.topology.all_at
    return any(scope in all_at(node, component_of(place), symptom.scope) for place, _ in here)


def size_of(ctx: Context, wide: SymptomState) -> int:
    """How many nodes the place of a spread has; 0: nobody says, as of a job that only its logs name."""
    return wide.size or ctx.compiled.topology.size(wide.scope, len(ctx.state.nodes))


def needed(ctx: Context, symptom: Symptom, wide: SymptomState) -> float:
    """How many nodes make the symptom spread, whenever it began on them. Of a small site, a few are many (law 6)."""
    size = size_of(ctx, wide)
    few = max(SMALL_SITE_NODES, ctx.compiled.settings.shared_small_share * size)
    if few < symptom.at_least and _may_be_few(ctx, symptom, wide):
        return max(few, symptom.share * size)
    return max(symptom.at_least, symptom.share * size)


def _may_be_few(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """Whether the size of the place counts, and not the rule's own number."""
    return bool(symptom.enough) or (_of_the_whole(ctx, symptom) and not _in_one_place(ctx, symptom, wide))


def _of_the_whole(ctx: Context, symptom: Symptom) -> bool:
    """Whether it counts in the whole cell or a fabric what lasts until a fact ends it: there law 6 counts all who show it now,
    whenever it began, and a few are many of a small site. A rule's own window is for what only happens, such as a failover.
    """
    counted = ctx.compiled.symptoms.get(symptom.of)
    return symptom.scope in (CELL, "fabric") and counted is not None and bool(counted.clear)


def _in_one_place(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """Whether all nodes that show it are in one narrower place where a rule counts them too: a leaf switch says more."""
    all_at = ctx.compiled.topology.all_at
    return any(
        all(place in all_at(node, NODE, other.scope) for node in wide.members)
        for other in ctx.compiled.spreads.get(symptom.of, ())
        if other.scope != symptom.scope
        for place in all_at(next(iter(wide.members), ""), NODE, other.scope)
    )


def _least(ctx: Context, symptom: Symptom, wide: SymptomState) -> float:
    """The smallest number of nodes with which the symptom may have become spread."""
    count = needed(ctx, symptom, wide)
    if wide.at_once:
        return min(count, at_once.least(symptom))
    return min(count, symptom.enough) if symptom.enough else count


def takes(ctx: Context, symptom: Symptom, wide: SymptomState) -> int:
    """How many nodes must show it for the cause to be taken as shared, for people who ask."""
    return math.ceil(_least(ctx, symptom, wide))


def reached(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """So many nodes show it now; or so many began within `within_s`, and at least half as many of these show it still; or they
    fell ill at once; or one after the other, while the nodes of other places did not.
    """
    return (
        _is_large(ctx, symptom, wide)
        or at_once.began_together(ctx, symptom, wide)
        or creeping.suspected(ctx, symptom, wide)
    )


def _is_large(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """Whether it is shared by the number of nodes that show it, or that began to within `within_s`."""
    count = needed(ctx, symptom, wide)
    if _enough_show_it(ctx, symptom, wide, count):
        return True
    least = min(count, symptom.enough) if symptom.enough else count
    if not symptom.within_s or len(wide.members) < least / 2:
        return False
    begun = _begun(ctx, wide)
    if len(begun) < least:
        return False
    since = max(begun, default=0.0) - symptom.within_s
    still = sum(1 for at in wide.members.values() if at >= since)
    return still >= least / 2 and sum(1 for at in begun if at >= since) >= least


def counts(ctx: Context, symptom: Symptom, wide: SymptomState) -> tuple[str, ...]:
    """The nodes that count towards what it `takes`: all that show it, or those on which it began within `within_s`."""
    if not symptom.within_s or (not symptom.enough and _of_the_whole(ctx, symptom)):
        return tuple(wide.members)
    since = max(_begun(ctx, wide), default=0.0) - symptom.within_s
    return tuple(node for node, at in wide.members.items() if at >= since)


def date(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """Dates the shared cause of an active spread, once: back from the newest node, until nothing began for GROWS_S.

    As long as these are fewer than half of those that it takes, the nodes came one by one: then all are part of it. Returns
    whether it is dated now. From then on its evidence is that of its own nodes.
    """
    if wide.cause_at:
        return False
    large = _is_large(ctx, symptom, wide)
    wide.at_once = not large and at_once.began_together(ctx, symptom, wide)
    if not (wide.active or large or wide.at_once):
        wide.crept = True
        ctx.index.recount(wide)
        creeping.tell(ctx, symptom, wide)
    begun = sorted(_begun(ctx, wide), reverse=True)
    first, count = max(begun, default=0.0), 1
    for later, earlier in pairwise(begun):
        if later - earlier > GROWS_S:
            break
        first, count = earlier, count + 1
    if count < _least(ctx, symptom, wide) / 2:
        return False
    wide.cause_at = first
    if at_once.began_together(ctx, symptom, wide):
        wide.bursts = [Burst(since=first, until=begun[0], size=count)]
    ctx.index.recount(wide)
    _show(ctx, symptom, wide, lambda node: not stood_before(wide, node))
    return True


def grew_large(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """Whether what was shared only because few nodes fell ill at once is so now by their number."""
    if not wide.at_once or len(wide.members) < needed(ctx, symptom, wide):
        return False
    wide.at_once = False
    return True


def stood_before(wide: SymptomState, node: str) -> bool:
    """Whether the node showed it before the shared cause began."""
    return wide.members.get(node, math.inf) < wide.cause_at


def over(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """No node shows it that fell ill by the shared cause; or fewer than half of those that it takes, and it does not grow
    any more.
    """
    if not wide.members:
        return True
    if _enough_show_it(ctx, symptom, wide):
        return False
    if not any(at >= wide.cause_at for at in wide.members.values()):
        return True
    return _few(ctx, symptom, wide) and ctx.now >= _grows_until(ctx, symptom, wide)


def waning(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """Whether it is kept up only because it grew lately: too few show it to call anybody for it anew."""
    return wide.active and not _enough_show_it(ctx, symptom, wide) and _few(ctx, symptom, wide)


def due(ctx: Context, symptom: Symptom, wide: SymptomState) -> float:
    """When a spread ends without news of a node; infinity: never, as for one that enough nodes show, whenever it began there."""
    return _grows_until(ctx, symptom, wide) if waning(ctx, symptom, wide) else math.inf


def recovers(ctx: Context, symptom: Symptom, wide: SymptomState, node: str) -> None:
    """Counts a node out; remembers for a while when it began there."""
    key = ids.key(wide.name, wide.scope)
    began = wide.members.pop(node)
    wide.earlier.pop(node, None)
    ctx.index.recount(wide)
    passing.went(ctx, symptom, wide, node, began)
    _show(ctx, symptom, wide, lambda shown: shown != node)
    if ctx.now < (until := began + _remembered_s(symptom)):
        ctx.state.recovered.setdefault(key, {})[node] = began
        _arm(ctx, key, until)


def _show(ctx: Context, symptom: Symptom, wide: SymptomState, kept: Callable[[str], bool]) -> None:
    """Leaves out the facts of nodes that are no part of it; those of others that are take their place."""
    left = [fact for fact in wide.evidence if kept(fact.node)]
    room = len(wide.evidence) - len(left)
    if not room:
        return
    shown = [fact.node for fact in left]
    others = (node for node, at in wide.members.items() if at >= wide.cause_at and node not in shown)
    for node in islice(others, MAX_ASKED):
        here = ctx.index.active.get(node, {}).values()
        facts = [other.evidence[0] for other in here if other.name == symptom.of and other.evidence]
        left += facts[:1]
    wide.evidence = left[: len(wide.evidence)]


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
    # asked for each fact that clears something
    for wide in [one for one, treated in ctx.state.treated.items() if key in treated]:
        if ctx.state.treated[wide][key].at <= at:
            del ctx.state.treated[wide][key]
            if not ctx.state.treated[wide]:
                del ctx.state.treated[wide]


def is_healthy(ctx: Context, node: str) -> None:
    """An operator says that the node is well."""
    for key, aside in ctx.state.set_aside.items():
        if node_of(ids.split(key)[1]) == node:
            aside.until = ctx.now
    _forget_treated(ctx, node)


def forget_node(ctx: Context, node: str) -> list[str]:
    """A node is gone for good: it counts nowhere, and what it showed counts for no growth. The spreads that counted it."""
    for key in [key for key in ctx.state.set_aside if node_of(ids.split(key)[1]) == node]:
        del ctx.state.set_aside[key]
    _forget_treated(ctx, node)
    passing.forget_node(ctx, node)
    for key, begun in list(ctx.state.recovered.items()):
        if begun.pop(node, None) is not None and not begun:
            del ctx.state.recovered[key]
    counted = [key for key, wide in ctx.state.symptoms.items() if node in wide.members]
    for key in counted:
        del ctx.state.symptoms[key].members[node]
        ctx.state.symptoms[key].earlier.pop(node, None)
        ctx.index.recount(ctx.state.symptoms[key])
    return counted


def _forget_treated(ctx: Context, node: str) -> None:
    """What was treated on the node."""
    for wide, treated in list(ctx.state.treated.items()):
        for key in [key for key in treated if node_of(ids.split(key)[1]) == node]:
            del treated[key]
        if not treated:
            del ctx.state.treated[wide]


def joins(ctx: Context, symptom: Symptom, wide: SymptomState, node: str, began: float) -> None:
    """Counts a node in. A spread does not grow with a node that was counted before: one that flaps keeps none alive. What began
    at once does not grow with a node that fell ill by itself long after: in a large cell some node always is.
    """
    before, new = began, node not in wide.members
    if new:
        wide.earlier.pop(node, None)
    elif symptom.at_once_s and not wide.active and began > wide.members[node] + symptom.at_once_s:
        # Another part of it: with those of other nodes it may be a burst, whatever the first one has.
        wide.earlier.setdefault(node, wide.members.pop(node))
    if ctx.state.recovered:  # asked for each place of a node
        before = ctx.state.recovered.get(ids.key(wide.name, wide.scope), {}).pop(node, began)
    wide.members[node] = at = wide.members.get(node, before if wide.active else began)
    ctx.index.recount(wide)
    if wide.active and new:
        at_once.grows(ctx, symptom, wide, at, GROWS_S)


def forget_old(ctx: Context, key: str) -> None:
    """The timer of recovered nodes fired: forgets those that count no more."""
    passing.forget_old(ctx, key)
    symptom = ctx.compiled.symptoms.get(ids.name_of(key))
    kept_s = _remembered_s(symptom) if symptom is not None else 0.0
    begun = ctx.state.recovered.pop(key, {})
    left = {node: began for node, began in begun.items() if ctx.now < began + kept_s}
    if left:
        ctx.state.recovered[key] = left
        _arm(ctx, key, min(left.values()) + kept_s)
    treated = ctx.state.treated.pop(key, {}) if symptom is not None else {}
    treated = {name: aside for name, aside in treated.items() if ctx.now < aside.until}
    if treated:
        ctx.state.treated[key] = treated
        _arm(ctx, key, min(aside.until for aside in treated.values()))


def _remembered_s(symptom: Symptom) -> float:
    """For how long after it fell ill a node that recovered counts: a gentle remedy is faster than the last of a burst is told."""
    return max(symptom.within_s, GROWS_S if symptom.at_once_s else 0.0)


def _arm(ctx: Context, key: str, due: float) -> None:
    name = f"recovered:{key}"
    present = ctx.state.timers.get(name)
    if present is None or present > due or present <= ctx.now:
        ctx.set_timer(name, due)


def _enough_show_it(
    ctx: Context, symptom: Symptom, wide: SymptomState, takes_nodes: float | None = None
) -> bool:
    """Whether as many show it, or would without our remedies, as it takes (`needed`), whenever it began on them."""
    if symptom.within_s and not symptom.enough and not _of_the_whole(ctx, symptom):
        return False
    count = len(wide.members) + len(_treated(ctx, wide))
    return count >= (needed(ctx, symptom, wide) if takes_nodes is None else takes_nodes)


def _treated(ctx: Context, wide: SymptomState) -> dict[str, None]:
    """The nodes that would show it without our remedies."""
    if not ctx.state.treated:
        return {}
    treated = ctx.state.treated.get(ids.key(wide.name, wide.scope), {})
    nodes = [node_of(ids.split(key)[1]) for key, aside in treated.items() if ctx.now < aside.until]
    return dict.fromkeys(node for node in nodes if node not in wide.members)


def _few(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """Whether fewer than half of those that it takes show it by the shared cause, and of each burst fewer than half."""
    least, treated = _least(ctx, symptom, wide), len(_treated(ctx, wide))
    if wide.at_once and wide.bursts:
        return all(treated + at_once.still_ill(wide, burst) < least / 2 for burst in wide.bursts)
    if treated + sum(at >= wide.cause_at for at in wide.members.values()) >= least / 2:
        return False
    return all(treated + at_once.still_ill(wide, burst) < burst.size / 2 for burst in wide.bursts)


def _begun(ctx: Context, wide: SymptomState) -> list[float]:
    return [*wide.members.values(), *ctx.state.recovered.get(ids.key(wide.name, wide.scope), {}).values()]


def _grows_until(ctx: Context, symptom: Symptom, wide: SymptomState) -> float:
    return max(_begun(ctx, wide)) + min(GROWS_S, symptom.within_s)
