"""What a page's text says of the run: filled in from what happened, when the page is sent. Decides nothing.

A runbook is written before anybody knows whether the scheduler accepts a drain or a BMC switches a node off. So its texts
give advice only; what was done they leave to these words, and `gpuward check` refuses texts that claim it by themselves.
"""

from collections.abc import Callable, Mapping

from agent.contract.commands import Outcome
from agent.contract.messages import clip
from brain.core.context import Context
from brain.core.healing import drains
from brain.core.pack.spec import NAMED, PAGE, Scalar
from brain.core.state import Incident, Run, StepRecord

MAX_WHY = 140  # characters of a step's reason
EVIDENCE = ("evidence.collect", "bmc.evidence")
# Outcomes after which a step was certainly not done.
NOT_BEGUN = (Outcome.REFUSED, Outcome.UNREACHABLE, "withdrawn")
LEMON = "lemon-node"  # of this cause nobody knows a part to replace yet
SWITCHES_OFF = ("node.isolate", "bmc.power_off")


def fill(ctx: Context, run: Run, text: str) -> str:
    """A page's text with what happened in place of each `$word`. Other words stay as they are."""
    words = {f"${name}": say for name, say in WORDS.items()}
    return NAMED.sub(lambda found: words[found[0]](ctx, run) if found[0] in words else found[0], text)


def foretell(value: Scalar) -> Scalar:
    """A parameter with what each `$word` will say, for a plan: nothing has happened yet."""
    if not isinstance(value, str):
        return value
    return NAMED.sub(
        lambda found: f"[{_FORETOLD[found[0][1:]]}]" if found[0][1:] in _FORETOLD else found[0], value
    )


def tried(run: Run) -> bool:
    """Whether the run has tried anything, or was stopped because too much was tried: one that only tells has not given up."""
    return run.spent or any(step.action not in (PAGE, *EVIDENCE) for step in run.steps)


def only_tells(run: Run) -> bool:
    """Whether nothing is done by the run's runbook but to page."""
    return bool(run.runbook.rungs) and all(rung.do == PAGE for rung in run.runbook.rungs)


def remedied_alike(ctx: Context, by: Incident, former: Incident) -> bool:
    """Whether one incident brings nothing new to whoever was called for another one at its place: what is done about it was done
    for that already, as its last resort.
    """
    done = [ctx.state.runs[one].runbook.name for one in former.runs if one in ctx.state.runs]
    return by.scope == former.scope and by.severity >= former.severity and by.runbook in done


def drained(ctx: Context, run: Run) -> str:
    """Whether new jobs may come to the run's node, as far as we know."""
    node = run.node or "The node"
    steps = [one for one in _steps_of_incident(ctx, run) if _drains(ctx, one)]
    step = _last(steps, lambda _one: True)
    owned, done = run.node in ctx.state.drains, step is not None and step.outcome == Outcome.OK
    if drains.sure(ctx, run.node):  # a later step that may drain too, such as a fencing, does not undo it
        stands = _last(steps, lambda one: one.outcome == Outcome.OK)
        return f"{node} gets no new jobs{_why(stands) if stands is not None else ''}."
    if owned and (step is None or done):
        return f"It is not certain that {node} is drained: check whether new jobs may start there."
    if step is None:
        return f"{node} was not drained: new jobs may start there."
    if done:
        return f"{node} was drained and has been given back: new jobs may start there."
    if owned and not all(one.outcome in NOT_BEGUN for one in steps):
        return f"The drain of {node} did not end well{_why(step)}: check whether new jobs may start there."
    if drains.of_others(ctx, run):
        return (
            f"It is not certain that {node} is drained{_why(step)}: check whether new jobs may start there."
        )
    return f"{node} could NOT be drained{_why(step)}: new jobs may start there."


def _done(ctx: Context, run: Run) -> str:
    """What the ladder did and what came of it; evidence and drains have `$words` of their own."""
    last = {step.rung: step for step in run.steps if _is_remedy(ctx, step)}
    if not last:
        return "Nothing else was done."
    return f"What was done: {'; '.join(f'{name}: {_outcome(step)}' for name, step in last.items())}."


def _evidence(_ctx: Context, run: Run) -> str:
    """Whether there is an evidence bundle of this run."""
    steps = [one for one in run.steps if one.action in EVIDENCE]
    kept = _last(steps, lambda one: one.outcome == Outcome.OK)
    if kept is not None:
        return f"The evidence is kept (`gpuward evidence {kept.id}`)."
    step = _last(steps, lambda _one: True)
    why = _why(step) if step is not None else ""
    maybe = _last(steps, lambda one: one.outcome == Outcome.UNKNOWN)
    if maybe is not None:
        return (
            f"It is not certain that there is evidence of this run{why}: see `gpuward evidence {maybe.id}`."
        )
    return f"There is NO evidence of this run{why}."


def _switched_off(_ctx: Context, run: Run) -> str:
    """Whether the run has switched its node off."""
    node = run.node or "the node"
    step = _last(run.steps, lambda one: one.action in SWITCHES_OFF)
    if step is not None and step.outcome == Outcome.OK:
        return f"{node} is switched off."
    if step is not None and step.outcome == Outcome.UNKNOWN:
        return f"Nobody knows whether {node} is switched off{_why(step)}."
    return f"{node} was NOT switched off{_why(step) if step is not None else ''}."


def _node(_ctx: Context, run: Run) -> str:
    return run.node or run.scope


def _distrust(ctx: Context, run: Run) -> str:
    """Why the node is not to be used: its fault, or what stands in the way of that fault's own remedy."""
    incident = ctx.state.incidents[run.incident]
    own = _stands_in_for(ctx, run)
    if own is None:
        return f"{_node(ctx, run)} cannot be trusted ({incident.cause.replace('_', ' ')})."
    tried = "No further remedy is tried for it" if own.steps else "No remedy was tried for it"
    return f"{tried} ({clip(' '.join(own.why.split()), MAX_WHY)})."


def _repair(ctx: Context, run: Run) -> str:
    """What is left to do: there is a part to replace only where the fault says so."""
    back = f"`gpuward return {_node(ctx, run)}` gives it back"
    lemon = ctx.state.incidents[run.incident].cause == LEMON
    if _stands_in_for(ctx, run) is None and not lemon:
        return f"Open a ticket for the part; after its replacement {back}."
    return f"Find out why {_node(ctx, run)} needs one remedy after the other; when it is well, {back}."


def _stands_in_for(ctx: Context, run: Run) -> Run | None:
    """The run in whose place this one is the last resort; None: it is the fault's own remedy."""
    incident = ctx.state.incidents[run.incident]
    before = [ctx.state.runs[one] for one in incident.runs if one in ctx.state.runs and one != run.id]
    return next((one for one in reversed(before) if one.runbook.last_resort == run.runbook.name), None)


WORDS: Mapping[str, Callable[[Context, Run], str]] = {
    "drained": drained,
    "done": _done,
    "evidence": _evidence,
    "switched_off": _switched_off,
    "node": _node,
    "distrust": _distrust,
    "repair": _repair,
}


_FORETOLD: Mapping[str, str] = {
    "drained": "whether the node is drained",
    "done": "what was done",
    "evidence": "whether there is evidence",
    "switched_off": "whether the node is switched off",
    "distrust": "why the node is not to be used",
    "repair": "what is left to do",
}


def _is_remedy(ctx: Context, step: StepRecord) -> bool:
    only_drains = _drains(ctx, step) and step.action not in SWITCHES_OFF
    return step.action != PAGE and step.action not in EVIDENCE and not only_drains


def _drains(ctx: Context, step: StepRecord) -> bool:
    spec = ctx.actions.get(step.action)
    return spec is not None and spec.drains


def _outcome(step: StepRecord) -> str:
    if step.outcome == Outcome.OK:
        return {None: "done", True: "done, it helped", False: "done, it did not help"}[step.verified]
    return f"{step.outcome or 'under way'}{_why(step)}"


def _why(step: StepRecord) -> str:
    return f" ({clip(' '.join(step.why.split()), MAX_WHY)})" if step.why else ""


def _steps_of_incident(ctx: Context, run: Run) -> list[StepRecord]:
    """The steps of all runs of the incident: an earlier one may have drained the node."""
    runs = [ctx.state.runs[one] for one in ctx.state.incidents[run.incident].runs if one in ctx.state.runs]
    return [step for each in runs for step in each.steps]


def _last(steps: list[StepRecord], wanted: Callable[[StepRecord], bool]) -> StepRecord | None:
    return next((step for step in reversed(steps) if step.outcome != "withdrawn" and wanted(step)), None)
