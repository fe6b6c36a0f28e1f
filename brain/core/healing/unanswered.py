"""Steps that a node was told to do, and of which it gives no sign of life, or none that can be true (decisions 33 and 37).

A node that reboots is silent, and then has another boot id. One that is heard as before does not reboot, whatever it says.
"""

from agent.contract.actions.spec import ActionSpec
from brain.core.context import Context
from brain.core.pack.spec import Rung
from brain.core.state import Node, Run, RunState

# A long step reports progress every 10 s. One of class `safe` that reports nothing for this long is sent again.
NO_PROGRESS_S = 45.0
# A node that is heard, and has given no sign of life of its step for this long, does not perform it.
NO_ANSWER_S = 2 * NO_PROGRESS_S
# By then a node that was told to reboot is down, or has said why it is not (agent/actions/node_reboot.py: 180 s, and what
# D-Bus may take).
GONE_BY_S = 300.0
REMEMBERED = 2  # steps of a node; so many within a day, and a person must let it have another one


def counts(ctx: Context, run: Run, rung: Rung) -> bool:
    """Whether what the node says of its step is a sign of life; not of a reboot that would have begun by now, or is over."""
    node = ctx.state.nodes.get(run.node)
    if node is None or not _leaves(ctx.actions[rung.do]):
        return True
    return not run.back_at and not _started_anew(node, run) and ctx.now < run.steps[-1].at + GONE_BY_S


def look(ctx: Context, run: Run, rung: Rung) -> None:
    """Notes when the node was first found there, though its step takes it away: in another boot, or too late in the old one."""
    node = ctx.state.nodes.get(run.node)
    under_way = run.state in (RunState.PERFORMING, RunState.CANCELLING)
    if run.back_at or node is None or not under_way or not _leaves(ctx.actions[rung.do]):
        return
    if _started_anew(node, run) or (node.alive and ctx.now >= run.steps[-1].at + GONE_BY_S):
        run.back_at = ctx.now


def due(ctx: Context, run: Run, rung: Rung) -> float:
    """When to look after the step next."""
    ends = [run.deadline, ctx.now + NO_PROGRESS_S]
    if run.back_at:
        ends.append(run.back_at + NO_ANSWER_S)
    elif _leaves(ctx.actions[rung.do]):
        ends.append(run.steps[-1].at + GONE_BY_S)
    return min([run.deadline, *(at for at in ends if at > ctx.now)])


def has_started_anew(ctx: Context, run: Run) -> bool:
    """Whether the node was taken away by its step and is back for so long that it should have said how the step ended."""
    node = ctx.state.nodes.get(run.node)
    over = bool(run.back_at) and ctx.now - run.back_at >= NO_ANSWER_S
    return over and node is not None and _started_anew(node, run)


def is_idle(ctx: Context, run: Run, rung: Rung) -> bool:
    """Whether the run holds a budget for a step of its own node that the node, which is heard, does not perform."""
    if run.back_at:
        return ctx.now - run.back_at >= NO_ANSWER_S and _owes(ctx, run, rung)
    return ctx.now - run.heard_at >= NO_ANSWER_S and _is_heard(ctx, run) and _owes(ctx, run, rung)


def is_overdue(ctx: Context, run: Run, rung: Rung) -> bool:
    """Whether the node, which is heard, should have ended the step by now: an agent keeps its deadlines itself."""
    return ctx.now >= run.deadline and _is_heard(ctx, run) and _owes(ctx, run, rung)


def remember(ctx: Context, run: Run) -> None:
    """The node has left its step without a result, and counts for the gate `answers`."""
    node = ctx.state.nodes[run.node]
    node.unanswered = [*node.unanswered, ctx.now][-REMEMBERED:]


def _is_heard(ctx: Context, run: Run) -> bool:
    node = ctx.state.nodes.get(run.node)
    return node is not None and node.alive


def _owes(ctx: Context, run: Run, rung: Rung) -> bool:
    """Whether the run holds a budget for a step that the node itself performs, in the boot in which it was told to."""
    node = ctx.state.nodes.get(run.node)
    own = run.claimed and ctx.actions[rung.do].where == "node"
    return own and node is not None and not _started_anew(node, run)


def _leaves(spec: ActionSpec) -> bool:
    return spec.where == "node" and spec.takes_node_away


def _started_anew(node: Node, run: Run) -> bool:
    return node.booted_at > run.steps[-1].at
