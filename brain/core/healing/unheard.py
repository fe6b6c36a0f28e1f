"""Steps for a node that is not heard: it does nothing that it is told, so its ladder waits for it.

A node that somebody reboots, or whose network restarts, is silent for minutes and then well. A ladder that went on meanwhile
would come to its end within seconds, and leave the node out of service for a fault that is over. One that does not come back
has an incident of its own, whose ladder asks people before its BMC restarts it: nothing else does meanwhile.
"""

from agent.contract.actions.spec import Disrupts
from agent.contract.commands import Outcome
from brain.core.context import Context
from brain.core.healing import plans
from brain.core.healing.verdicts import Case, Decision, Verdict
from brain.core.pack.spec import Rung
from brain.core.state import Run, StepRecord

AGAIN_S = 60.0  # how often it is looked whether the node is heard
# By then the brain knows whether a node that no command has reached is silent.
NOTICED_S = 30.0
_NOT_BEGUN = (Outcome.REFUSED, Outcome.UNREACHABLE, "withdrawn")


def heard(case: Case) -> Verdict | None:
    """The node must be heard before it is told to do something; not when our own remedy has taken it away."""
    ctx, run = case.ctx, case.run
    node = ctx.state.nodes.get(run.node)
    if node is None or run.requested_by or ctx.actions[case.rung.do].where != "node" or _by_us(ctx, run):
        return None
    if not node.alive:
        return Verdict(answer=Decision.HOLD, gate="heard", reason=f"{run.node} is not heard", retry_s=AGAIN_S)
    missed = _missed(run, case.rung)
    left_s = missed[-1].at + NOTICED_S - ctx.now if missed else 0.0
    if left_s <= 0:
        return None
    reason = f"no command has reached {run.node}"
    return Verdict(answer=Decision.HOLD, gate="heard", reason=reason, retry_s=left_s)


def is_waited_for(ctx: Context, run: Run) -> bool:
    """Whether the run waits for its node to be heard: people are told of that by the node's own incident."""
    node = ctx.state.nodes.get(run.node)
    return node is not None and not node.alive and run.why.endswith("(gate heard)")


def may_yet_be(ctx: Context, run: Run, rung: Rung) -> Verdict | None:
    """A step has not reached its node: what its rung waits for; None: that is how the rung has ended."""
    if len(_missed(run, rung)) > 1 or not (run.worked or plans.disrupts(ctx, rung) is not Disrupts.NOTHING):
        return None
    return heard(Case(ctx=ctx, run=run, incident=ctx.state.incidents[run.incident], rung=rung))


def _missed(run: Run, rung: Rung) -> list[StepRecord]:
    """The newest attempts of the rung, one after the other, that have not reached the node."""
    found: list[StepRecord] = []
    for step in reversed(run.steps):
        if step.rung != rung.name or step.outcome != Outcome.UNREACHABLE:
            break
        found.insert(0, step)
    return found


def _by_us(ctx: Context, run: Run) -> bool:
    """Whether the run has told the node to do something that may have made it silent."""
    specs = ((step, ctx.actions.get(step.action)) for step in run.steps)
    return any(
        spec is not None
        and spec.where == "node"
        and spec.disrupts is not Disrupts.NOTHING
        and step.outcome not in _NOT_BEGUN
        for step, spec in specs
    )
