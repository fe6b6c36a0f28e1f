"""Pages: sent, repeated, escalated, acknowledged, resolved. Law 10: a page is never lost.

Who is told is the severity's chain (`settings.escalation`): its first group at once, the next ones when nobody has
acknowledged by their deadline; all that were told are told again after 5, 10, 20, 40, 80 minutes. `oncall` as an
address means the chain. Each page goes through `postbox` (order, retries), new alerts in a storm through `bundles`.
"""

from brain.core import bundles, postbox
from brain.core.postbox import What
from brain.core.spec import EscalationStep, Priority
from brain.core.state import Bundle, Incident
from brain.core.turn import Turn

ONCALL = "oncall"
_CHAIN = (EscalationStep(to=ONCALL),)  # of a severity for which the site gives none
TIMERS = ("page", "redeliver", "escalate", "bundle", "storm")


def page(turn: Turn, incident: Incident, what: What, text: str, to: str = ONCALL) -> None:
    """Tells a group of people; from the first page on, repeats it until somebody acknowledges.

    The first page to a group opens its alert, whatever it is about; a resolution goes to every group that was told.
    """
    for group in _people(turn, incident) if to == ONCALL else [to]:
        _tell(turn, incident, what, text, group)
    if not incident.pages.first_at:
        incident.pages.first_at = turn.now
        turn.set_timer(f"page:{incident.id}", turn.now + turn.book.settings.page_repeat_s[0])
        _plan(turn, incident)


def open_page(turn: Turn, incident: Incident, text: str) -> None:
    """The first page to the people on call, unless they have one already."""
    if not any(step.to in incident.pages.told for step in _chain(turn, incident)):
        page(turn, incident, "open", text)


def raised(turn: Turn, incident: Incident, before: str) -> None:
    """The incident is more urgent than it was told: those who know hear of it, and a faster chain may be overdue."""
    pages = incident.pages
    if not pages.first_at or pages.resolved:
        return
    pages.severities.append(before)
    for group in list(pages.told):
        _tell(turn, incident, "update", f"raised from {before} to {incident.severity}", group)
    _escalate(turn, incident)


def resolve(turn: Turn, incident: Incident, why: str) -> None:
    """Tells those who were told that it is over."""
    if incident.pages.first_at and not incident.pages.resolved:
        incident.pages.resolved = True
        for group in list(incident.pages.told):
            _tell(turn, incident, "resolve", why, group)
    _quiet(turn, incident)


def acknowledge(turn: Turn, incident: Incident, who: str) -> None:
    """A person has seen it: no more repeats, nobody else is woken; all that were told hear who it is."""
    pages = incident.pages
    if pages.acked_by:
        return
    pages.acked_by = who
    _quiet(turn, incident)
    postbox.tell(turn, incident, "page.acked", f"acknowledged by {who}")
    for group in list(pages.told):
        bundle = turn.state.bundles.get(pages.bundled.get(group, ""))
        if bundle is not None:
            bundles.acked(turn, bundle, incident, who)
        else:
            postbox.post(turn, incident, "ack", group, f"acknowledged by {who}")


def acknowledge_bundle(turn: Turn, bundle: Bundle, who: str) -> None:
    """A person has seen all that a bundle lists."""
    for line in bundle.listed.values():
        incident = turn.state.incidents.get(line.incident)
        if incident is not None and not line.over:
            acknowledge(turn, incident, who)


def timer(turn: Turn, kind: str, what: str) -> None:
    """One of TIMERS fired."""
    if kind == "redeliver":
        postbox.redeliver(turn, what)
    elif kind == "storm":
        bundles.calm(turn, what)
    elif (bundle := turn.state.bundles.get(what)) is not None:
        if kind == "bundle":
            bundles.collected(turn, bundle)
        elif kind == "page":
            _repeat(turn, bundle)
    elif (incident := turn.state.incidents.get(what)) is not None:
        if kind == "escalate":
            _escalate(turn, incident)
        elif kind == "page":
            _repeat(turn, incident)


def delivered(turn: Turn, page_id: str, *, ok: bool, channel: str, why: str) -> list[Incident]:
    """What the notifier says of one page. Returns the incidents that it was about."""
    return postbox.answered(turn, page_id, ok=ok, channel=channel, why=why)


def send_all_again(turn: Turn) -> None:
    """A new leader does not know which pages its predecessor delivered."""
    postbox.send_all_again(turn)


def forget(turn: Turn, incident: Incident) -> None:
    """The incident is forgotten, and its timers with it."""
    _quiet(turn, incident)


def _quiet(turn: Turn, incident: Incident) -> None:
    turn.cancel_timer(f"page:{incident.id}")
    turn.cancel_timer(f"escalate:{incident.id}")


def _tell(turn: Turn, incident: Incident, what: What, text: str, to: str) -> None:
    pages = incident.pages
    if to not in pages.told:
        pages.told.append(to)
        bundle = bundles.joins(turn, incident, to)
        if bundle is not None:
            bundles.add(turn, bundle, incident, text)
        else:
            postbox.post(turn, incident, "open", to, text)
        return
    bundle = turn.state.bundles.get(pages.bundled.get(to, ""))
    if bundle is None:
        postbox.post(turn, incident, what, to, text)
    elif what == "resolve":
        bundles.over(turn, bundle, incident, text)
    elif what != "repeat":  # the bundle repeats for all
        bundles.news(turn, bundle, incident, text)


def _chain(turn: Turn, incident: Incident) -> tuple[EscalationStep, ...]:
    return turn.book.settings.escalation.get(Priority(incident.severity)) or _CHAIN


def _people(turn: Turn, incident: Incident) -> list[str]:
    """Whom `oncall` means now: the groups of the chain that were told, else those that are told at once."""
    chain = _chain(turn, incident)
    told = [step.to for step in chain if step.to in incident.pages.told]
    return told or list(dict.fromkeys([chain[0].to, *(step.to for step in chain if step.after_s <= 0)]))


def _repeat(turn: Turn, about: Incident | Bundle) -> None:
    """Nobody has acknowledged. A group whose last page is still on its way is not told again: that one is tried."""
    pages = about.pages
    if pages.acked_by or pages.resolved or not pages.first_at:
        return
    waits = turn.book.settings.page_repeat_s
    waited = turn.now - pages.first_at
    text = f"nobody has acknowledged for {waited / 60:.0f} minutes"
    if isinstance(about, Bundle):
        if not postbox.busy(about, about.to):
            postbox.post(turn, about, "repeat", about.to, text)
    else:
        for group in _people(turn, about):
            if not postbox.busy(about, group):
                _tell(turn, about, "repeat", text, group)
        _plan(turn, about)
    later = [wait for wait in waits if wait > waited + 1]
    turn.set_timer(f"page:{about.id}", pages.first_at + later[0] if later else turn.now + waits[-1])


def _escalate(turn: Turn, incident: Incident) -> None:
    """A deadline of the chain has come: whoever is due and was not told yet is told now."""
    pages = incident.pages
    if pages.acked_by or pages.resolved or not pages.first_at:
        return
    waited = turn.now - pages.first_at
    for step in _chain(turn, incident):
        if step.to not in pages.told and step.after_s <= waited + 0.001:
            told = ", ".join(pages.told)
            _tell(
                turn,
                incident,
                "open",
                f"{told} told {waited / 60:.0f} minutes ago, nobody has acknowledged",
                step.to,
            )
    _plan(turn, incident)


def _plan(turn: Turn, incident: Incident) -> None:
    """Sets the timer for the next group of the chain."""
    pages = incident.pages
    after = [step.after_s for step in _chain(turn, incident) if step.to not in pages.told]
    if after:
        turn.set_timer(f"escalate:{incident.id}", max(turn.now, pages.first_at + min(after)))
    else:
        turn.cancel_timer(f"escalate:{incident.id}")
