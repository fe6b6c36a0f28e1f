"""What is begun for an incident that is open, or open again: the page and the run. Pure."""

from brain.core import incidents, recurrence
from brain.core.context import Context
from brain.core.healing import runs
from brain.core.incidents import IncidentTrigger
from brain.core.pack.spec import Paging
from brain.core.paging import escalation
from brain.core.state import Incident


def begin(ctx: Context, incident: Incident) -> None:
    """Pages for an open incident and starts its runbook."""
    if text := incident.because if incident.page is Paging.OPEN else recurrence.does_not_last(ctx, incident):
        escalation.open_page(ctx, incident, text)
    if incident.runbook in ctx.compiled.runbooks:
        incidents.transition(ctx, incident, IncidentTrigger.RUN_STARTED, f"runbook {incident.runbook}")
        runs.start(ctx, incident)
    elif incident.page is not Paging.NEVER:
        escalation.open_page(ctx, incident, f"no runbook for it: {incident.because}")
