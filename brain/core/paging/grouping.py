"""Storms: many new incidents for one channel group within a short time become one alert group. None is lost.

The first incidents are paged one by one. From the `group_at_least`th on they are collected for `group_within_s` and
then paged together, as one alert that is repeated, acknowledged and resolved as one. An incident's page counts as
delivered when the alert group's page with it was. An incident more urgent than all the recent ones is paged at once.

What makes a storm is how many nodes open incidents, each counted once (decision 33). A node that alone opens as many has a
storm of its own, with an alert group of its own: others do not wait for it, and are not hidden by it. One that is loud for
an hour is told every half hour, in one page.

A ticket is for one incident, in a storm too; of a loud node only they are collected (tickets.py).

A digest is an alert group that collects until the site's hours, and is not repeated. What is over by then is listed as
over. Later news of it, and its resolution, wait for the hours too.
"""

import math
from dataclasses import replace

from brain.core import ids, share
from brain.core.context import Context
from brain.core.pack.spec import Digest, Priority
from brain.core.paging import alerts, hours, queue, tickets
from brain.core.paging.subjects import began_at
from brain.core.state import AlertGroup, ChannelGroup, GroupedAlert, Incident, PendingPage

MAX_WITH_EVIDENCE = 40  # incidents of an alert group with their first fact; a page lists no more
MAX_OF_NODE = 5  # of them of one node, unless the alert group is its own
LOUD_S = 1800.0  # how long what a loud node says is collected
MAX_OF_LOUD = 400  # incidents of one alert group of a loud node


def alert_group_for(ctx: Context, incident: Incident, to: str) -> AlertGroup | None:
    """The alert group that a new alert for channel group `to` goes into, opened if needed; None: it goes by itself."""
    settings, now = ctx.compiled.settings, ctx.now
    digest = settings.digests.get(incident.severity)
    if digest is not None and digest.to == to and hours.leaves_at(settings, digest, now) > now:
        return _digest_for(ctx, digest, incident)
    if settings.group_at_least <= 0:
        return None
    group = ctx.state.groups.setdefault(to, ChannelGroup())
    group.first = [entry for entry in group.first if now - entry[0] <= settings.group_within_s]
    ctx.set_timer(f"storm:{to}", now + settings.group_within_s)
    if to == tickets.group(ctx):
        loud = incident.node and share.is_loud(ctx, incident.node)
        return _own(ctx, group, incident, to) if loud else None
    if incident.node and _opens_many(ctx, group, incident, to):
        return _own(ctx, group, incident, to)
    source = incident.node or incident.scope
    collecting = ctx.state.alert_groups.get(group.alert_group)
    recent = [severity for _, severity, _ in group.first]
    recent += [collecting.severity] if collecting else []
    sources = dict.fromkeys([*(source for _, _, source in group.first), source])
    storm = collecting is not None or now < group.storm_until or len(sources) >= settings.group_at_least
    if not storm or (recent and incident.severity < min(recent)):
        group.first.append((now, incident.severity, source))
        return None
    group.collected[source] = group.collected.get(source, 0) + 1
    return collecting or _open(ctx, group, incident, to)


def hurry(ctx: Context, incident: Incident, to: str) -> None:
    """News that concerns more than its node does not wait with what a loud node says."""
    name = f"group:{incident.pages.grouped.get(to, '')}"
    soon = ctx.now + ctx.compiled.settings.group_within_s
    if ctx.state.timers.get(name, 0) > soon:
        ctx.set_timer(name, soon)


def _opens_many(ctx: Context, group: ChannelGroup, incident: Incident, to: str) -> bool:
    """Whether the incident's node alone makes a storm, or has had so many faults lately that it is told now and then."""
    settings, node = ctx.compiled.settings, incident.node
    own = [known for known in _groups_of(ctx, node, to) if not known.pages.first_at]
    late = [
        known
        for known in _groups_of(ctx, node, to)
        if ctx.now < known.pages.first_at + settings.group_within_s
    ]
    count = 1 + sum(source == node for _, _, source in group.first) + group.collected.get(node, 0)
    return bool(own or late) or count >= max(2, settings.group_at_least) or share.is_loud(ctx, node)


def _groups_of(ctx: Context, node: str, to: str) -> list[AlertGroup]:
    return [known for known in ctx.state.alert_groups.values() if known.node == node and known.to == to]


def _own(ctx: Context, group: ChannelGroup, incident: Incident, to: str) -> AlertGroup | None:
    """The alert group of the incident's node, opened if needed; None where the incident is more urgent than all its others."""
    node, loud = incident.node, share.is_loud(ctx, incident.node)
    groups = _groups_of(ctx, node, to)
    recent = [severity for _, severity, source in group.first if source == node]
    recent += [known.severity for known in groups]
    if loud:
        others = ctx.index.open_at.get(node, {}).values()
        recent += [one.severity for one in others if one is not incident and to in one.pages.notified]
    if recent and incident.severity < min(recent):
        group.first.append((ctx.now, incident.severity, node))
        return None
    for known in groups:
        unseen = not (known.pages.acked_by or known.pages.resolved) and len(known.listed) < MAX_OF_LOUD
        if not known.pages.first_at or (loud and unseen):
            return known
    id_ = ids.hashed(ids.ALERT_GROUP, ctx.cause, to, incident.id)
    made = ctx.state.alert_groups[id_] = AlertGroup(id=id_, to=to, opened_at=ctx.now, node=node)
    ctx.set_timer(f"group:{id_}", _due(ctx, made))
    return made


def _digest_for(ctx: Context, digest: Digest, incident: Incident) -> AlertGroup:
    """The digest of the incident's severity that still collects, opened if needed."""
    for known in ctx.state.alert_groups.values():
        if known.digest == incident.severity and known.to == digest.to and not known.pages.first_at:
            return known
    id_ = ids.hashed(ids.ALERT_GROUP, ctx.cause, digest.to, incident.id)
    made = AlertGroup(id=id_, to=digest.to, opened_at=ctx.now, digest=incident.severity)
    ctx.state.alert_groups[id_] = made
    ctx.set_timer(f"group:{id_}", _due(ctx, made))
    return made


def _due(ctx: Context, alert_group: AlertGroup) -> float:
    """When what is collected from now on is sent."""
    settings = ctx.compiled.settings
    digest = settings.digests.get(Priority(alert_group.digest)) if alert_group.digest else None
    if alert_group.node and share.is_loud(ctx, alert_group.node):
        return ctx.now + LOUD_S
    return hours.leaves_at(settings, digest, ctx.now) if digest else ctx.now + settings.group_within_s


def _open(ctx: Context, group: ChannelGroup, incident: Incident, to: str) -> AlertGroup:
    id_ = ids.hashed(ids.ALERT_GROUP, ctx.cause, to, incident.id)
    alert_group = ctx.state.alert_groups[id_] = AlertGroup(id=id_, to=to, opened_at=ctx.now)
    group.alert_group = id_
    ctx.set_timer(f"group:{id_}", ctx.now + ctx.compiled.settings.group_within_s)
    return alert_group


def add(ctx: Context, alert_group: AlertGroup, incident: Incident, text: str) -> None:
    """Adds an incident: in this channel group, only the alert group's pages tell of it from now on."""
    shown = [line.node for line in alert_group.listed.values() if line.evidence]
    room = alert_group.node or not incident.node or shown.count(incident.node) < MAX_OF_NODE
    evidence = incident.evidence[:1] if room and len(shown) < MAX_WITH_EVIDENCE else []
    incident.pages.grouped[alert_group.to] = alert_group.id
    alert_group.severity = min(alert_group.severity, incident.severity)
    alert_group.affected |= incident.affected
    if (former := alert_group.listed.pop(incident.id, None)) is not None:  # it was over, and is open again
        alert_group.over -= former.over
        alert_group.seen -= former.over or former.acked
    alert_group.listed[incident.id] = GroupedAlert(
        incident=incident.id,
        severity=incident.severity,
        cause=incident.cause,
        scope=incident.scope,
        node=incident.node,
        since=began_at(incident),
        evidence=evidence[0].text if evidence else "",
        text=text,
    )
    _enqueue(ctx, alert_group, incident, "open", text)
    if f"group:{alert_group.id}" not in ctx.state.timers:  # it was paged before, and its node is loud
        ctx.set_timer(f"group:{alert_group.id}", _due(ctx, alert_group))


def update(ctx: Context, alert_group: AlertGroup, incident: Incident, text: str) -> None:
    """News of a listed incident, for the alert group's next page. A raised severity raises the alert group's."""
    alert_group.listed[incident.id] = replace(
        alert_group.listed[incident.id], text=text, severity=incident.severity, scope=incident.scope
    )
    alert_group.affected |= incident.affected
    if incident.severity < alert_group.severity:
        alert_group.pages.severities += [alert_group.severity] if alert_group.pages.first_at else []
        alert_group.severity = incident.severity
    _enqueue(ctx, alert_group, incident, "update", text)
    if f"group:{alert_group.id}" not in ctx.state.timers:
        ctx.set_timer(f"group:{alert_group.id}", _due(ctx, alert_group))


def acknowledged(ctx: Context, alert_group: AlertGroup, incident: Incident, who: str) -> None:
    """A listed incident was acknowledged by `who`."""
    line = alert_group.listed[incident.id]
    alert_group.seen += not (line.acked or line.over)
    alert_group.listed[incident.id] = replace(line, acked=True)
    _follow(ctx, alert_group, f"acknowledged by {who}", who)


def ended(ctx: Context, alert_group: AlertGroup, incident: Incident, why: str) -> None:
    """A listed incident is over, or its own page tells of it from now on."""
    line = alert_group.listed[incident.id]
    alert_group.seen += not (line.acked or line.over)
    alert_group.over += not line.over
    explained = bool(incident.explained_by)
    alert_group.listed[incident.id] = replace(line, over=True, explained=explained, text=why)
    _follow(ctx, alert_group, why, "")


def withdraw(ctx: Context, alert_group: AlertGroup, incident: Incident, why: str) -> None:
    """A listed incident is over before anybody was told, and another one, which people are told of, explains it."""
    line = alert_group.listed.pop(incident.id)
    alert_group.seen -= line.acked
    for page in [page for page in alert_group.queued if page in incident.pages.waiting]:
        alert_group.queued.remove(page)
        del incident.pages.waiting[page]
        queue.note(ctx, incident, "page.withdrawn", f"nobody was told yet: {why}", page)
    del incident.pages.grouped[alert_group.to]
    left = [ctx.state.incidents.get(one) for one in alert_group.listed]
    alert_group.affected = {node: True for one in left if one is not None for node in one.affected}
    alert_group.severity = min((one.severity for one in alert_group.listed.values()), default=Priority.P3)
    if not alert_group.listed:
        del ctx.state.alert_groups[alert_group.id]
        ctx.cancel_timer(f"group:{alert_group.id}")
        group = ctx.state.groups.get(alert_group.to)
        if group is not None and group.alert_group == alert_group.id:
            group.alert_group, group.collected = "", {}


def send_collected(ctx: Context, alert_group: AlertGroup) -> None:
    """The alert group's timer fired: pages what was collected, first as a new alert, later as an update of it."""
    queued, alert_group.queued = alert_group.queued, []
    if not alert_group.pages.first_at:
        _send_first(ctx, alert_group, queued)
    elif alert_group.over == len(alert_group.listed):  # a digest whose resolution waited for its hours
        alert_group.queued = queued
        _follow(ctx, alert_group, list(alert_group.listed.values())[-1].text, "")
    elif not alert_group.pages.resolved and not queued:  # a digest whose acknowledgement waited for its hours
        who = _acked_by(ctx, alert_group)
        _follow(ctx, alert_group, f"acknowledged by {who}", who)
    elif not alert_group.pages.resolved:
        changed = list(dict.fromkeys(page.rpartition(".p")[0] for page in queued))
        about = alerts.holder(ctx.state, changed[-1])
        newest = alert_group.listed[about.id if about else changed[-1]]
        more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        text = f"{newest.cause.replace('_', ' ')} on {newest.scope}: {newest.text}{more}"
        queue.post(ctx, alert_group, "update", alert_group.to, text, queued)
        who = _acked_by(ctx, alert_group)
        _follow(ctx, alert_group, f"acknowledged by {who}", who)


def _send_first(ctx: Context, alert_group: AlertGroup, queued: list[str]) -> None:
    settings, pages = ctx.compiled.settings, alert_group.pages
    pages.first_at = ctx.now
    pages.notified.append(alert_group.to)
    if not alert_group.digest and not alert_group.node:
        _prolong_storm(ctx, alert_group)
    count = len(alert_group.listed)
    text = f"{count} more incident{'s' * (count > 1)} within {settings.group_within_s:.0f} s"
    if alert_group.digest:
        hours_ago = (ctx.now - alert_group.opened_at) / 3600
        text = f"{count} incident{'s' * (count > 1)} in the last {max(1, math.ceil(hours_ago))} h"
    if alert_group.node and share.is_loud(ctx, alert_group.node):
        text = (
            f"{count} more incident{'s' * (count > 1)} of {alert_group.node}, which had {share.LOUD} faults within an hour: "
            f"what else it reports is told every {LOUD_S / 60:.0f} minutes"
        )
    queue.post(ctx, alert_group, "open", alert_group.to, text, queued)
    if not alert_group.digest:
        ctx.set_timer(f"page:{alert_group.id}", ctx.now + settings.page_repeat_s[0])
    _follow(ctx, alert_group, "all of them are over or acknowledged", _acked_by(ctx, alert_group))


def _acked_by(ctx: Context, alert_group: AlertGroup) -> str:
    """Who has acknowledged the first of its incidents that somebody has; `people`: that one is forgotten."""
    acked = next((line.incident for line in alert_group.listed.values() if line.acked), "")
    incident = ctx.state.incidents.get(acked)
    return (incident.pages.acked_by if incident else "") or "people"


def storm_over(ctx: Context, to: str) -> None:
    """The storm's timer fired: forgets the channel group's recent alerts, unless an alert group still collects."""
    group = ctx.state.groups.get(to)
    if group is not None and group.alert_group:
        ctx.set_timer(f"storm:{to}", ctx.now + ctx.compiled.settings.group_within_s)
    else:
        ctx.state.groups.pop(to, None)


def _prolong_storm(ctx: Context, alert_group: AlertGroup) -> None:
    """The alert group is complete. New incidents within `group_within_s` from now go into another one at once."""
    group = ctx.state.groups.setdefault(alert_group.to, ChannelGroup())
    group.alert_group = ""
    group.collected = {}
    group.storm_until = ctx.now + ctx.compiled.settings.group_within_s
    group.first.append((ctx.now, alert_group.severity, alert_group.id))
    ctx.set_timer(f"storm:{alert_group.to}", group.storm_until)


def _enqueue(ctx: Context, alert_group: AlertGroup, incident: Incident, what: queue.What, text: str) -> None:
    """Keeps an incident's page until the alert group's next page includes it."""
    page_id = queue.number(incident)
    incident.pages.waiting[page_id] = PendingPage(
        what=what, to=alert_group.to, text=text, alert_group=alert_group.id
    )
    alert_group.queued.append(page_id)
    queue.note(
        ctx,
        incident,
        "page.sent",
        f"{what} to {alert_group.to}, with others ({alert_group.id}): {text}",
        page_id,
        what=what,
        to=alert_group.to,
    )


def _follow(ctx: Context, alert_group: AlertGroup, why: str, who: str) -> None:
    """Once paged, the alert is resolved when all its incidents are over, acknowledged when the rest are acknowledged."""
    pages, count = alert_group.pages, len(alert_group.listed)
    if not pages.first_at or pages.resolved:
        return
    over, taken = alert_group.over == count, not pages.acked_by and alert_group.seen == count
    if (over or taken) and (opens := _opens(ctx, alert_group)) > ctx.now:
        ctx.set_timer(f"group:{alert_group.id}", opens)
    elif over:
        pages.resolved = True
        ctx.cancel_timer(f"page:{alert_group.id}")
        ctx.cancel_timer(f"group:{alert_group.id}")
        queued, alert_group.queued = alert_group.queued, []
        queue.post(
            ctx, alert_group, "resolve", alert_group.to, f"{_all_over(alert_group)}; the last: {why}", queued
        )
    elif taken:
        pages.acked_by = who or "people"
        ctx.cancel_timer(f"page:{alert_group.id}")
        queue.post(ctx, alert_group, "ack", alert_group.to, why)


def _all_over(alert_group: AlertGroup) -> str:
    """How the incidents of an alert group ended: those that others explain are not well."""
    lines = alert_group.listed.values()
    explained = sum(line.explained for line in lines)
    if explained == len(lines):
        return f"others explain all {explained}"
    return f"all {len(lines)} are over" + (f", {explained} because others explain them" if explained else "")


def _opens(ctx: Context, alert_group: AlertGroup) -> float:
    """When a resolution or an acknowledgement may be sent: in the hours of a digest, else now."""
    settings = ctx.compiled.settings
    digest = settings.digests.get(Priority(alert_group.digest)) if alert_group.digest else None
    return hours.next_open(settings, digest.hours, ctx.now) if digest else ctx.now
