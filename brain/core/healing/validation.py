"""What the result of a step says about a node that was tested: its figures, and what was not tested.

`judged` is asked for each result that counts, before it is decided what follows. A figure far below those of the node's
peers makes a failure of it. What was not tested is noted, and `left_out` is the sentence for people when the node is back
in service.
"""

import json
from dataclasses import replace

from agent.contract import figures as contract
from agent.contract.commands import Outcome
from agent.contract.errors import ContractError
from agent.contract.messages import clip
from brain.core.context import Context
from brain.core.healing import figures
from brain.core.inputs import StepResult
from brain.core.pack.spec import Rung
from brain.core.state import Run

INVENTORY = "node.inventory"
MAX_UNTESTED = 20  # sentences that a run keeps


def judged(ctx: Context, run: Run, rung: Rung, given: StepResult) -> StepResult:
    """The result as it counts: FAILED where a figure is refused, with what was compared and not tested in its `why`."""
    parts = [given.why]
    compared = _compared(ctx, run, given) if ctx.actions[rung.do].measures else []
    refused = [one for one in compared if one.refused]
    if refused and given.outcome is Outcome.OK:
        given = replace(given, outcome=Outcome.FAILED)
        parts = [f"far worse than its peers: {', '.join(one.text for one in refused)}", given.why]
    untested = str(given.data.get("untested", ""))
    if given.outcome is Outcome.REFUSED and rung.on_refusal == "next" and ctx.actions[rung.do].tests:
        untested = f"{rung.name}: {given.why}"
    if untested:
        _not_tested(ctx, run, untested)
        if untested not in given.why:
            parts.append(f"not tested: {untested}")
    return replace(given, why=clip("; ".join(part for part in parts if part)))


def left_out(run: Run) -> str:
    """`; not tested: ...`, to be added to why the run succeeded; empty: everything was."""
    return clip(f"; not tested: {'; '.join(run.untested)}") if run.untested else ""


def _compared(ctx: Context, run: Run, given: StepResult) -> list[figures.Comparison]:
    text = given.data.get("figures")
    if not isinstance(text, str) or not run.node:
        return []
    try:
        measured = contract.decode(text)
    except ContractError as error:
        ctx.note("step.figures", str(error), incident=run.incident, run=run.id, scope=run.scope)
        return []
    alike = str(given.data.get("alike", ""))
    if alike and (other := _other_parts(ctx, run.node, alike)):
        text = f"{run.node} says that it is made of {clip(alike, 120)}, and told before: {other}. Its figures are not compared"
        ctx.note("step.figures", text, incident=run.incident, run=run.id, scope=run.scope)
        return []
    found = figures.take(ctx.state, run.node, alike, measured)
    if found:
        texts = "; ".join(one.text for one in found)
        ctx.note("step.figures", texts, incident=run.incident, run=run.id, scope=run.scope)
    return found


def _other_parts(ctx: Context, node: str, alike: str) -> str:
    """What the node's inventory said of its product or GPUs, if `alike` does not say so; empty: they agree, or nobody knows."""
    known = json.loads(ctx.state.peers.get(f"{INVENTORY} {node}", "{}"))
    told = (str(known.get(name, "")) for name in ("product", "gpu_models"))
    return "; ".join(text for text in told if text and text not in alike)


def _not_tested(ctx: Context, run: Run, text: str) -> None:
    if text not in run.untested and len(run.untested) < MAX_UNTESTED:
        run.untested.append(text)
    ctx.note("step.untested", text, incident=run.incident, run=run.id, scope=run.scope)
