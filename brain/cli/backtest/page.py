"""What `gpuward backtest` prints."""

from collections.abc import Iterable, Iterator

from agent.shared.words import either, many, t
from brain.cli.backtest.outcome import (
    Backtest,
    FoundDecision,
    FoundHold,
    FoundIncident,
    FoundPage,
    Input,
    listed,
)
from brain.cli.terminal import hanging


def lines(found: Backtest, width: int) -> Iterator[str]:
    """The whole page."""
    for block in _blocks(found, width):
        yield from block
        yield ""
    yield from summary(found, width)


def _blocks(found: Backtest, width: int) -> Iterator[list[str]]:
    outcome = found.outcome
    if notes := list(_doubts(found.input, width)):
        yield notes
    for head, rows in (
        (t("Incidents"), [row for one in outcome.incidents for row in _incident(one, width)]),
        (
            t("Decisions: runs that would begin"),
            [row for one in outcome.decisions for row in _decision(one, width)],
        ),
        (t("Holds"), [*_holds(outcome.holds, width)]),
        (t("Pages"), [row for one in outcome.pages for row in _page(one, width)]),
    ):
        if rows:
            yield [head, *rows]


def _doubts(counts: Input, width: int) -> Iterator[str]:
    for name, why in sorted(counts.unreadable.items()):
        yield from hanging("", t("NOT READ: {name}: {why}", name=name, why=why), width, below="  ")
    for name, why in sorted(counts.blind.items()):
        yield from hanging("", t("NO ALL-CLEAR for {name}: {why}", name=name, why=why), width, below="  ")
    if counts.missing:
        yield from hanging(
            "",
            t("MISSING: {messages} of the log", messages=many(counts.missing, "message")),
            width,
            below="  ",
        )
    if counts.undated:
        undated = t(
            "The lines of {undated} have no date: each log was judged by itself, and a cause that several "
            "nodes share was not looked for among them (`dmesg -T` or `journalctl -k` print dates).",
            undated=listed(counts.undated),
        )
        yield from hanging("", undated, width, below="  ")
    for remark in counts.remarks:
        yield from hanging("", t("Note: {remark}.", remark=remark), width, below="  ")


def _incident(one: FoundIncident, width: int) -> Iterator[str]:
    yield from hanging(
        "  ",
        t("{severity}  {cause}  at {place}", severity=one.severity, cause=one.cause, place=one.place),
        width,
        below="      ",
    )
    until = t("until {until}", until=one.until) if one.until else t("not over ({state})", state=one.state)
    nodes = f"; {many(one.nodes, 'node')}" if one.nodes > 1 else ""
    explains = t("; explains {others}", others=many(one.explains, "other")) if one.explains else ""
    yield from hanging(
        "      ",
        t(
            "from {since} {until}{nodes}{explains}",
            since=one.since,
            until=until,
            nodes=nodes,
            explains=explains,
        ),
        width,
    )
    yield from hanging("      ", either(one.because, one.because_zh), width)


def _decision(one: FoundDecision, width: int) -> Iterator[str]:
    text = t(
        "{runbook}  at {place} for {cause}, {at}: disrupts {disrupts}; {state}",
        runbook=one.runbook,
        place=one.place,
        cause=one.cause,
        at=one.at,
        disrupts=one.disrupts,
        state=one.state,
    )
    yield from hanging("  ", text, width, below="      ")
    for rung in one.rungs:
        yield from hanging("      ", rung, width, below="         ")


def _holds(holds: Iterable[FoundHold], width: int) -> Iterator[str]:
    """What one gate says of several is told once."""
    alike: dict[tuple[str, str, str], list[FoundHold]] = {}
    for one in holds:
        alike.setdefault((one.answer, one.gate, one.why), []).append(one)
    for (answer, gate, why), ones in alike.items():
        head = f"{answer}{(t(' by {gate}', gate=gate) if gate else '')}: {why}:"
        where = listed(
            t("{cause} at {place}, {at}", cause=one.cause, place=one.place, at=one.at) for one in ones
        )
        yield from hanging("  ", f"{head} {where}", width, below="      ")


def _page(one: FoundPage, width: int) -> Iterator[str]:
    sent = ", ".join(f"{times} × {what}" for what, times in one.sent.items())
    text = t(
        "{severity}  {cause} at {place}, from {since}, to {to}: {sent}",
        severity=one.severity,
        cause=one.cause,
        place=one.place,
        since=one.since,
        to=one.to,
        sent=sent,
    )
    yield from hanging("  ", text, width, below="      ")


def summary(found: Backtest, width: int) -> Iterator[str]:
    """The last lines: what was read, and what came of it."""
    counts, totals = found.input, found.outcome.totals()
    span = t(", {since} to {until}", since=counts.since, until=counts.until) if counts.since else ""
    if counts.kind == "log":
        events = t(
            "{meaningful} of them events of {nodes}",
            meaningful=counts.meaningful,
            nodes=many(counts.nodes, "node"),
        )
        read = t(
            "{messages} of a log, {events}{span}",
            messages=many(counts.lines, "message"),
            events=events,
            span=span,
        )
        unread = t("; {unread} could not be read", unread=counts.unread) if counts.unread else ""
    else:
        facts = t(", and {facts} beside them", facts=many(counts.facts, "fact")) if counts.facts else ""
        read = t(
            "{files} of {nodes}: {lines} read, {meaningful} with a known meaning{facts}{span}",
            files=many(counts.files, "file"),
            nodes=many(counts.nodes, "node"),
            lines=many(counts.lines, "line"),
            meaningful=counts.meaningful,
            facts=facts,
            span=span,
        )
        unread = t("; {lines} could not be read", lines=many(counts.unread, "line")) if counts.unread else ""
    yield from hanging(
        "",
        t(
            "{read}{unread}. Rules: {rules} ({version}).",
            read=read,
            unread=unread,
            rules=found.rules,
            version=found.version,
        ),
        width,
    )
    several = [
        many(totals["incidents"], "incident") + _severities(totals),
        many(totals["decisions"], "decision")
        + (t(", {disruptive} disruptive", disruptive=totals["disruptive"]) if totals["disruptive"] else ""),
        many(totals["holds"], "hold"),
        many(totals["pages"], "page"),
    ]
    quiet = []
    if totals["explained"]:
        quiet.append(t("{explained} explained by another", explained=totals["explained"]))
    if totals["quiet"]:
        quiet.append(t("{quiet} over before anybody was told", quiet=totals["quiet"]))
    beside = f" ({', '.join(quiet)})" if quiet else ""
    yield from hanging("", f"{'; '.join(several)}{beside}.", width)


def _severities(totals: dict[str, int]) -> str:
    known: Iterable[str] = (f"{totals[one]} {one}" for one in ("P0", "P1", "P2", "P3") if totals[one])
    shown = ", ".join(known)
    return f" ({shown})" if shown else ""
