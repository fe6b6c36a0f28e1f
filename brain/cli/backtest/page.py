"""What `gpuward backtest` prints."""

from collections.abc import Iterable, Iterator

from agent.contract.counted import counted
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
        ("Incidents", [row for one in outcome.incidents for row in _incident(one, width)]),
        (
            "Decisions: runs that would begin",
            [row for one in outcome.decisions for row in _decision(one, width)],
        ),
        ("Holds", [*_holds(outcome.holds, width)]),
        ("Pages", [row for one in outcome.pages for row in _page(one, width)]),
    ):
        if rows:
            yield [head, *rows]


def _doubts(counts: Input, width: int) -> Iterator[str]:
    for name, why in sorted(counts.unreadable.items()):
        yield from hanging("", f"NOT READ: {name}: {why}", width, below="  ")
    for name, why in sorted(counts.blind.items()):
        yield from hanging("", f"NO ALL-CLEAR for {name}: {why}", width, below="  ")
    if counts.missing:
        yield from hanging("", f"MISSING: {counted(counts.missing, 'message')} of the log", width, below="  ")
    if counts.undated:
        undated = (
            f"The lines of {listed(counts.undated)} have no date: each log was judged by itself, and a cause that several "
            "nodes share was not looked for among them (`dmesg -T` or `journalctl -k` print dates)."
        )
        yield from hanging("", undated, width, below="  ")
    for remark in counts.remarks:
        yield from hanging("", f"Note: {remark}.", width, below="  ")


def _incident(one: FoundIncident, width: int) -> Iterator[str]:
    yield from hanging("  ", f"{one.severity}  {one.cause}  at {one.place}", width, below="      ")
    until = f"until {one.until}" if one.until else f"not over ({one.state})"
    nodes = f"; {counted(one.nodes, 'node')}" if one.nodes > 1 else ""
    explains = f"; explains {counted(one.explains, 'other')}" if one.explains else ""
    yield from hanging("      ", f"from {one.since} {until}{nodes}{explains}", width)
    yield from hanging("      ", one.because, width)


def _decision(one: FoundDecision, width: int) -> Iterator[str]:
    text = f"{one.runbook}  at {one.place} for {one.cause}, {one.at}: disrupts {one.disrupts}; {one.state}"
    yield from hanging("  ", text, width, below="      ")
    for rung in one.rungs:
        yield from hanging("      ", rung, width, below="         ")


def _holds(holds: Iterable[FoundHold], width: int) -> Iterator[str]:
    """What one gate says of several is told once."""
    alike: dict[tuple[str, str, str], list[FoundHold]] = {}
    for one in holds:
        alike.setdefault((one.answer, one.gate, one.why), []).append(one)
    for (answer, gate, why), ones in alike.items():
        head = f"{answer}{f' by {gate}' if gate else ''}: {why}:"
        where = listed(f"{one.cause} at {one.place}, {one.at}" for one in ones)
        yield from hanging("  ", f"{head} {where}", width, below="      ")


def _page(one: FoundPage, width: int) -> Iterator[str]:
    sent = ", ".join(f"{many} × {what}" for what, many in one.sent.items())
    text = f"{one.severity}  {one.cause} at {one.place}, from {one.since}, to {one.to}: {sent}"
    yield from hanging("  ", text, width, below="      ")


def summary(found: Backtest, width: int) -> Iterator[str]:
    """The last lines: what was read, and what came of it."""
    counts, totals = found.input, found.outcome.totals()
    span = f", {counts.since} to {counts.until}" if counts.since else ""
    if counts.kind == "log":
        events = f"{counts.meaningful} of them events of {counted(counts.nodes, 'node')}"
        read = f"{counted(counts.lines, 'message')} of a log, {events}{span}"
        unread = f"; {counts.unread} could not be read" if counts.unread else ""
    else:
        facts = f", and {counted(counts.facts, 'fact')} beside them" if counts.facts else ""
        read = (
            f"{counted(counts.files, 'file')} of {counted(counts.nodes, 'node')}: {counted(counts.lines, 'line')} read, "
            f"{counts.meaningful} with a known meaning{facts}{span}"
        )
        unread = f"; {counted(counts.unread, 'line')} could not be read" if counts.unread else ""
    yield from hanging("", f"{read}{unread}. Rules: {found.rules} ({found.version}).", width)
    several = [
        counted(totals["incidents"], "incident") + _severities(totals),
        counted(totals["decisions"], "decision")
        + (f", {totals['disruptive']} disruptive" if totals["disruptive"] else ""),
        counted(totals["holds"], "hold"),
        counted(totals["pages"], "page"),
    ]
    quiet = []
    if totals["explained"]:
        quiet.append(f"{totals['explained']} explained by another")
    if totals["quiet"]:
        quiet.append(f"{totals['quiet']} over before anybody was told")
    beside = f" ({', '.join(quiet)})" if quiet else ""
    yield from hanging("", f"{'; '.join(several)}{beside}.", width)


def _severities(totals: dict[str, int]) -> str:
    known: Iterable[str] = (f"{totals[one]} {one}" for one in ("P0", "P1", "P2", "P3") if totals[one])
    shown = ", ".join(known)
    return f" ({shown})" if shown else ""
