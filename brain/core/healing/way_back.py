"""May a node be given back to its scheduler now? Laws 3 and 8."""

from brain.core.context import Context
from brain.core.healing import (
    budgets,
    drains,
    holding,
    limits,
    looks,
    run_states,
    verdicts,
)
from brain.core.healing.run_states import RunTrigger
from brain.core.pack.spec import Rung
from brain.core.people import SCHEDULE
from brain.core.state import Run

LOOKED_S = 300.0  # how old a look may be when a node is given back


def left_to_others(ctx: Context, run: Run) -> bool:
    """Whether another incident wants the node out of service: then that one keeps the drain, and the run ends."""
    others = drains.others(ctx, run)
    if not others:
        return False
    drains.hand_over(ctx, run.node, run.incident, others[0])
    heir = ctx.state.incidents.get(others[0])
    cause = heir.cause if heir is not None else others[0]
    why = f"{run.node} stays out of service for {cause} ({others[0]})"
    if run.worked:
        run_states.transition(ctx, run, RunTrigger.SUCCEEDED, f"{run.worked}; {why}")
    elif not run.requested_by:  # it was only to bring the node back, which the other one will do
        run_states.transition(ctx, run, RunTrigger.SUCCEEDED, why)
    else:
        run_states.transition(ctx, run, RunTrigger.EXHAUSTED, f"not given back: {why}")
    return True


def may_return(ctx: Context, run: Run, rung: Rung) -> bool:
    """Whether the node may be given back to its scheduler now (laws 3 and 8); if not, the run waits or ends.

    Not while another incident wants it out of service, and not before the node has looked again since it was last
    disturbed. An operator who asks for the return answers for the latter.
    """
    if looks.needless(run):
        return True
    if left_to_others(ctx, run):
        return False
    if not run.worked and not has_node_to_itself(ctx, run, rung):
        return False
    if run.requested_by not in ("", SCHEDULE):
        return True
    node = ctx.state.nodes.get(run.node)
    if run.looked_at >= run.disturbed_at and run.looked_at >= ctx.now - LOOKED_S and node and node.alive:
        return True
    if looks.given_up(ctx, run):
        run_states.transition(
            ctx, run, RunTrigger.EXHAUSTED, f"not given back: {run.unseen}. A person must look"
        )
        return False
    holding.wait_for_look(ctx, run, f"before {rung.name}")
    return False


def has_node_to_itself(ctx: Context, run: Run, rung: Rung) -> bool:
    """Claims the node for the way back, unless another run works on it; then this one waits.

    Else that other run would disturb what the tests test.
    """
    incident = ctx.state.incidents[run.incident]
    busy = budgets.one_per_node(verdicts.Case(ctx=ctx, run=run, incident=incident, rung=rung))
    if busy is not None:
        holding.stopped_by_gate(ctx, run, incident, rung, busy)
        return False
    limits.occupy(ctx, run)
    return True


def not_to_be_returned(ctx: Context, run: Run) -> tuple[str, str]:
    """(gate, why) if something forbids by now to give the run's node back, as it was about to be; else two empty texts.

    Another incident wants it out of service, or it fell silent. Whoever asks for the return answers for the latter.
    """
    if wanted := drains.others(ctx, run):
        return "drained", f"{wanted[0]} wants {run.node} out of service"
    node = ctx.state.nodes.get(run.node)
    if node is not None and not node.alive and run.requested_by in ("", SCHEDULE):
        return "unheard", f"{run.node} is not heard"
    return "", ""
