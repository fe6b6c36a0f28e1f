"""The step that a rung leads to: its id, its parameters filled in, what it disrupts. Decides nothing."""

from collections.abc import Mapping
from dataclasses import replace

from agent.contract.actions.spec import Disrupts, Repeat
from brain.core.context import Context
from brain.core.effects import Step
from brain.core.faults import situations
from brain.core.healing import drains
from brain.core.pack import conditions
from brain.core.pack.spec import DRAINS, NAMED, PAGE, Rung, Scalar
from brain.core.pack.topology import component_of
from brain.core.state import Incident, Run

AFTER_WAIT_S = 600.0  # what a drain may take besides its wait: the scheduler is away, requeued jobs leave
_WORSE = (Disrupts.NOTHING, Disrupts.JOB, Disrupts.NODE, Disrupts.FABRIC)


def disrupts(ctx: Context, rung: Rung, *, returning: bool = False) -> Disrupts:
    """What a rung disrupts: what its action declares, or worse if the rung declares worse.

    `returning`: on the way back into service. A test disrupts nothing there, so that no gate blocks the way back (law 7):
    the run has the node to itself, and the node itself does not test what something uses.
    """
    if rung.do == PAGE or (returning and ctx.actions[rung.do].tests):
        return Disrupts.NOTHING
    own = ctx.actions[rung.do].disrupts
    return max(own, rung.disrupts, key=_WORSE.index) if rung.disrupts else own


def repeat(ctx: Context, rung: Rung) -> Repeat:
    """A rung's repeat class: its own, else its action's."""
    return rung.repeat or ctx.actions[rung.do].repeat


def values(ctx: Context, incident: Incident) -> dict[str, Scalar]:
    """The values for `$name` in parameters: the situation's fields, and id, cause and scope of the incident."""
    return situations.situation(ctx, incident.scope) | {
        "incident": incident.id,
        "cause": incident.cause,
        "scope": incident.scope,
    }


def params(run: Run, rung: Rung) -> dict[str, Scalar]:
    """A rung's parameters with every `$name` filled in from the run. An unknown name is left as it is: the node refuses it."""
    known = run.params | {"component": component_of(run.scope), "node": run.node, "scope": run.scope}
    return {name: _filled(known, value) for name, value in rung.params.items()}


def reaches(ctx: Context, run: Run, rung: Rung, scope: str) -> bool:
    """Whether the rung is done to this scope, too: not to other parts of the node if it names one of them."""
    own = component_of(run.scope)
    named = own != "node" and own in params(run, rung).values()
    return not named or ctx.compiled.topology.overlap(run.scope, scope)


def _filled(known: Mapping[str, Scalar], value: Scalar) -> Scalar:
    if not isinstance(value, str):
        return value
    if NAMED.fullmatch(value):
        return known.get(value[1:], value)
    return NAMED.sub(lambda found: str(known.get(found[0][1:], found[0])), value)


def rest_of(ctx: Context, run: Run, step: Step) -> Step:
    """A step that is asked for again: it waits for jobs only for what is left of its time."""
    wait_s = step.params.get("wait_s")
    if not isinstance(wait_s, int | float):
        return step
    left_s = max(0.0, wait_s - (ctx.now - run.steps[-1].at))
    return replace(step, params={**step.params, "wait_s": left_s})


def _waits_of_site(ctx: Context, given: dict[str, Scalar]) -> dict[str, Scalar]:
    """A drain's parameters: for a class of faults (`fault`) the site says how long jobs may go on, and what then."""
    fault = str(given.pop("fault", ""))
    wait = ctx.compiled.settings.drains.get(fault) or DRAINS.get(fault)  # type: ignore[call-overload]  # any text may be asked for
    return given | {"wait_s": wait.wait_s, "then": wait.then} if wait is not None else given


def rungs(run: Run) -> tuple[Rung, ...]:
    """The rungs that the run performs now: the ladder, or the return to service."""
    return run.runbook.return_to_service if run.worked else run.runbook.rungs


def next_step_id(run: Run) -> str:
    """The id of the next attempt of the present rung: `<run>.s<rung>.a<n>`, in the return to service `<run>.b<rung>.a<n>`.

    `n` counts the run's attempts of that rung, also those of an earlier way through the ladder: no id comes twice.
    """
    rung = f"{run.id}.{'b' if run.worked else 's'}{run.rung + 1}.a"
    before = [int(step.id.removeprefix(rung)) for step in run.steps if step.id.startswith(rung)]
    return f"{rung}{1 + max(before, default=0)}"


def last_step_id(run: Run) -> str:
    """The id of the step that was begun last; empty: none was."""
    return run.steps[-1].id if run.steps else ""


def applies(run: Run, rung: Rung) -> bool:
    """Whether the rung fits what the run has done: one of the rungs in its `after` was begun, or it names none."""
    return not rung.after or any(step.rung in rung.after for step in run.steps)


def fits(ctx: Context, run: Run, rung: Rung) -> bool:
    """Whether the rung fits the situation as it is now: its `when` holds, or it has none."""
    return not rung.when or conditions.holds(rung.when, situations.situation(ctx, run.scope))


def ahead(ctx: Context, run: Run) -> tuple[list[tuple[int, Rung]], list[tuple[int, Rung]]]:
    """What the whole run comes to in the situation as it is now: the rungs of the ladder that fit it, and those of the return
    to service that fit it and these, each with its number in the runbook.
    """
    ladder = [(number, rung) for number, rung in enumerate(run.runbook.rungs, 1) if fits(ctx, run, rung)]
    begun = {rung.name for _, rung in ladder}
    back = [
        (number, rung)
        for number, rung in enumerate(run.runbook.return_to_service, 1)
        if fits(ctx, run, rung) and (not rung.after or begun & set(rung.after))
    ]
    return ladder, back


def run_of(step: str) -> str:
    """The id of the run in a step's id."""
    return step.rsplit(".", 2)[0]


def step(ctx: Context, run: Run, incident: Incident, rung: Rung, id_: str = "") -> Step:
    """The step `id_` of the run at `rung`; by default the one that was begun last."""
    spec = ctx.actions[rung.do]
    given = _waits_of_site(ctx, params(run, rung)) if spec.drains else params(run, rung)
    timeout_s = rung.timeout_s or spec.timeout_s
    wait_s = given.get("wait_s", 0)
    if spec.drains and isinstance(wait_s, int | float):
        timeout_s = max(timeout_s, wait_s + AFTER_WAIT_S)
    if spec.returns and run.node:
        given.setdefault("owners", " ".join(drains.marks(ctx, run.node, run.incident)))
    return Step(
        id=id_ or last_step_id(run),
        run=run.id,
        incident=run.incident,
        node=run.node,
        action=rung.do,
        where=spec.where,
        params=given,
        timeout_s=timeout_s,
        disrupts=disrupts(ctx, rung, returning=bool(run.worked)),
        repeat=repeat(ctx, rung),
        why=f"{incident.cause} at {incident.scope} (rule {incident.rule})",
    )
