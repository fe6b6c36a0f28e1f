"""An alert: what channels show as one, by one key, and the incident whose alert it is. It outlives the place (decision 69).

The key is the id of the incident with which it began. When another incident explains that one, its alert goes on as that one's:
with the channel groups that were called, what waits to be delivered, the acknowledgement, the repeats and the escalation.
"""

from dataclasses import replace

from brain.core.context import Context
from brain.core.pack.spec import Paging
from brain.core.state import AlertFace, AlertGroup, Incident, PageState, State

MAX_FACES = 20  # that are remembered of one alert


def key(about: Incident | AlertGroup) -> str:
    """By which channels know its alert."""
    return about.pages.key or about.id


def holder(state: State, id_: str) -> Incident | None:
    """The incident whose alert has this key now; of an incident that keeps its own, that one. None: it is forgotten."""
    return state.incidents.get(state.alerts.get(id_, id_))


def taken_by(state: State, about: Incident | AlertGroup) -> list[str]:
    """Who has acknowledged all of it that is not over; empty: some of it is left for somebody to take."""
    if isinstance(about, Incident):
        return [about.pages.acked_by] if about.pages.acked_by else []
    ids = [line.incident for line in about.listed.values() if not line.over]
    names = {state.incidents[one].pages.acked_by for one in ids if one in state.incidents}
    return [] if "" in names else sorted(names)


def passes(by: Incident, other: Incident) -> bool:
    """Whether the alert of an incident goes on as that of the one that explains it.

    Not where that one has an alert of its own, be it that the end of its former time is not delivered yet, or is never paged; nor
    what is told in one page with others.
    """
    pages = other.pages
    own = bool(pages.first_at) and not pages.resolved and not pages.grouped
    return own and not (by.pages.first_at or by.pages.waiting) and by.page is not Paging.NEVER


def pass_on(ctx: Context, by: Incident, other: Incident) -> None:
    """The alert of `other` is that of `by` from now on. What people are to hear of that is told when `by` is."""
    pages = other.pages
    face = AlertFace(
        cause=other.cause, scope=other.scope, node=other.node, nodes=other.nodes, severity=other.severity
    )
    other.pages = PageState(
        sent=pages.sent,
        first_at=pages.first_at,
        notified=list(pages.notified),
        by={group: list(channels) for group, channels in pages.by.items()},
        acked_by=pages.acked_by,
        resolved=True,
        severities=list(pages.severities),
        tickets=dict(pages.tickets),
        key=pages.key,
        passed_to=by.id,
    )
    pages.key = pages.key or other.id
    pages.was = pages.was or face
    less_urgent = [replace(face, severity=before) for before in dict.fromkeys(pages.severities)]
    pages.faces = list(dict.fromkeys([*pages.faces, *less_urgent, face]))[-MAX_FACES:]
    pages.severities = []
    forget(ctx, by)  # of one that was opened again
    by.pages = pages
    ctx.state.alerts[pages.key] = by.id
    text = f"the alert {pages.key} goes on as that of {by.cause} at {by.scope} ({by.id})"
    ctx.note("page.passed_on", text, incident=other.id, scope=other.scope, data={"to": by.id})
    ctx.show(by)


def news(incident: Incident, text: str) -> str:
    """The text with what whoever was called by the alert must hear first, if it is another incident's by now: then they know."""
    said = so_far(incident, text)
    incident.pages.was = None
    return said


def so_far(incident: Incident, text: str) -> str:
    """The same while it is not decided yet: they hear it again."""
    was = incident.pages.was
    if was is None or told_before(incident):
        return text
    more = incident.nodes - was.nodes
    grown = f" ({more} more node{'s' * (more > 1)})" if more > 0 else ""
    return f"it is {_named(incident.cause, incident.scope)}, which explains {_named(was.cause, was.scope)}{grown}: {text}"


def told_before(incident: Incident) -> bool:
    """Whether it is what people were told: another place had the alert for a while, and nobody heard of that."""
    was = incident.pages.was
    return was is not None and (was.cause, was.scope) == (incident.cause, incident.scope)


def _named(cause: str, scope: str) -> str:
    return f"{cause.replace('_', ' ')} on {scope}"


def forget(ctx: Context, incident: Incident) -> None:
    """An incident is forgotten, or has another alert: nobody has its alert any more, unless that was passed on."""
    if ctx.state.alerts.get(incident.pages.key) == incident.id:
        del ctx.state.alerts[incident.pages.key]
