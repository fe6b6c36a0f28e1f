"""What is on its way to people: for each incident (or bundle) and group a queue, in order, until each page was taken.

One page of a queue is under way at a time, so that a resolution never overtakes the alert that it ends. A page
that nobody took is tried again with growing pauses, for ever; what came after it and says more goes in its place.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from brain.core.effects import SendPage
from brain.core.spec import Scalar
from brain.core.state import Bundle, Incident, IncidentState, PendingPage, State
from brain.core.turn import Turn

RETRY_FIRST_S = 5.0  # after an undelivered page, doubled each time
RETRY_MOST_S = 300.0
ANSWER_S = 300.0  # no word of a page that went out for so long: it goes out again
What = Literal["open", "repeat", "update", "ack", "resolve"]
ALERTS: tuple[What, ...] = ("open", "repeat", "update")
Subject = Incident | Bundle


def subject(turn: Turn, id_: str) -> Subject | None:
    """The incident or bundle of that id, if it is still known."""
    return turn.state.incidents.get(id_) or turn.state.bundles.get(id_)


def everything(state: State) -> list[Subject]:
    """All that people are told of."""
    return [*state.incidents.values(), *state.bundles.values()]


def post(turn: Turn, about: Subject, what: What, to: str, text: str, carries: Iterable[str] = ()) -> None:
    """A page for a group: it goes out now, or when those before it have."""
    page_id = number(about)
    about.pages.waiting[page_id] = PendingPage(what=what, to=to, text=text, carries=list(carries))
    _next(turn, about, to)
    tell(turn, about, "page.sent", f"{what} to {to}: {text}", page_id)


def number(about: Subject) -> str:
    """The next page's id."""
    about.pages.sent += 1
    return f"{about.id}.p{about.pages.sent}"


def tell(turn: Turn, about: Subject, kind: str, text: str, page_id: str = "") -> None:
    """A note about a page; people see the incident's newest form."""
    scope = about.scope if isinstance(about, Incident) else "cell"
    data: dict[str, Scalar | list[str]] = {"page": page_id} if page_id else {}
    turn.note(kind, text, incident=about.id, scope=scope, data=data)
    if isinstance(about, Incident):
        turn.show(about)


def answered(turn: Turn, page_id: str, *, ok: bool, channel: str, why: str) -> list[Incident]:
    """What the notifier says of one page. Returns the incidents that have one page less on its way."""
    about = subject(turn, page_id.rpartition(".p")[0])
    pending = about.pages.waiting.get(page_id) if about is not None else None
    if about is None or pending is None or pending.bundle:
        return []
    if not ok:
        _again(turn, about, page_id, why)
        return []
    del about.pages.waiting[page_id]
    turn.cancel_timer(f"redeliver:{page_id}")
    _took(about, pending, channel)
    tell(turn, about, "page.delivered", f"by {channel}", page_id)
    done = [about] if isinstance(about, Incident) else []
    for carried in pending.carries:
        incident = turn.state.incidents.get(carried.rpartition(".p")[0])
        if incident is not None and incident.pages.waiting.pop(carried, None) is not None:
            tell(
                turn,
                incident,
                "page.delivered",
                f"by {channel}, in one page with others ({about.id})",
                carried,
            )
            done.append(incident)
    _next(turn, about, pending.to)
    if isinstance(about, Bundle) and about.pages.resolved and not about.pages.waiting:
        turn.state.bundles.pop(about.id, None)
    return done


def redeliver(turn: Turn, page_id: str) -> None:
    """The timer of a page fired: its pause is over, or nobody said what became of it."""
    about = subject(turn, page_id.rpartition(".p")[0])
    if about is not None and page_id in about.pages.waiting:
        _send(turn, about, page_id)


def send_all_again(turn: Turn) -> None:
    """A new leader does not know which pages its predecessor delivered: what is under way goes out again."""
    for about in everything(turn.state):
        heads: dict[str, str] = {}
        for page_id, pending in about.pages.waiting.items():
            if not pending.bundle:
                heads.setdefault(pending.to, page_id)
        for page_id in heads.values():
            _send(turn, about, page_id)


def busy(about: Subject, to: str) -> bool:
    """Is a page to this group on its way?"""
    return any(pending.to == to for pending in about.pages.waiting.values())


def _took(about: Subject, pending: PendingPage, channel: str) -> None:
    if pending.what in ALERTS and channel:
        channels = about.pages.by.setdefault(pending.to, [])
        if channel not in channels:
            channels.append(channel)


def _queue(about: Subject, to: str) -> list[str]:
    waiting = about.pages.waiting
    return [page_id for page_id, pending in waiting.items() if pending.to == to and not pending.bundle]


def _next(turn: Turn, about: Subject, to: str) -> None:
    """Sends the first of a queue, unless it is under way. While it pauses, what says more takes its place."""
    queue = _queue(about, to)
    if not queue or about.pages.waiting[queue[0]].away:
        return
    due = turn.state.timers.get(f"redeliver:{queue[0]}")
    if due is None:
        _send(turn, about, queue[0])
        return
    heir = _heir(turn, about, queue)
    if heir != queue[0]:
        turn.set_timer(f"redeliver:{heir}", due)


def _again(turn: Turn, about: Subject, page_id: str, why: str) -> None:
    """Nobody took it: later again, or what is behind it in the queue and says more."""
    waiting = about.pages.waiting
    queue = _queue(about, waiting[page_id].to)
    waiting[page_id].away = False
    head = _heir(turn, about, queue[queue.index(page_id) :])
    pause = min(RETRY_MOST_S, RETRY_FIRST_S * 2 ** min(waiting[head].tries, 10))
    waiting[head].tries += 1
    turn.set_timer(f"redeliver:{head}", turn.now + pause)
    then = f" as {head}, which says more" if head != page_id else ""
    tell(turn, about, "page.undelivered", f"{why}; again in {pause:.0f} s{then}", page_id)


def _heir(turn: Turn, about: Subject, queue: list[str]) -> str:
    """What goes in place of a page that nobody took. An alert that nobody saw need only be resolved."""
    waiting, behind = about.pages.waiting, queue[1:]
    failed = waiting[queue[0]]
    heir = next((key for key in behind if waiting[key].what == "resolve"), "")
    if not heir and behind and (failed.what == "ack" or waiting[behind[0]].what in ALERTS):
        heir = behind[0]
    if not heir:
        return queue[0]
    if failed.what == "open" and waiting[heir].what in ALERTS:
        waiting[heir].what = "open"
    waiting[heir].tries = failed.tries
    for key in queue[: queue.index(heir)]:
        waiting[heir].carries = waiting[key].carries + waiting[heir].carries
        turn.cancel_timer(f"redeliver:{key}")
        del waiting[key]
    return heir


def _send(turn: Turn, about: Subject, page_id: str) -> None:
    pending = about.pages.waiting[page_id]
    pending.away = True
    turn.set_timer(f"redeliver:{page_id}", turn.now + ANSWER_S)
    turn.effects.append(_letter(about, page_id, pending.what, pending.to, pending.text))


def still_open(about: Subject, to: str) -> SendPage:
    """What a channel that must be told again and again says of an alert; it is no page of its own."""
    seen = f"acknowledged by {about.pages.acked_by}" if about.pages.acked_by else "nobody has acknowledged"
    return _letter(about, f"{about.id}.p{about.pages.sent}", "repeat", to, f"still open, {seen}")


def _letter(about: Subject, page_id: str, what: What, to: str, text: str) -> SendPage:
    listed = tuple(replace(line) for line in about.listed.values()) if isinstance(about, Bundle) else ()
    incident = about if isinstance(about, Incident) else stand_in(about)
    return SendPage(id=page_id, incident=incident, what=what, to=to, text=text, listed=listed)


def stand_in(bundle: Bundle) -> Incident:
    """A bundle in the shape of an incident, for its page: as urgent as the worst that it lists."""
    lines = list(bundle.listed.values())
    nodes = list(dict.fromkeys(line.node for line in lines if line.node))
    return Incident(
        id=bundle.id,
        cause="many_incidents",
        state=IncidentState.CLOSED if bundle.pages.resolved else IncidentState.OPEN,
        severity=bundle.severity,
        scope=f"node/{nodes[0]}" if len(nodes) == 1 and all(line.node for line in lines) else "cell",
        node=nodes[0] if len(nodes) == 1 and all(line.node for line in lines) else "",
        rule="",
        because=f"{len(lines)} incidents began within moments: they are told in one page",
        runbook="",
        pack="",
        opened_at=min((line.since for line in lines), default=bundle.opened_at),
        settle_until=bundle.opened_at,
        quiet_s=0,
        page="open",
        nodes=max(1, len(nodes)),
        pages=bundle.pages,
    )
