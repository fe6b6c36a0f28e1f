"""Looks: silence proves nothing (law 8). Before gpuward trusts that a fault is gone, or is still there, the node looks again.

`agent.look` makes every source of the node take a new sample, and reports what is there as fresh facts; its result comes
after them. So when it has come and no symptom is active, facts newer than the question show that the fault is gone.
A source that cannot look is named in the result (`blind`): if it is one that saw the fault, nothing is proven.
"""

from agent.contract.commands import Outcome
from agent.contract.kinds import KINDS
from agent.contract.look import ALSO_TOLD_BY, LOOK
from brain.core.context import Context
from brain.core.effects import AskLook, Step
from brain.core.inputs import StepResult
from brain.core.state import Run

ANSWER_GRACE_S = 5.0  # how long after its own timeout the result of a look may still arrive
AGAIN_S = 10.0  # pause after a look that proved nothing
WITHIN_S = 90.0  # after this long without a look that proves something, a person must look
UNHEARD_S = (
    1800.0  # the same for a node that is unreachable; people are told of that by an incident of its own
)


def needless(run: Run) -> bool:
    """Whether there is no node that could look: the run's scope is wider than one node."""
    return not run.node


def ask(ctx: Context, run: Run) -> float:
    """Asks the run's node to look again, unless it was asked and may still answer. Returns when to come back."""
    if not run.asked_since:
        run.asked_since = ctx.now
    if run.looking and ctx.now < run.looking_until:
        return run.looking_until
    if run.looking:
        run.unseen = f"{run.node} did not answer when it was asked to look again"
    node = ctx.state.nodes.get(run.node)
    if node is not None and not node.alive:
        run.looking, run.unseen, run.unheard_at = "", f"{run.node} is not heard", ctx.now
        return ctx.now + AGAIN_S
    incident = ctx.state.incidents[run.incident]
    spec = ctx.actions[LOOK]
    run.looks += 1
    run.looking = f"{run.id}.k{run.looks}.a1"
    run.looking_until = ctx.now + spec.timeout_s + ANSWER_GRACE_S
    ctx.effects.append(
        AskLook(
            step=Step(
                id=run.looking,
                run=run.id,
                incident=run.incident,
                node=run.node,
                action=LOOK,
                where=spec.where,
                params={},
                timeout_s=spec.timeout_s,
                disrupts=spec.disrupts,
                repeat=spec.repeat,
                why=f"is {incident.cause} at {incident.scope} still there?",
            )
        )
    )
    return run.looking_until


def given_up(ctx: Context, run: Run) -> bool:
    """Whether the node has been asked for so long, without a look that proved anything, that a person must look."""
    node = ctx.state.nodes.get(run.node)
    if not run.asked_since:
        return False
    if node is not None and not node.alive:
        return ctx.now - run.asked_since >= UNHEARD_S
    return ctx.now - max(run.asked_since, run.unheard_at) >= WITHIN_S


def forget(run: Run) -> None:
    """The question is no longer open: the fault came back, or another step begins."""
    run.looking, run.looking_until, run.asked_since, run.unseen = "", 0.0, 0.0, ""
    run.unheard_at = 0.0


def answered(ctx: Context, run: Run, result: StepResult) -> bool:
    """The node has looked again, or could not. Returns whether that proves something about the run's fault."""
    asked_at = run.looking_until - ctx.actions[LOOK].timeout_s - ANSWER_GRACE_S
    run.looking, run.looking_until = "", 0.0
    blind = [name.strip() for name in str(result.data.get("blind", "")).split(",")]
    missing = _missing(ctx, run, blind)
    if result.outcome is not Outcome.OK:
        run.unseen = f"{run.node} could not look again: {result.why}"
    elif missing:
        run.unseen = f"{', '.join(missing)} of {run.node}, which saw it, does not work"
    else:
        run.looked_at, run.looked_since = ctx.now, asked_at
        run.asked_since, run.unseen = 0.0, ""
        ctx.state.incidents[run.incident].unproven = False
    ctx.note(
        "run.looked",
        run.unseen or f"{run.node} has looked again: {result.why or 'nothing was missed'}",
        incident=run.incident,
        run=run.id,
        scope=run.scope,
    )
    return not run.unseen


def _missing(ctx: Context, run: Run, blind: list[str]) -> list[str]:
    """The blind sources of the facts of the run's fault that no other source tells."""
    kinds = [KINDS[fact.kind] for fact in ctx.state.incidents[run.incident].evidence if fact.kind in KINDS]
    missing = [
        kind.source
        for kind in kinds
        if kind.source in blind and ALSO_TOLD_BY.get(kind.name, kind.source) in blind
    ]
    return list(dict.fromkeys(missing))
