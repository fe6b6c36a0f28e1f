"""What a change of rules gains, loses and alters: two outcomes of one recording, compared. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from brain.cli.backtest.outcome import Backtest, BacktestOutcome, FoundDecision, FoundIncident, FoundPage

Found = TypeVar("Found", FoundIncident, FoundDecision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """One incident or decision that both rule sets find, and what differs: name -> (before, after)."""

    cause: str
    place: str
    at: str
    changes: dict[str, tuple[str, str]]


@dataclass(slots=True, kw_only=True)
class Difference:
    """`before`: the rules of --against; `after`: those of --rules."""

    gained: list[FoundIncident] = field(default_factory=list)
    lost: list[FoundIncident] = field(default_factory=list)
    altered: list[Alteration] = field(default_factory=list)
    decisions_gained: list[FoundDecision] = field(default_factory=list)
    decisions_lost: list[FoundDecision] = field(default_factory=list)
    decisions_altered: list[Alteration] = field(default_factory=list)
    # Name -> (before, after)
    totals: dict[str, tuple[int, int]] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """Returns a dict that JSON can hold."""
        found = asdict(self)
        return {"same": self.is_same(), **found}

    def is_same(self) -> bool:
        """Whether the two rule sets find and decide the same."""
        changed = (self.gained, self.lost, self.altered)
        decided = (self.decisions_gained, self.decisions_lost, self.decisions_altered)
        return not any((*changed, *decided)) and all(one == other for one, other in self.totals.values())


def between(before: BacktestOutcome, after: BacktestOutcome) -> Difference:
    """Compares them: first what is at the same place, then what has one cause and moved to another."""
    found = Difference()
    pairs, found.lost, found.gained = _paired(
        before.incidents, after.incidents, lambda one: (one.cause, one.place)
    )
    moved, found.lost, found.gained = _moved(found.lost, found.gained)
    pages = _by_subject(before.pages), _by_subject(after.pages)
    for old, new in sorted((*pairs, *moved), key=lambda pair: (pair[1].since, pair[1].cause, pair[1].place)):
        changes = dict(
            _changes(
                [("place", old.place, new.place), ("severity", old.severity, new.severity)],
                [("since", old.since, new.since), ("until", old.until, new.until)],
                [("nodes", str(old.nodes), str(new.nodes)), ("runbook", old.runbook, new.runbook)],
                [("pages", pages[0].get(old.id, ""), pages[1].get(new.id, ""))],
            )
        )
        if changes:
            found.altered.append(Alteration(cause=new.cause, place=new.place, at=new.since, changes=changes))
    runs, found.decisions_lost, found.decisions_gained = _paired(
        before.decisions, after.decisions, lambda one: (one.cause, one.place, one.runbook)
    )
    for was, is_ in runs:
        changes = dict(
            _changes(
                [("disrupts", was.disrupts, is_.disrupts), ("at", was.at, is_.at)],
                [("rungs", "; ".join(was.rungs), "; ".join(is_.rungs))],
            )
        )
        if changes:
            found.decisions_altered.append(
                Alteration(cause=is_.cause, place=is_.place, at=is_.at, changes=changes)
            )
    other = after.totals()
    found.totals = {name: (many, other[name]) for name, many in before.totals().items()}
    return found


def _changes(*groups: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, tuple[str, str]]]:
    return ((name, (old, new)) for group in groups for name, old, new in group if old != new)


def _paired(
    before: Sequence[Found], after: Sequence[Found], key: Callable[[Found], tuple[str, ...]]
) -> tuple[list[tuple[Found, Found]], list[Found], list[Found]]:
    """Pairs what has one key, in the order of time; returns the pairs, and what is left of both."""
    waiting: dict[tuple[str, ...], list[Found]] = {}
    for new in after:
        waiting.setdefault(key(new), []).append(new)
    pairs: list[tuple[Found, Found]] = []
    lost: list[Found] = []
    for old in before:
        if same := waiting.get(key(old)):
            pairs.append((old, same.pop(0)))
        else:
            lost.append(old)
    left = {id(new) for same in waiting.values() for new in same}
    return pairs, lost, [new for new in after if id(new) in left]


def _moved(
    lost: Sequence[FoundIncident], gained: Sequence[FoundIncident]
) -> tuple[list[tuple[FoundIncident, FoundIncident]], list[FoundIncident], list[FoundIncident]]:
    """Pairs incidents of one cause that have a node in common and overlap in time: the change has put them elsewhere."""
    pairs: list[tuple[FoundIncident, FoundIncident]] = []
    left = list(gained)
    rest: list[FoundIncident] = []
    for old in lost:
        new = next((one for one in left if one.cause == old.cause and _meet(old, one)), None)
        if new is None:
            rest.append(old)
        else:
            left.remove(new)
            pairs.append((old, new))
    return pairs, rest, left


def _meet(one: FoundIncident, other: FoundIncident) -> bool:
    if not set(one.affected) & set(other.affected):
        return False
    return (not one.until or other.since <= one.until) and (not other.until or one.since <= other.until)


def _by_subject(pages: Iterable[FoundPage]) -> dict[str, str]:
    told: dict[str, list[str]] = {}
    for page in pages:
        sent = ", ".join(f"{many} × {what}" for what, many in page.sent.items())
        told.setdefault(page.subject, []).append(f"{page.to}: {sent}")
    return {subject: "; ".join(sorted(texts)) for subject, texts in told.items()}


def markdown(found: Difference, before: Backtest, after: Backtest) -> Iterator[str]:
    """The lines of a page for a pull request."""
    yield "### Backtest: what the change of rules does"
    yield ""
    yield f"Before: `{_code(before.rules)}` ({before.version}). After: `{_code(after.rules)}` ({after.version})."
    yield f"{_read(after)}"
    yield ""
    if found.is_same():
        yield "**Nothing changes**: the same incidents, decisions, holds and pages."
        yield ""
    for head, incidents in (
        ("Incidents only after the change", found.gained),
        ("Incidents only before the change", found.lost),
    ):
        if incidents:
            rows = [
                (
                    one.severity,
                    one.cause,
                    one.place,
                    one.since,
                    one.until or "open",
                    one.runbook or "page only",
                )
                for one in incidents
            ]
            yield from _table(head, ("", "cause", "place", "since", "until", "runbook"), rows)
    if found.altered:
        yield from _altered("Incidents that change", found.altered)
    for head, decisions in (
        ("Decisions only after the change", found.decisions_gained),
        ("Decisions only before the change", found.decisions_lost),
    ):
        if decisions:
            runs = [(one.runbook, one.cause, one.place, one.at, one.disrupts) for one in decisions]
            yield from _table(head, ("runbook", "cause", "place", "at", "disrupts"), runs)
    if found.decisions_altered:
        yield from _altered("Decisions that change", found.decisions_altered)
    totals = [
        (name, str(old), str(new), f"{new - old:+d}" if new != old else "")
        for name, (old, new) in found.totals.items()
    ]
    yield from _table("Totals", ("", "before", "after", "change"), totals)


def _read(one: Backtest) -> str:
    counts = one.input
    span = f", {counts.since} to {counts.until}" if counts.since else ""
    what = "messages of a log" if counts.kind == "log" else f"lines in {counts.files} files"
    whole = "" if one.is_whole() else " **Not all of it could be read.**"
    return f"Recording: {counts.lines:,} {what}, {counts.nodes} nodes{span}.{whole}"


def _altered(head: str, rows: Sequence[Alteration]) -> Iterator[str]:
    cells = [
        (one.cause, one.place, one.at, name, was or "none", is_ or "none")
        for one in rows
        for name, (was, is_) in one.changes.items()
    ]
    yield from _table(head, ("cause", "place", "at", "what", "before", "after"), cells)


def _table(head: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"#### {head} ({len(rows)})" if head != "Totals" else f"#### {head}"
    yield ""
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"
    yield ""


def _cell(text: str) -> str:
    """What a log says is no markup: it can neither end the cell, nor link, nor name anybody."""
    text = " ".join(text.split())
    for sign in "\\`*_[]<>|@#!~":
        text = text.replace(sign, f"\\{sign}")
    return text


def _code(text: str) -> str:
    return " ".join(text.replace("`", "'").split())
