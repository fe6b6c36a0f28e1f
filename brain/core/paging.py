"""Pages: sent, delivered or sent again, repeated until acknowledged, resolved. Law 10: a page is never lost."""

from typing import Literal

from brain.core.effects import SendPage
from brain.core.state import Incident, PendingPage
from brain.core.turn import Turn

ONCALL = "oncall"
RETRY_FIRST_S = 5.0  # after an undelivered page, doubled each time
RETRY_MOST_S = 300.0
What = Literal["open", "repeat", "update", "resolve"]


def page(turn: Turn, incident: Incident, what: What, text: str, to: str = ONCALL) -> None:
    """Tells a group of people; from the first page on, repeats it until somebody acknowledges.

    The first page to a group opens its alert, whatever it is about; a resolution goes to every group that was told.
    """
    pages = incident.pages
    if to not in pages.told:
        pages.told.append(to)
        what = "open"
    pages.sent += 1
    page_id = f"{incident.id}.p{pages.sent}"
    pages.waiting[page_id] = PendingPage(what=what, to=to, text=text)
    _send(turn, incident, page_id)
    turn.note(
        "page.sent",
        f"{what} to {to}: {text}",
        incident=incident.id,
        scope=incident.scope,
        data={"page": page_id},
    )
    turn.show(incident)
    if not pages.first_at and what != "resolve":
        pages.first_at = turn.now
        turn.set_timer(f"page:{incident.id}", turn.now + turn.book.settings.page_repeat_s[0])


def open_page(turn: Turn, incident: Incident, text: str) -> None:
    """The first page to the people on call, unless they have one already."""
    if ONCALL not in incident.pages.told:
        page(turn, incident, "open", text)


def repeat(turn: Turn, incident: Incident) -> None:
    """The repeat timer fired."""
    pages = incident.pages
    if pages.acked_by or pages.resolved or not pages.first_at:
        return
    waits = turn.book.settings.page_repeat_s
    waited = turn.now - pages.first_at
    page(turn, incident, "repeat", f"nobody has acknowledged for {waited / 60:.0f} minutes")
    later = [wait for wait in waits if wait > waited + 1]
    turn.set_timer(f"page:{incident.id}", pages.first_at + later[0] if later else turn.now + waits[-1])


def resolve(turn: Turn, incident: Incident, why: str) -> None:
    """Tells those who were told that it is over."""
    if incident.pages.first_at and not incident.pages.resolved:
        incident.pages.resolved = True
        # What has not reached anybody yet need not any more, but the resolution must come after what has.
        for group in list(incident.pages.told):
            page(turn, incident, "resolve", why, to=group)
    turn.cancel_timer(f"page:{incident.id}")


def acknowledge(turn: Turn, incident: Incident, who: str) -> None:
    """A person has seen it: no more repeats."""
    if not incident.pages.acked_by:
        incident.pages.acked_by = who
        turn.cancel_timer(f"page:{incident.id}")
        turn.note("page.acked", f"acknowledged by {who}", incident=incident.id, scope=incident.scope)
        turn.show(incident)


def delivered(turn: Turn, incident: Incident, page_id: str, *, ok: bool, channel: str, why: str) -> None:
    """What the notifier says of one page; an undelivered one is tried again with growing pauses, for ever."""
    pending = incident.pages.waiting.get(page_id)
    if pending is None:
        return
    if ok:
        del incident.pages.waiting[page_id]
        turn.cancel_timer(f"redeliver:{page_id}")
        turn.note(
            "page.delivered",
            f"by {channel}",
            incident=incident.id,
            scope=incident.scope,
            data={"page": page_id},
        )
    else:
        pause = min(RETRY_MOST_S, RETRY_FIRST_S * 2 ** min(pending.tries, 10))
        pending.tries += 1
        turn.set_timer(f"redeliver:{page_id}", turn.now + pause)
        turn.note(
            "page.undelivered",
            f"{why}; again in {pause:.0f} s",
            incident=incident.id,
            scope=incident.scope,
            data={"page": page_id},
        )
    turn.show(incident)


def redeliver(turn: Turn, incident: Incident, page_id: str) -> None:
    """The retry timer of an undelivered page fired."""
    if page_id in incident.pages.waiting:
        _send(turn, incident, page_id)


def send_all_again(turn: Turn) -> None:
    """A new leader does not know which pages its predecessor delivered: those without an answer go out again."""
    for incident in turn.state.incidents.values():
        for page_id in incident.pages.waiting:
            _send(turn, incident, page_id)


def _send(turn: Turn, incident: Incident, page_id: str) -> None:
    pending = incident.pages.waiting[page_id]
    turn.effects.append(
        SendPage(id=page_id, incident=incident, what=pending.what, to=pending.to, text=pending.text)
    )
