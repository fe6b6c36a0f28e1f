"""Tickets: what needs hands has one beside the pages that call people (`settings.tickets`).

One incident has one ticket, in a storm too: it is an alert of the group of tickets, in a queue of its own, with the incident's
key. Only of a node that is loud the faults are collected (grouping.py): it could fill the list of tickets alone. What people are
told of the incident goes to the ticket as well; its repeats and its escalation do not, as nobody is called by a ticket.
"""

from brain.core.context import Context
from brain.core.state import Incident, IncidentState, RunState


def group(ctx: Context) -> str:
    """The channel group that keeps tickets; empty: the site has none."""
    tickets = ctx.compiled.settings.tickets
    return tickets.to if tickets is not None else ""


def has_one(ctx: Context, incident: Incident) -> bool:
    """Whether the incident has a ticket, or one is on its way."""
    return group(ctx) in incident.pages.notified


def is_wanted(ctx: Context, incident: Incident) -> bool:
    """Whether a ticket is to be opened now: people were told of it, it has none, and it needs hands."""
    tickets = ctx.compiled.settings.tickets
    if tickets is None or not incident.pages.first_at or incident.pages.resolved or has_one(ctx, incident):
        return False
    if incident.state is IncidentState.RECOVERED:
        return False
    return incident.severity in tickets.severities or (tickets.gave_up and _is_left_to_people(ctx, incident))


def _is_left_to_people(ctx: Context, incident: Incident) -> bool:
    """Whether its runbook has nothing left to try, or it has none. What is only planned, or waits for a word, is not."""
    if not incident.runs:
        return incident.runbook not in ctx.compiled.runbooks
    run = ctx.state.runs.get(incident.runs[-1])
    return run is not None and run.state is RunState.EXHAUSTED
