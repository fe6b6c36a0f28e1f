"""Why an incident is over, or is not: the sentences that its resolution, its note and its page tell people."""

from agent.contract.counted import span
from brain.core.context import Context
from brain.core.healing import validation
from brain.core.operators import requests
from brain.core.people import do
from brain.core.state import Incident, Run


def cleared(incident: Incident) -> str:
    """Why no rule matches any more. One text, however long it was: people are told once."""
    if incident.unproven:  # its facts have become too old to count, and silence is no fact
        return "nothing reports it any more, and nothing has said that it is over"
    return "its symptoms are gone"


def stayed_clear(ctx: Context, incident: Incident, run: Run | None) -> str:
    """Why an incident that has recovered is over. `run`: its last."""
    for_s = ctx.now - incident.clear_since
    left_out = validation.left_out(run) if run is not None else ""
    if incident.vouched_by:
        who = do(incident.vouched_by, "says")
        return f"{who} that {incident.node} is healthy, and for {for_s:.0f} s it has reported nothing else{left_out}"
    if run is not None and run.requested_by and not requests.found(run):
        return f"{run.why}{left_out}"
    if not incident.symptoms:  # of a request, or of a node that was left drained
        return f"{incident.clear_why}{left_out}"
    if incident.unproven:
        newest = max((fact.at for fact in incident.evidence), default=incident.opened_at)
        silent = span(max(0.0, ctx.now - newest))
        return f"nothing has reported it for {silent}, and nothing has said that it is over{left_out}"
    return f"its symptoms have been gone for {for_s:.0f} s{left_out}"


def stays_out(nodes: list[str]) -> str:
    """Who must say what, so that drained nodes go back."""
    return f"{', '.join(nodes)} stays out of service: `gpuward return {nodes[0]}` gives it back"
