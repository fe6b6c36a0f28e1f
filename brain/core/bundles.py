"""Storms: many new incidents for one group within a short time are one page that lists them. None is lost.

The first ones wake people one by one. From the `bundle_at_least`th on they are collected for `bundle_within_s`
and told together, with one alert that is repeated, acknowledged and resolved as one; each incident's page counts
as delivered when the bundle's was. What is more urgent than all that the group was just told goes at once.
"""

import base64
import hashlib

from brain.core import postbox
from brain.core.spec import Settings
from brain.core.state import Bundle, GroupPages, Incident, Listed, PendingPage
from brain.core.turn import Turn

MAX_WITH_EVIDENCE = 40  # incidents whose first line a bundle keeps; a page lists no more


def joins(turn: Turn, incident: Incident, to: str) -> Bundle | None:
    """The bundle that a new alert for this group goes into; None: it goes by itself."""
    settings, now = turn.book.settings, turn.now
    if settings.bundle_at_least <= 0:
        return None
    group = turn.state.groups.setdefault(to, GroupPages())
    group.first = [entry for entry in group.first if now - entry[0] <= settings.bundle_within_s]
    turn.set_timer(f"storm:{to}", now + settings.bundle_within_s)
    bundle = turn.state.bundles.get(group.bundle)
    known = [severity for _, severity in group.first]
    known += [bundle.severity] if bundle else []
    storm = bundle is not None or now < group.storm_until or len(group.first) + 1 >= settings.bundle_at_least
    if not storm or (known and incident.severity < min(known)):
        group.first.append((now, incident.severity))
        return None
    if bundle is None:
        digest = hashlib.blake2b(f"{turn.cause}|{to}|{incident.id}".encode(), digest_size=5).digest()
        bundle = Bundle(id=f"bun-{base64.b32encode(digest).decode().lower()}", to=to, opened_at=now)
        turn.state.bundles[bundle.id] = bundle
        group.bundle = bundle.id
        turn.set_timer(f"bundle:{bundle.id}", now + settings.bundle_within_s)
    return bundle


def add(turn: Turn, bundle: Bundle, incident: Incident, text: str) -> None:
    """A new alert: the bundle speaks for this incident to its group from here on."""
    evidence = incident.evidence[:1] if len(bundle.listed) < MAX_WITH_EVIDENCE else []
    incident.pages.bundled[bundle.to] = bundle.id
    bundle.severity = min(bundle.severity, incident.severity)
    bundle.listed[incident.id] = Listed(
        incident=incident.id,
        severity=incident.severity,
        cause=incident.cause,
        scope=incident.scope,
        node=incident.node,
        since=min([item.at for item in incident.evidence] + [incident.opened_at]),
        evidence=evidence[0].text if evidence else "",
        text=text,
    )
    _enqueue(turn, bundle, incident, "open", text)


def news(turn: Turn, bundle: Bundle, incident: Incident, text: str) -> None:
    """Something to tell of an incident that is in a bundle."""
    line = bundle.listed[incident.id]
    line.text, line.severity, line.scope = text, incident.severity, incident.scope
    if line.severity < bundle.severity:
        bundle.pages.severities += [bundle.severity] if bundle.pages.first_at else []
        bundle.severity = line.severity
    _enqueue(turn, bundle, incident, "update", text)
    if f"bundle:{bundle.id}" not in turn.state.timers:
        turn.set_timer(f"bundle:{bundle.id}", turn.now + turn.book.settings.bundle_within_s)


def acked(turn: Turn, bundle: Bundle, incident: Incident, who: str) -> None:
    """Somebody looks at this one."""
    line = bundle.listed[incident.id]
    bundle.seen += not (line.acked or line.over)
    line.acked = True
    _agree(turn, bundle, f"acknowledged by {who}", who)


def over(turn: Turn, bundle: Bundle, incident: Incident, why: str) -> None:
    """This one is over."""
    line = bundle.listed[incident.id]
    bundle.seen += not (line.acked or line.over)
    bundle.over += not line.over
    line.over, line.text = True, why
    _agree(turn, bundle, why, "")


def collected(turn: Turn, bundle: Bundle) -> None:
    """The bundle's timer fired: what gathered goes out."""
    settings, pages = turn.book.settings, bundle.pages
    queued, bundle.queued = bundle.queued, []
    if pages.first_at:
        if not pages.resolved:
            told = list(dict.fromkeys(page.rpartition(".p")[0] for page in queued))
            newest = bundle.listed[told[-1]]
            more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
            text = f"{newest.cause.replace('_', ' ')} on {newest.scope}: {newest.text}{more}"
            postbox.post(turn, bundle, "update", bundle.to, text, queued)
        return
    pages.first_at = turn.now
    pages.told.append(bundle.to)
    _storm_goes_on(turn, bundle, settings)
    count = len(bundle.listed)
    text = f"{count} more incident{'s' * (count > 1)} within {settings.bundle_within_s:.0f} s"
    postbox.post(turn, bundle, "open", bundle.to, text, queued)
    turn.set_timer(f"page:{bundle.id}", turn.now + settings.page_repeat_s[0])
    who = next((line.incident for line in bundle.listed.values() if line.acked), "")
    incident = turn.state.incidents.get(who)
    _agree(turn, bundle, "all of them are over or acknowledged", incident.pages.acked_by if incident else "")


def calm(turn: Turn, to: str) -> None:
    """The storm's timer fired: this group was not woken for a while."""
    group = turn.state.groups.get(to)
    if group is not None and group.bundle:
        turn.set_timer(f"storm:{to}", turn.now + turn.book.settings.bundle_within_s)
    else:
        turn.state.groups.pop(to, None)


def _storm_goes_on(turn: Turn, bundle: Bundle, settings: Settings) -> None:
    group = turn.state.groups.setdefault(bundle.to, GroupPages())
    group.bundle = ""
    group.storm_until = turn.now + settings.bundle_within_s
    group.first.append((turn.now, bundle.severity))
    turn.set_timer(f"storm:{bundle.to}", group.storm_until)


def _enqueue(turn: Turn, bundle: Bundle, incident: Incident, what: postbox.What, text: str) -> None:
    page_id = postbox.number(incident)
    incident.pages.waiting[page_id] = PendingPage(what=what, to=bundle.to, text=text, bundle=bundle.id)
    bundle.queued.append(page_id)
    postbox.tell(
        turn, incident, "page.sent", f"{what} to {bundle.to}, with others ({bundle.id}): {text}", page_id
    )


def _agree(turn: Turn, bundle: Bundle, why: str, who: str) -> None:
    """The bundle's alert follows its incidents, once it was told."""
    pages, count = bundle.pages, len(bundle.listed)
    if not pages.first_at or pages.resolved:
        return
    if bundle.over == count:
        pages.resolved = True
        turn.cancel_timer(f"page:{bundle.id}")
        turn.cancel_timer(f"bundle:{bundle.id}")
        queued, bundle.queued = bundle.queued, []
        postbox.post(turn, bundle, "resolve", bundle.to, f"all {count} are over; the last: {why}", queued)
    elif not pages.acked_by and bundle.seen == count:
        pages.acked_by = who or "people"
        turn.cancel_timer(f"page:{bundle.id}")
        postbox.post(turn, bundle, "ack", bundle.to, why)
