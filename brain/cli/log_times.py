"""Logs of several nodes, read into facts on one clock. Does no I/O."""

from calendar import isleap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from agent.contract import kernel_text
from agent.contract.coverage import Coverage
from agent.contract.kernel_text import Clock
from agent.contract.lines import KernelReader
from agent.contract.lines.pcie import pci_drivers
from agent.contract.messages import UnsentEvent
from agent.contract.xid_repeats import XidRepeats, with_repeats
from brain.cli.log_nodes import NodeLog

YEAR_2001_S = datetime(2001, 1, 1, tzinfo=UTC).timestamp()
_LEAP_YEAR_S = 366 * 86_400.0  # the year 2000
_NEW_YEAR_S = 300 * 86_400.0  # a log whose times have no year goes back by more: a year has begun
_SET_BACK_S = 120.0  # by more no line comes late: the clock was set back, or has begun again with a boot
_FEBRUARY, _LEAP_DAY = 2, 29
_FIRST_OF_A_BOOT = "Linux version "  # init/main.c: start_kernel() prints the banner before all else


@dataclass(slots=True, kw_only=True)
class Log:
    """The events of one log, by the times of its lines."""

    # Time of its first record
    begin: float | None = None
    clock: Clock = Clock.NONE
    # Seconds from the first to the last record
    length_s: float = 0.0
    # Lines at which a boot begins
    boots: list[int] = field(default_factory=list)
    # (line, seconds since begin, event)
    unsent_events: list[tuple[int, float, UnsentEvent]] = field(default_factory=list)


def read(own: NodeLog, driver: str, coverage: Coverage) -> Log:
    """Reads a node's log; `coverage` learns of each line whether it could be read."""
    reader = KernelReader(driver=driver, kept=True, drivers=pci_drivers(own.lines))
    repeats = XidRepeats()
    log = Log()
    shift_s = 0.0
    for number, line in coverage.records(own.lines):
        if line.clock is not Clock.NONE:
            at = line.mono_s + shift_s
            if log.begin is None:
                log.begin, log.clock = at, line.clock
            back_s = log.begin + log.length_s - at
            if _without_year(line) and back_s > _NEW_YEAR_S:
                shift_s += _LEAP_YEAR_S
                at += _LEAP_YEAR_S
            elif back_s > _SET_BACK_S:
                shift_s += back_s
                at += back_s
            # Even in a concatenated log, time never runs backwards.
            log.length_s = max(log.length_s, at - log.begin)
        if line.facility == kernel_text.KERNEL:  # what a program says is not the kernel's word
            where = own.positions[number - 1] + 1
            if line.text.startswith(_FIRST_OF_A_BOOT):
                log.boots.append(where)
            for unsent in reader.read(line.text):
                log.unsent_events.append((where, log.length_s, _counted(unsent, repeats, log.length_s)))
    return log


def _counted(unsent: UnsentEvent, repeats: XidRepeats, at: float) -> UnsentEvent:
    """With how often an XID has come back at one place, as the agent counts it."""
    if unsent.kind != "gpu.xid":
        return unsent
    return replace(unsent, data=with_repeats(unsent.data, repeats.of(unsent.component, unsent.data, at)))


def _without_year(line: kernel_text.Line) -> bool:
    return line.clock is Clock.WALL and line.mono_s < YEAR_2001_S


def together(logs: Mapping[str, Log]) -> tuple[list[tuple[str, int, float, UnsentEvent]], float]:
    """Returns (node, line, time, event) of all logs, and the time at which the last one ends. Logs without wall clock times are
    assumed to begin together; one whose times have no year is of the year in which it comes closest to those that have.
    """
    wall = all(log.clock is Clock.WALL for log in logs.values())
    dated = [log.begin for log in logs.values() if log.begin is not None and log.begin >= YEAR_2001_S]
    begins = {node: dated_begin(log.begin or 0.0, dated) if wall else 0.0 for node, log in logs.items()}
    first = min(begins.values(), default=0.0)
    facts = []
    for node, log in logs.items():
        later = begins[node] - first
        facts += [(node, number, later + at, unsent) for number, at, unsent in log.unsent_events]
    end_s = max((begins[node] - first + log.length_s for node, log in logs.items()), default=0.0)
    return sorted(facts, key=lambda fact: fact[2]), end_s


def dated_begin(begin: float, dated: Sequence[float]) -> float:
    """A time of the year 2000 (kernel_text: one without a year), in the year in which it is closest to the first of `dated`."""
    if not dated or begin >= YEAR_2001_S:
        return begin
    then = datetime.fromtimestamp(begin, UTC)
    near = datetime.fromtimestamp(dated[0], UTC).year
    years = [
        year
        for year in (near - 1, near, near + 1)
        if then.month != _FEBRUARY or then.day < _LEAP_DAY or isleap(year)
    ]
    return min(
        (then.replace(year=year).timestamp() for year in years),
        key=lambda at: abs(at - dated[0]),
        default=begin,
    )
