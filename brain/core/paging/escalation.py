"""Pages: sent, repeated, escalated, acknowledged, resolved. Law 10: a page is never lost.

The escalation chain of a severity (`settings.escalation`) names who is paged: its first channel group at once, each
further one when the incident is not acknowledged by that group's deadline. Without an acknowledgement the page is
repeated after 5, 10, 20, 40, 80 minutes (`settings.page_repeat_s`), if its severity is one of `settings.page_repeats`.
The address `oncall` means the chain, and so does a group that the site does not have. A severity with a digest
(`settings.digests`) has no chain: its pages wait for the site's hours and wake nobody. `queue.py` delivers pages in order and
retries them; `grouping.py` collects the alerts of a storm or of a digest.
"""

from brain.core.context import Context
from brain.core.inputs import Delivery
from brain.core.pack.spec import ONCALL, Priority
from brain.core.paging import again, alerts, chains, grouping, once, queue, quiet, rhythm, tickets
from brain.core.paging.queue import What
from brain.core.state import AlertGroup, Incident, IncidentState

MAX_SAID = 20
TIMERS = ("page", "redeliver", "escalate", "group", "storm", quiet.TIMER)  # kinds of timers for `timer`


def page(
    ctx: Context, incident: Incident, what: What, text: str, to: str = ONCALL, *, at_once: bool = False
) -> None:
    """Pages a channel group, or with `oncall` the escalation chain. The incident's first page starts its repeats.

    The first page to a group opens an alert there, whatever `what` is. An update that says what was said before is not
    sent again: until somebody acknowledges, the repeats see to it. What was acknowledged before its first page is told once,
    and calls nobody. Nobody is paged for an incident whose rule pages once for each value, when another incident was paged
    for this one's; nor, unless `at_once`, before its end for what lies within a maintenance window (quiet.py).
    """
    chain = to == ONCALL or _is_missing(ctx, to)
    if at_once:
        quiet.over(ctx, incident)
    elif quiet.waits(ctx, incident, ONCALL if chain else to, text):
        return
    if not once.is_new(ctx, incident):
        why = f"{incident.page_once} was paged for another incident: {text}"
        ctx.note("page.left_out", why, incident=incident.id, scope=incident.scope)
        return
    if what == "update" and _is_said(ctx, incident, to, text):
        return
    if chain and incident.pages.was is not None:
        _tell_whose(ctx, incident, text)
        return
    back = again.is_back(ctx, incident)
    first = not incident.pages.first_at or (chain and back)
    if back:
        text = again.words(ctx, incident, text)
    for group in _who_hears(ctx, incident) if chain else [to]:
        _notify(ctx, incident, what, text, group)
    if first:
        incident.pages.first_at = incident.pages.came_told_at = ctx.now
    open_ticket(ctx, incident, text)
    if first and incident.pages.acked_by:
        _tell_acknowledged(ctx, incident)
    elif first and again.is_back(ctx, incident):  # others than those on call were told
        again.wait(ctx, incident)
    elif first:
        ctx.set_timer(f"page:{alerts.key(incident)}", ctx.now + ctx.compiled.settings.page_repeat_s[0])
        _schedule_next(ctx, incident)


def open_ticket(ctx: Context, incident: Incident, text: str) -> None:
    """Opens a ticket for the incident, if it needs one now and has none."""
    if tickets.is_wanted(ctx, incident):
        _notify(ctx, incident, "open", text, tickets.group(ctx))


def _who_hears(ctx: Context, incident: Incident) -> list[str]:
    """The groups of the chain that hear of it now, and the one that keeps its ticket."""
    kept = [tickets.group(ctx)] if tickets.has_one(ctx, incident) else []
    return chains.recipients(ctx, incident) + kept


def _tell_whose(ctx: Context, incident: Incident, text: str) -> None:
    """The incident has the alert of another one, which it explains: whoever was called hears what it is, as news. What is more
    urgent than what they were told is raised.
    """
    pages = incident.pages
    if pages.was is not None and incident.severity < pages.was.severity:
        raised(ctx, incident, pages.was.severity)
        return
    if alerts.told_before(incident):
        pages.was = None
        return
    text = alerts.news(incident, text)
    for group in dict.fromkeys((*pages.notified, *chains.recipients(ctx, incident))):
        _notify(ctx, incident, "update", text, group)
    if not pages.acked_by:
        rhythm.is_told(ctx, incident)
        _schedule_next(ctx, incident)


def _is_missing(ctx: Context, to: str) -> bool:
    """Whether the site has no such channel group: those on call are told in its place, by the alert that they have."""
    groups = ctx.compiled.settings.groups
    return bool(groups) and to not in groups


def _is_said(ctx: Context, incident: Incident, to: str, text: str) -> bool:
    """Whether this news was told before; remembers it. What was told when it was open before is told when it lasts this time."""
    pages, news = incident.pages, f"{to}: {again.gist(text)}"
    if news in pages.said:
        return True
    if again.is_back(ctx, incident) and news in pages.said_before and not again.is_news(ctx, incident):
        pages.unsaid[to] = text
        again.wait(ctx, incident)
        return True
    pages.said = [*pages.said, news][-MAX_SAID:]
    return False


def answered(incident: Incident) -> None:
    """An operator has answered what the incident's pages asked for: the same question may be asked again."""
    incident.pages.said.clear()
    incident.pages.unsaid.clear()


def urgent(ctx: Context, incident: Incident, text: str) -> None:
    """News that concerns more than the incident: pages the chain of P1 at once, whatever the incident's own severity and wherever
    it lies.
    """
    chain = ctx.compiled.settings.escalation.get(Priority.P1) or chains.DEFAULT
    incident.page_once = ""
    page(ctx, incident, "update", text, to=chain[0].to, at_once=True)
    grouping.hurry(ctx, incident, chain[0].to)


def open_page(ctx: Context, incident: Incident, text: str) -> None:
    """Pages the escalation chain, unless a group of it has been paged for this incident, and knows that it is this one.

    Of one that was opened again, and for which it was called before, it hears as again.py says.
    """
    named_anew = incident.pages.was is not None
    if again.is_back(ctx, incident) and not named_anew and not again.is_news(ctx, incident):
        again.wait(ctx, incident)
    elif named_anew or not chains.has_heard(ctx, incident):
        page(ctx, incident, "open", text)
    else:
        open_ticket(ctx, incident, text)


def gave_up(ctx: Context, incident: Incident, why: str, what: str = "") -> None:
    """gpuward does nothing more: whoever was paged for the incident reads it, and if nobody was, the chain is paged.

    `what`: in place of saying that gpuward gave up.
    """
    text = f"{what or 'gpuward gave up'}: {why}"
    if chains.has_heard(ctx, incident) or again.is_back(ctx, incident):
        page(ctx, incident, "update", text)
    else:
        page(ctx, incident, "open", text)


def raised(ctx: Context, incident: Incident, before: Priority) -> None:
    """The incident's severity was raised: updates the groups that were paged, and goes by the new severity's chain.

    Whoever has acknowledged it has acknowledged something less urgent. So the chain is called anew, from its beginning; also
    where it was in a digest, of which nobody is woken.
    """
    pages, settings = incident.pages, ctx.compiled.settings
    incident.page_once = ""  # what was paged before was less urgent
    if pages.resolved:
        return
    acked_by, pages.acked_by = pages.acked_by, ""
    if not pages.first_at:
        look_again(ctx, incident)
        if again.is_back(ctx, incident):
            page(ctx, incident, "update", again.words(ctx, incident, f"it is {incident.severity} by now"))
        return
    pages.severities.append(before)
    text = f"raised from {before} to {incident.severity}"
    if acked_by:
        text += f": {acked_by} has acknowledged it as {before}, nobody as {incident.severity}"
    text = alerts.news(incident, text)
    anew = bool(acked_by) or (before in settings.digests and incident.severity not in settings.digests)
    if anew:
        pages.first_at = ctx.now
        ctx.set_timer(f"page:{alerts.key(incident)}", ctx.now + settings.page_repeat_s[0])
    chain = [step.to for step in chains.chain(ctx, incident)]
    for group in list(pages.notified):
        if anew and group in chain:
            _call_anew(ctx, incident, text, group)
        else:
            _notify(ctx, incident, "update", text, group)
    if anew and not any(group in pages.notified for group in chain):
        for group in chains.recipients(ctx, incident):
            _notify(ctx, incident, "open", text, group)
    _escalate(ctx, incident)


def look_again(ctx: Context, incident: Incident) -> None:
    """Something of the incident, of its window or of the rules has changed: where its first page waited for a window that does
    not hold all of it any more, it is sent. Nobody is called for what is over, if it stays so.
    """
    for to, text in list(incident.pages.later.items()):
        if not quiet.waits(ctx, incident, to, text) and incident.state is not IncidentState.RECOVERED:
            page(ctx, incident, "open", f"no maintenance window holds it any more: {text}", to=to)


def _call_anew(ctx: Context, incident: Incident, text: str, to: str) -> None:
    """Pages a group that was paged before, by the incident's own alert: an alert group was acknowledged, or wakes nobody."""
    alert_group = ctx.state.alert_groups.get(incident.pages.grouped.pop(to, ""))
    if alert_group is not None:
        grouping.ended(ctx, alert_group, incident, f"{text}: it has a page of its own now")
    queue.post(ctx, incident, "open", to, text)


def passed_on(ctx: Context, by: Incident, other: Incident) -> None:
    """`by` explains `other`: it has its alert from now on, unless it has one of its own. Whoever has acknowledged either has
    acknowledged this one.
    """
    if not alerts.passes(by, other):
        return
    _stop_timers(ctx, by)
    who = by.pages.acked_by
    alerts.pass_on(ctx, by, other)
    if who:
        acknowledge(ctx, by, who)


def resolve(ctx: Context, incident: Incident, why: str) -> None:
    """Resolves the incident's alert in every group that was paged. Where it waits to be told, and another incident explains
    it, it is not told at all.
    """
    pages = incident.pages
    if pages.first_at and not pages.resolved:
        pages.resolved = True
        why = alerts.news(incident, why)
        for group in list(pages.notified):
            alert_group = ctx.state.alert_groups.get(pages.grouped.get(group, ""))
            if incident.explained_by and alert_group is not None and not alert_group.pages.first_at:
                pages.notified.remove(group)
                grouping.withdraw(ctx, alert_group, incident, why)
            else:
                _notify(ctx, incident, "resolve", why, group)
    _stop_timers(ctx, incident)


def acknowledge(ctx: Context, incident: Incident, who: str, how: str = "") -> None:
    """`who` acknowledges the incident: repeats and escalation end, and the groups that were paged learn who it is.

    `how` follows the name in the note of it.
    """
    pages = incident.pages
    if pages.acked_by:
        return
    pages.acked_by = who
    _stop_timers(ctx, incident)
    queue.note(ctx, incident, "page.acked", f"acknowledged by {who}{how}")
    _tell_acknowledged(ctx, incident)


def _tell_acknowledged(ctx: Context, incident: Incident) -> None:
    """Tells the groups that were paged, this time, who has acknowledged the incident."""
    pages, who = incident.pages, incident.pages.acked_by
    for group in list(pages.notified):
        alert_group = ctx.state.alert_groups.get(pages.grouped.get(group, ""))
        if alert_group is not None:
            grouping.acknowledged(ctx, alert_group, incident, who)
        else:
            queue.post(ctx, incident, "ack", group, f"acknowledged by {who}")


def acknowledge_group(ctx: Context, alert_group: AlertGroup, who: str) -> None:
    """`who` acknowledges every incident of the alert group that is not over."""
    for line in alert_group.listed.values():
        incident = ctx.state.incidents.get(line.incident)
        if incident is not None and not line.over:
            acknowledge(ctx, incident, who)


def timer(ctx: Context, kind: str, what: str) -> None:
    """A timer of a kind in TIMERS fired. `what` is the page, channel group, alert group or alert that it is for."""
    alert_group = ctx.state.alert_groups.get(what)
    incident = alerts.holder(ctx.state, what)
    match kind:
        case "redeliver":
            queue.redeliver(ctx, what)
        case "storm":
            grouping.storm_over(ctx, what)
        case quiet.TIMER if what in ctx.state.incidents:
            look_again(ctx, ctx.state.incidents[what])
        case "group" if alert_group is not None:
            grouping.send_collected(ctx, alert_group)
        case "page" if (about := alert_group or incident) is not None:
            _repeat(ctx, about)
        case "escalate" if incident is not None:
            _escalate(ctx, incident)


def delivered(ctx: Context, given: Delivery) -> list[Incident]:
    """The notifier reports the outcome of a page. Returns the incidents that have one page fewer to deliver."""
    return queue.answered(ctx, given)


def resend_all(ctx: Context) -> None:
    """Sends every page under way again: a new leader does not know which of them were delivered."""
    queue.resend_all(ctx)


def forget(ctx: Context, incident: Incident) -> None:
    """Cancels the timers of an incident that is forgotten."""
    _stop_timers(ctx, incident)
    alerts.forget(ctx, incident)


def _stop_timers(ctx: Context, incident: Incident) -> None:
    quiet.over(ctx, incident)
    if incident.pages.passed_to:
        return  # they are another one's
    ctx.cancel_timer(f"page:{alerts.key(incident)}")
    ctx.cancel_timer(f"escalate:{alerts.key(incident)}")


def _notify(ctx: Context, incident: Incident, what: What, text: str, to: str) -> None:
    """Pages one channel group, by the incident's own queue or by the alert group that it belongs to there. Whoever was called
    when it was open before has its alert, which is open again.
    """
    pages = incident.pages
    if to not in pages.notified:
        pages.notified.append(to)
        if known := to in pages.before:
            pages.before.remove(to)
            text = again.words(ctx, incident, text)
        alert_group = grouping.alert_group_for(ctx, incident, to)
        if alert_group is not None:
            grouping.add(ctx, alert_group, incident, text)
        else:
            queue.post(ctx, incident, "update" if known else "open", to, text)
        return
    alert_group = ctx.state.alert_groups.get(pages.grouped.get(to, ""))
    if alert_group is None:
        queue.post(ctx, incident, what, to, text)
    elif what == "resolve":
        grouping.ended(ctx, alert_group, incident, text)
    elif what != "repeat":  # the alert group has repeats of its own
        grouping.update(ctx, alert_group, incident, text)


def _repeat(ctx: Context, about: Incident | AlertGroup) -> None:
    """Repeats a page that is not acknowledged; not to a group whose last page is still being delivered."""
    pages = about.pages
    if isinstance(about, Incident) and again.is_back(ctx, about):
        _it_lasts(ctx, about)
        return
    if pages.acked_by or pages.resolved or not pages.first_at:
        return
    waited = ctx.now - pages.first_at
    text = f"nobody has acknowledged for {waited / 60:.0f} minutes"
    settings = ctx.compiled.settings
    repeats = about.severity in settings.page_repeats and about.severity not in settings.digests
    if isinstance(about, AlertGroup):
        if repeats and about.to != tickets.group(ctx) and not queue.busy(about, about.to):
            queue.post(ctx, about, "repeat", about.to, text)
    else:
        # Nobody is called again for what is over, if it stays so.
        text = alerts.so_far(about, text)
        if repeats and about.state is not IncidentState.RECOVERED:
            for group in chains.recipients(ctx, about):
                if not queue.busy(about, group):
                    _notify(ctx, about, "repeat", text, group)
        _schedule_next(ctx, about)
    ctx.set_timer(f"page:{alerts.key(about)}", rhythm.next_at(ctx, about))


def _it_lasts(ctx: Context, incident: Incident) -> None:
    """Who was called for it before hears that it is back, and lasts; and what each group would have heard meanwhile."""
    unsaid, incident.pages.unsaid = incident.pages.unsaid, {}
    for to, because in {ONCALL: incident.because, **unsaid}.items():
        page(ctx, incident, "open", again.words(ctx, incident, f"it lasts this time: {because}"), to=to)


def _escalate(ctx: Context, incident: Incident) -> None:
    """Pages the groups of the chain whose deadline has passed and that were not paged yet."""
    pages = incident.pages
    if pages.acked_by or pages.resolved or not pages.first_at:
        return
    waited = ctx.now - pages.first_at
    for step in chains.chain(ctx, incident):
        if step.to not in pages.notified and step.after_s <= waited + 0.001:
            notified = ", ".join(pages.notified)
            text = f"{notified} told {waited / 60:.0f} minutes ago, nobody has acknowledged"
            _notify(ctx, incident, "open", text, step.to)
    _schedule_next(ctx, incident)


def _schedule_next(ctx: Context, incident: Incident) -> None:
    """Sets the timer for the next deadline of the chain; cancels it when every group was paged."""
    pages = incident.pages
    after = [step.after_s for step in chains.chain(ctx, incident) if step.to not in pages.notified]
    if after:
        ctx.set_timer(f"escalate:{alerts.key(incident)}", max(ctx.now, pages.first_at + min(after)))
    else:
        ctx.cancel_timer(f"escalate:{alerts.key(incident)}")
