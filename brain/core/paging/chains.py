"""Who is paged for a severity: its escalation chain, or the digest in its place. Pure."""

from brain.core.context import Context
from brain.core.pack.spec import ONCALL, EscalationStep
from brain.core.state import Incident

DEFAULT = (EscalationStep(to=ONCALL),)  # of a severity for which the site configures none


def chain(ctx: Context, incident: Incident) -> tuple[EscalationStep, ...]:
    """The steps for the incident as urgent as it is now."""
    digest = ctx.compiled.settings.digests.get(incident.severity)
    if digest is not None:
        return (EscalationStep(to=digest.to),)
    return ctx.compiled.settings.escalation.get(incident.severity) or DEFAULT


def has_heard(ctx: Context, incident: Incident) -> bool:
    """Whether a group of the chain was paged for the incident; of one that was opened again, this time."""
    return any(step.to in incident.pages.notified for step in chain(ctx, incident))


def heard_before(ctx: Context, incident: Incident) -> bool:
    """Whether one was when it was open before, and has not heard yet that it is open again."""
    return any(step.to in incident.pages.before for step in chain(ctx, incident))


def recipients(ctx: Context, incident: Incident) -> list[str]:
    """The groups that `oncall` means now: those of the chain that were paged, else those that are paged at once."""
    steps = chain(ctx, incident)
    notified = [step.to for step in steps if step.to in incident.pages.notified]
    return notified or list(dict.fromkeys([steps[0].to, *(step.to for step in steps if step.after_s <= 0)]))
