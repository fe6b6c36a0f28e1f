"""Delivery queues: one for each incident (or alert group) and channel group. A page stays until it is delivered.

One page of a queue is under way at a time, so that a resolution never overtakes the alert that it ends. A page that
no channel accepted is tried again with growing pauses, for ever; a later page that makes it pointless takes its place. So what
is over before any channel took its page is told by one page, its resolution, which says both (compose.py).
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Literal

from brain.core import stops
from brain.core.context import Context
from brain.core.effects import SendPage
from brain.core.inputs import Delivery
from brain.core.pack.spec import Scalar
from brain.core.paging import alerts
from brain.core.paging.subjects import common_to, of_alert_group, of_incident
from brain.core.state import AlertGroup, Incident, PendingPage, State

RETRY_FIRST_S = 5.0  # pause after a failed delivery; doubled with each further one
RETRY_MOST_S = 300.0
ANSWER_S = 300.0  # a page whose outcome the notifier has not reported for this long is sent again
What = Literal["open", "repeat", "update", "ack", "resolve"]
ALERTS: tuple[What, ...] = ("open", "repeat", "update")
Paged = Incident | AlertGroup


def paged(ctx: Context, id_: str) -> Paged | None:
    """The incident whose alert has this key, or the alert group of that id, if it is still known."""
    return alerts.holder(ctx.state, id_) or ctx.state.alert_groups.get(id_)


def everything(state: State) -> list[Paged]:
    """Every incident and alert group."""
    return [*state.incidents.values(), *state.alert_groups.values()]


def post(ctx: Context, about: Paged, what: What, to: str, text: str, carries: Iterable[str] = ()) -> None:
    """Adds a page to a queue: it is sent now, or after those before it. `carries`: ids of the pages that it includes."""
    page_id = number(about)
    about.pages.waiting[page_id] = PendingPage(
        what=what, to=to, text=text, carries=list(carries), time=about.pages.time
    )
    _next(ctx, about, to)
    note(ctx, about, "page.sent", f"{what} to {to}: {text}", page_id, what=what, to=to)


def number(about: Paged) -> str:
    """Takes the next page id of an alert: `<key>.p<n>`."""
    about.pages.sent += 1
    return f"{alerts.key(about)}.p{about.pages.sent}"


def note(
    ctx: Context,
    about: Paged,
    kind: str,
    text: str,
    page_id: str = "",
    *,
    what: str = "",
    to: str = "",
    channel: str = "",
    failed: str = "",
) -> None:
    """A note about a page. An incident is shown again. In the note's data: `what` the page is, to which channel group (`to`), the
    channels that took it, and what failed on the way.
    """
    scope = about.scope if isinstance(about, Incident) else "cell"
    given = {"page": page_id, "what": what, "to": to, "channel": channel, "failed": failed}
    data: dict[str, Scalar | list[str]] = {key: value for key, value in given.items() if value}
    ctx.note(kind, text, incident=about.id, scope=scope, data=data)
    if isinstance(about, Incident):
        ctx.show(about)


def answered(ctx: Context, given: Delivery) -> list[Incident]:
    """The outcome of a page: removes a delivered one, retries a failed one. Returns the incidents with a page less.

    An outcome of a page that is not waiting is ignored.
    """
    page_id, channel, why = given.page, given.channel, given.why
    about = paged(ctx, page_id.rpartition(".p")[0])
    pending = about.pages.waiting.get(page_id) if about is not None else None
    if about is None or pending is None or pending.alert_group:
        return []
    if not given.ok:
        _retry(ctx, about, page_id, why)
        return []
    del about.pages.waiting[page_id]
    ctx.cancel_timer(f"redeliver:{page_id}")
    _record_channel(about, pending, channel)
    former = pending.time < about.pages.time
    (about.pages.tickets_before if former else about.pages.tickets).update(given.tickets)
    text = f"by {', '.join(_with_tickets(given))}"
    note(ctx, about, "page.delivered", text, page_id, channel=channel, failed=why)
    done = [about] if isinstance(about, Incident) else []
    for carried in pending.carries:
        incident = alerts.holder(ctx.state, carried.rpartition(".p")[0])
        if incident is not None and incident.pages.waiting.pop(carried, None) is not None:
            note(
                ctx,
                incident,
                "page.delivered",
                f"by {channel}, in one page with others ({about.id})",
                carried,
                channel=channel,
                failed=why,
            )
            done.append(incident)
    _next(ctx, about, pending.to)
    if isinstance(about, AlertGroup) and about.pages.resolved and not about.pages.waiting:
        ctx.state.alert_groups.pop(about.id, None)
    return done


def redeliver(ctx: Context, page_id: str) -> None:
    """The timer of a page fired: sends it again, after its pause or because its outcome is not known."""
    about = paged(ctx, page_id.rpartition(".p")[0])
    if about is not None and page_id in about.pages.waiting:
        _send(ctx, about, page_id)


def resend_all(ctx: Context) -> None:
    """Sends the first page of every queue again: a new leader does not know which of them were delivered."""
    for about in everything(ctx.state):
        heads: dict[str, str] = {}
        for page_id, pending in about.pages.waiting.items():
            if not pending.alert_group:
                heads.setdefault(pending.to, page_id)
        for page_id in heads.values():
            _send(ctx, about, page_id)


def busy(about: Paged, to: str) -> bool:
    """Whether a page to this channel group, sent by itself, is not delivered yet."""
    return bool(_queue(about, to))


def _record_channel(about: Paged, pending: PendingPage, channel: str) -> None:
    """Remembers which channel accepted an alert: an acknowledgement or resolution must go there too."""
    if pending.what in ALERTS and channel:
        channels = about.pages.by.setdefault(pending.to, [])
        if channel not in channels:
            channels.append(channel)


def _with_tickets(given: Delivery) -> list[str]:
    """The channels that took a page, each with the ticket that it keeps."""
    names = given.channel.split(", ")
    return [f"{name} ({given.tickets[name]})" if name in given.tickets else name for name in names]


def _queue(about: Paged, to: str) -> list[str]:
    """The ids of the pages to a channel group that are sent by themselves, in order."""
    waiting = about.pages.waiting
    return [page_id for page_id, pending in waiting.items() if pending.to == to and not pending.alert_group]


def _next(ctx: Context, about: Paged, to: str) -> None:
    """Sends the first page of a queue, unless it is under way. While it pauses, its successor takes over the pause."""
    queue = _queue(about, to)
    if not queue or about.pages.waiting[queue[0]].away:
        return
    due = ctx.state.timers.get(f"redeliver:{queue[0]}")
    if due is None:
        _send(ctx, about, queue[0])
        return
    successor = _successor(ctx, about, queue)
    if successor != queue[0]:
        ctx.set_timer(f"redeliver:{successor}", due)


def _retry(ctx: Context, about: Paged, page_id: str, why: str) -> None:
    """No channel accepted the page: after a pause it, or its successor, is sent again."""
    waiting = about.pages.waiting
    queue = _queue(about, waiting[page_id].to)
    waiting[page_id].away = False
    head = _successor(ctx, about, queue[queue.index(page_id) :])
    pause = min(RETRY_MOST_S, RETRY_FIRST_S * 2 ** min(waiting[head].tries, 10))
    waiting[head].tries += 1
    ctx.set_timer(f"redeliver:{head}", ctx.now + pause)
    then = f" as {head}, which says more" if head != page_id else ""
    note(ctx, about, "page.undelivered", f"{why}; again in {pause:.0f} s{then}", page_id)


def _successor(ctx: Context, about: Paged, queue: list[str]) -> str:
    """The page that is sent in place of the first one, which failed; the first one itself if none makes it pointless.

    A resolution replaces all before it, an alert the page before it, and any page an acknowledgement. Replaced pages
    leave the queue; what they carried is carried by the successor. Whose end is told to nobody goes on: its tickets do, too.
    """
    waiting, behind = about.pages.waiting, queue[1:]
    failed = waiting[queue[0]]
    successor = next((page_id for page_id in behind if waiting[page_id].what == "resolve"), "")
    if not successor and behind and (failed.what == "ack" or waiting[behind[0]].what in ALERTS):
        successor = behind[0]
    if not successor:
        return queue[0]
    if failed.what == "open" and waiting[successor].what in ALERTS:
        waiting[successor].what = "open"  # no channel has the alert yet
    waiting[successor].tries = failed.tries
    for page_id in queue[: queue.index(successor)]:
        waiting[successor].carries = waiting[page_id].carries + waiting[successor].carries
        if waiting[page_id].what == "resolve":
            about.pages.tickets = about.pages.tickets_before | about.pages.tickets
        ctx.cancel_timer(f"redeliver:{page_id}")
        del waiting[page_id]
    return successor


def _send(ctx: Context, about: Paged, page_id: str) -> None:
    pending = about.pages.waiting[page_id]
    again = pending.away or pending.tries > 0
    pending.away = True
    ctx.set_timer(f"redeliver:{page_id}", ctx.now + ANSWER_S)
    more = (stops.told_on(ctx, about), common_to(ctx, about)) if isinstance(about, Incident) else ()
    compose = partial(
        _page,
        ctx.state,
        about,
        page_id,
        pending.what,
        pending.to,
        pending.text,
        *more,
        again=again,
        time=pending.time,
    )
    if isinstance(about, Incident):
        ctx.page(compose)
    else:  # complete already: nothing follows at once that its page should tell
        ctx.effects.append(compose())


def still_open(state: State, about: Paged, to: str) -> SendPage:
    """An open alert, for a channel that must be refreshed. It is no page of its own, and no delivery is recorded."""
    seen = f"acknowledged by {about.pages.acked_by}" if about.pages.acked_by else "nobody has acknowledged"
    return _page(
        state, about, f"{alerts.key(about)}.p{about.pages.sent}", "repeat", to, f"still open, {seen}"
    )


def _page(
    state: State,
    about: Paged,
    page_id: str,
    what: What,
    to: str,
    text: str,
    *more: tuple[str, ...],
    again: bool = False,
    time: int = 0,
) -> SendPage:
    subject = (
        of_incident(about, *more) if isinstance(about, Incident) else of_alert_group(about, state.incidents)
    )
    if 0 < time < about.pages.time:  # the end of a former time
        subject = replace(subject, tickets=dict(about.pages.tickets_before), tickets_before={}, time=time)
    alerted = tuple(about.pages.by.get(to, ()))
    return SendPage(id=page_id, subject=subject, what=what, to=to, text=text, alerted=alerted, again=again)
