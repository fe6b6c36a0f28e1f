"""People roll out a version: nodes fall silent one after the other, and each comes back with another one than it had. Pure.

That many nodes of a pod are silent within a quarter of an hour is an emergency, unless it is their upgrade. Two nodes that were
silent and tell the same new version when they are back are the evidence; one alone may have made it up (law 15). From then on a
node that falls silent is taken for the next one: as long as it has the old version, is away for no more than twice as long as the
others were, and no more than twice as many fall silent together. What stays away longer is told like any other silent node, and
counts. Decision 85.
"""

import math
from dataclasses import dataclass

from agent.contract.counted import counted, span
from brain.core import ids
from brain.core.baseline import parsed
from brain.core.context import Context
from brain.core.faults import passing
from brain.core.pack.topology import CELL, node_of
from brain.core.pack.vocabulary import NODE_UNREACHABLE
from brain.core.state import RollOut, Upgrade

KIND = "node.inventory"
TRAITS = ("bios", "kernel", "driver", "gpu_vbios", "nic_firmware")  # what people roll out by a restart
AT_LEAST = 2  # nodes that are back with the version
TELLS_S = 900.0  # so long after its return a node may take to tell its versions
LASTS_S = 3600.0  # so long after the last node was back it is under way
LEAST_AWAY_S = 600.0  # a node may be away for so long at least
MOST_AWAY_S = 1800.0  # who was away for longer was repaired or installed anew: that says nothing of how long the next one takes
TIMES = 2  # and so many times as long as those that are back; so many times as many may fall silent together
LATE = 1.25  # so many times as long as the others a node may be away until it is late
TOGETHER_S = 30.0  # nodes that fall silent within so long of each other do so together
TIMER = "rollout"
NEXT = "may be the next one"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """A roll-out that explains why a node is silent."""

    # as a clause
    text: str
    # until then it does
    until: float


def told(ctx: Context, node: str, trait: str, value: str) -> bool:
    """A node tells another version than it had. Returns whether that is news of a roll-out: it was silent just before. Then it
    does not count as one that has recovered.
    """
    known = ctx.state.nodes.get(node)
    if trait not in TRAITS or known is None or not known.back_at or ctx.now > known.back_at + TELLS_S:
        return False
    if known.back_at - known.silent_at > MOST_AWAY_S:
        return False
    key = f"{trait} {value}"
    rollout = ctx.state.rollouts.setdefault(key, RollOut())
    rollout.done[node] = Upgrade(
        at=ctx.now, silent_at=known.silent_at, away_s=known.back_at - known.silent_at
    )
    for old in [name for name, one in rollout.done.items() if one.at <= ctx.now - LASTS_S]:
        del rollout.done[old]
    together = sum(abs(one.silent_at - known.silent_at) <= TOGETHER_S for one in rollout.done.values())
    rollout.batch = max(rollout.batch, together)
    passing.forget_silence(ctx, node)
    ctx.set_timer(f"{TIMER}:{key}", ctx.now + LASTS_S)
    if len(rollout.done) == AT_LEAST:
        named = ", ".join(rollout.done)
        text = f"{_words(key)} is rolled out: {counted(AT_LEAST, 'node')} were silent and are back with it ({named})"
        ctx.note("rollout.seen", text, scope=CELL)
    return len(rollout.done) >= AT_LEAST


def forget(ctx: Context, key: str) -> None:
    """The timer of a roll-out fired: no node came back with the version since."""
    ctx.state.rollouts.pop(key, None)


def forget_node(ctx: Context, node: str) -> None:
    """A node is gone for good."""
    ctx.state.silent.pop(node, None)
    for rollout in ctx.state.rollouts.values():
        rollout.done.pop(node, None)


def of_node(ctx: Context, node: str, times: float = TIMES) -> UnderWay | None:
    """The roll-out that explains why the node is silent, for so many times as long as the others were; None: none does (any
    more).
    """
    known = ctx.state.nodes.get(node)
    if known is None or known.alive:
        return None
    for key, rollout in ctx.state.rollouts.items():
        done = [one for name, one in rollout.done.items() if name != node and one.at > ctx.now - LASTS_S]
        if len(done) < AT_LEAST or node in rollout.done or _has(ctx, node, key):
            continue
        longest_s = max(one.away_s for one in done)
        most = TIMES * rollout.batch
        until = known.silent_at + max(LEAST_AWAY_S * times / TIMES, times * longest_s)
        if ctx.now < until and _together(ctx.state.silent, node, most + 1) <= most:
            text = (
                f"{_words(key)} is rolled out: {counted(len(done), 'node')} came back with it after {span(longest_s)} at most, "
                f"and {node} {NEXT}"
            )
            return UnderWay(text=text, until=until)
    return None


def too_many(ctx: Context, node: str) -> bool:
    """Whether with this node more fell silent together than a roll-out explains, and without it not: now all of them count."""
    mosts = (TIMES * rollout.batch for rollout in ctx.state.rollouts.values())
    return any(_together(ctx.state.silent, node, most + 2) == most + 1 for most in mosts)


def stands_aside(ctx: Context, name: str, scope: str) -> bool:
    """Whether a node with a symptom counts nowhere, since a roll-out explains why it is silent."""
    return bool(ctx.state.rollouts) and counts_silent(ctx, name) and of_node(ctx, node_of(scope)) is not None


def counts_silent(ctx: Context, name: str) -> bool:
    """Whether a symptom says that nodes are silent."""
    spec = ctx.compiled.symptoms.get(name)
    return spec is not None and any(match.kind == NODE_UNREACHABLE for match in spec.on)


def why_silent(ctx: Context, scope: str, symptoms: list[str]) -> UnderWay | None:
    """The roll-out by which a node is silent, of an incident with these symptoms; None: it is about something else, too."""
    if (
        not ctx.state.rollouts
        or not symptoms
        or not all(counts_silent(ctx, ids.name_of(one)) for one in symptoms)
    ):
        return None
    return of_node(ctx, node_of(scope))


def _has(ctx: Context, node: str, key: str) -> bool:
    trait, _, value = key.partition(" ")
    return parsed(ctx.state.peers.get(f"{KIND} {node}", "{}")).get(trait) == value


def _together(silent: dict[str, float], node: str, enough: int) -> int:
    """How many nodes of the cell fell silent together with this one, itself included; of many `enough`."""
    mine, count = silent.get(node, math.inf), 0
    for at in reversed(silent.values()):  # the newest first
        if at < mine - TOGETHER_S or count >= enough:
            break
        count += at <= mine + TOGETHER_S
    return count


def _words(key: str) -> str:
    trait, _, value = key.partition(" ")
    return f"{trait.replace('_', ' ')} {value}"
