"""What nodes share that no place says: a driver, a firmware, a kernel, a product; and which of them fell ill lately. Pure.

What is kept of a node: since when it has had each of its versions (`State.traits`), and when each symptom last began on it
(`State.ill`). suspects.py compares the nodes that share a version with the others. The versions are those by which nodes
are compared with their peers anyway (`detect: unlike`), as they told them last (`State.peers`).
"""

from agent.contract.messages import clip
from brain.core import ids
from brain.core.baseline import parsed
from brain.core.context import Context
from brain.core.faults import jobs, rollouts, spread
from brain.core.pack.spec import Paging, Symptom
from brain.core.pack.topology import CELL, JOB, RELEASE, node_of, type_of
from brain.core.state import State, SymptomState, Traits

KIND = "node.inventory"
WITHIN_S = 28 * 86400.0  # how long it is remembered that a node fell ill
# Who upgrades a node restarts it and looks after it: what happens until the new version has run so long says nothing of it.
SETTLES_S = 3600.0
AT_LEAST = 5  # nodes that fell ill apart from each other; one of them may have made it up
AT_ONCE_S = 1.0  # before anything is done about the node
ASKED_AFTER_S = 300.0  # where others fell ill so lately: it is asked once for all of them
MAX_KINDS = 4096  # symptoms whose nodes are remembered
MAX_ALONE = 64  # of these, how many one node alone may fill (law 15)
TIMER = "releases"

_PARTS = ("gpu", "nvswitch", "nic", "port", "disk", "pcie")
_OF_NODES = ("gpu.", "nvml.", "nic.", "pcie.", "memory.", "cpu.", "kernel.")
# What people change, and what only says how a card is used: no sign of a bad release.
_NO_FAULTS = ("gpu.version_mismatch", "gpu.setting", "gpu.idle", "gpu.spinning", "gpu.orphaned")
_XID = "xid"  # the field that tells the faults of one symptom apart


def moved(ctx: Context, node: str, before: str | None, values: str) -> bool:
    """A node told its versions: `before` and `values` are as State.peers keeps them. One that it does not tell for now, as
    while it boots, is the one it told last. Returns whether that is news of a roll-out.
    """
    known = ctx.state.traits.get(node)
    if known is None:
        known = ctx.state.traits[node] = Traits(since=ctx.now if before is None else 0.0)
    if before is None or before == values:
        return False
    seen = False
    was, now = parsed(before), parsed(values)
    for trait in {**was, **now}:
        old = was.get(trait) or known.untold.pop(trait, "")
        new = now.get(trait, "")
        if not new and old:
            known.untold[trait] = old
        elif old and new != old:
            known.changed[trait] = ctx.now + SETTLES_S
            seen = rollouts.told(ctx, node, trait, new) or seen
    return seen


def value(state: State, node: str, trait: str) -> str:
    """The version that a node has, or had when it last told one; empty: it never told one."""
    told = parsed(state.peers.get(f"{KIND} {node}", "{}")).get(trait, "")
    if told:
        return told
    known = state.traits.get(node)
    return known.untold.get(trait, "") if known is not None else ""


def scope_of(trait: str, told: str) -> str:
    """`release/driver/580.82`."""
    return f"{RELEASE}/{trait}/{_name(told)}"


def _name(told: str) -> str:
    return "".join(one if one.isalnum() or one in ".-+" else "_" for one in clip(told, 60))


def has(state: State, node: str, scope: str) -> bool:
    """Whether the node has the version that a scope `release/...` names."""
    _, trait, name = scope.split("/", 2)
    return _name(value(state, node, trait)) == name


def serves(ctx: Context, outer: str, inner: str) -> bool:
    """Whether a fault of `outer` shows at `inner`, also where it is that of a version that a node has, or of a job. What serves a
    node of a job serves the job.
    """
    if type_of(inner) == JOB and outer not in (inner, CELL):
        return any(serves(ctx, outer, f"node/{node}") for node in jobs.nodes_of(ctx, inner))
    if type_of(outer) == JOB:
        return outer == inner or jobs.holds(ctx, outer, node_of(inner))
    if type_of(outer) != RELEASE:
        return ctx.compiled.topology.serves(outer, inner)
    node = node_of(inner)
    return outer == inner or bool(node and has(ctx.state, node, outer))


def fell_ill(ctx: Context, state: SymptomState) -> None:
    """A symptom began. A place where so many show it explains it: then it says nothing of a version."""
    if state.members:
        for key in [key for key in ctx.state.ill if key.partition("/")[0] == _counted(ctx, state)]:
            for node in state.members:
                ctx.state.ill[key].pop(node, None)
        return
    node, spec = node_of(state.scope), ctx.compiled.symptoms.get(state.name)
    if not node or spec is None or not _counts(ctx, spec) or _explained(ctx, state):
        return
    code = state.carried.get(_XID)
    key = f"{state.name}/{code}" if isinstance(code, int) else state.name
    ill = ctx.state.ill.get(key)
    if ill is None:
        _make_room(ctx, node)
        ill = ctx.state.ill[key] = {}
    ill.pop(node, None)  # the newest stand last
    lately = max(ill.values(), default=0.0) > ctx.now - ASKED_AFTER_S
    ill[node] = ctx.now
    while ill and (first := next(iter(ill))) and ill[first] < ctx.now - WITHIN_S:
        del ill[first]
    timer = f"{TIMER}:{key}"
    if len(ill) >= AT_LEAST and timer not in ctx.state.timers and KIND in ctx.compiled.unlikes:
        ctx.set_timer(timer, ctx.now + (ASKED_AFTER_S if lately else AT_ONCE_S))


def explains(ctx: Context, suspect: SymptomState) -> list[str]:
    """The causes of the nodes' own incidents that a suspected version explains."""
    if type_of(suspect.scope) != RELEASE:
        return []
    names = [tag.partition("/")[0] for tag in suspect.open_facts]
    named = [rule for scope in names for rule in ctx.compiled.named_by.get(scope, ())]
    return list(dict.fromkeys(rule.cause or rule.name for rule in named if type_of(rule.scope) in _HERE))


def ill_with(ctx: Context, suspect: SymptomState) -> list[str]:
    """The nodes with a suspected version that fell ill lately, in the order in which they did."""
    if type_of(suspect.scope) != RELEASE:
        return []
    since = ctx.now - WITHIN_S
    ill = {node: at for tag in suspect.open_facts for node, at in ctx.state.ill.get(tag, {}).items()}
    return sorted(
        (one for one, at in ill.items() if at > since and has(ctx.state, one, suspect.scope)),
        key=ill.__getitem__,
    )


_HERE = (*_PARTS, "node")


def forget_node(ctx: Context, node: str) -> None:
    """A node is gone for good."""
    ctx.state.traits.pop(node, None)
    rollouts.forget_node(ctx, node)
    for key in list(ctx.state.ill):
        ctx.state.ill[key].pop(node, None)
        if not ctx.state.ill[key]:
            del ctx.state.ill[key]


def _counted(ctx: Context, wide: SymptomState) -> str:
    spec = ctx.compiled.symptoms.get(wide.name)
    return spec.of if spec is not None else ""


def _counts(ctx: Context, spec: Symptom) -> bool:
    """Whether the symptom is a fault of hardware, firmware, driver or kernel that people would hear of."""
    kinds = [match.kind for match in spec.on]
    of_part = spec.scope in _PARTS or (
        spec.scope == "node" and all(one.startswith(_OF_NODES) for one in kinds)
    )
    rules = ctx.compiled.named_by.get(spec.name, ())
    told = any(rule.page is not Paging.NEVER for rule in rules)
    return (
        of_part
        and told
        and spec.detect not in ("spread", "unlike")
        and not any(one in _NO_FAULTS for one in kinds)
    )


def _explained(ctx: Context, state: SymptomState) -> bool:
    return any(
        wide.active
        for symptom, place, _ in spread.watchers(ctx, state.name, state.scope, state.jobs)
        if (wide := ctx.state.symptoms.get(ids.key(symptom.name, place))) is not None
    )


def _make_room(ctx: Context, node: str) -> None:
    """One more symptom: what one node alone has said goes first, and of one node its own oldest."""
    ill = ctx.state.ill
    alone = [key for key, nodes in ill.items() if len(nodes) == 1 and node in nodes]
    if len(alone) >= MAX_ALONE:
        del ill[min(alone, key=lambda key: ill[key][node])]
    elif len(ill) >= MAX_KINDS:
        del ill[min(ill, key=lambda key: (len(ill[key]), max(ill[key].values(), default=0.0)))]
