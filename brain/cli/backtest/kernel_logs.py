"""Kernel logs of many nodes, read into facts: those of dated lines on one clock, each without dates by itself."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.contract.coverage import Coverage
from agent.contract.errors import ConfigError
from agent.contract.kernel_text import Clock
from agent.contract.log_hosts import host_of
from agent.contract.messages import UnsentEvent
from agent.shared.log_text import log_lines
from brain.cli import log_times
from brain.cli.backtest.outcome import Input
from brain.cli.backtest.sieve import Sieve
from brain.cli.log_nodes import by_node, node_name
from brain.cli.log_times import Log

# Called with the bytes, about, that were read.
Progress = Callable[[int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFact:
    """What one line says."""

    # Seconds: since 1970, or since the machine booted
    at: float
    node: str
    # The file, and the 1-based line in it
    file: str
    line: int
    unsent: UnsentEvent


@dataclass(slots=True, kw_only=True)
class LogOfNode:
    """What one node says in one file."""

    node: str
    file: str
    clock: Clock
    # Of its first and its last line, as `LineFact.at`
    begin: float = 0.0
    end: float = 0.0
    facts: list[LineFact] = field(default_factory=list)

    @property
    def dated(self) -> bool:
        """Whether its times can be compared with those of another machine."""
        return self.clock is Clock.WALL


class LogsReader:
    """Reads the files one after another, and counts what it reads."""

    def __init__(self, counts: Input, *, driver: str = "", names: Sequence[str] = ()) -> None:
        """`names`: of nodes that are known, as the topology names them."""
        self._counts = counts
        self._driver = driver
        self._known = frozenset(names)
        self._shared: dict[tuple[str, str, str], UnsentEvent] = {}

    def read(self, path: Path, name: str, node: str, progress: Progress | None = None) -> list[LogOfNode]:
        """One file; `node`: whose it is by its name, empty: its lines say that. What cannot be read is counted and named."""
        sieve, unended = Sieve(), False

        def ends_within_a_line() -> None:
            nonlocal unended
            unended = True

        def damaged(error: ConfigError) -> None:
            self._counts.unreadable[name] = str(error).removeprefix(f"{path}: ")

        try:
            sieve.take(_told(_whole(log_lines(path, unended=ends_within_a_line), damaged), progress))
        except ConfigError as error:
            damaged(error)
        left = sieve.found
        self._counts.lines += left.read
        if not left.lines:
            if name not in self._counts.unreadable:
                self._counts.blind[name] = Coverage().blind
            return []
        log_name = node_name(node, ()) if node else "@"
        found = []
        for own in by_node({log_name: left.lines}, (log_name,) if unended else ()):
            positions = [left.positions[at] for at in own.positions]
            own = replace(own, positions=positions)
            coverage = Coverage(unended=own.unended, positions=positions)
            log = log_times.read(own, self._driver, coverage)
            whose = self._name(own.lines, path) if own.node == "@" else self._short(own.node)
            found.append(self._facts(log, whose, name, left.repeated))
            self._counts.unread += coverage.unread
            self._counts.foreign += coverage.foreign if coverage.timed else 0
            if doubt := coverage.blind or ("" if log.unsent_events else coverage.no_log):
                self._counts.blind[name if own.node in (log_name, "@") else f"{name}: {whose}"] = doubt
        return found

    def _name(self, lines: Sequence[str], path: Path) -> str:
        """Of a file whose name is nobody's: the machine that its lines name."""
        host = next(filter(None, map(host_of, lines)), "")
        return self._short(node_name(host or path.name, ()))

    def _short(self, node: str) -> str:
        """A node's own name, where the log has it with its domain and the topology without."""
        if node in self._known or not self._known:
            return node
        return next((one for one in sorted(self._known) if node.startswith(f"{one}-")), node)

    def _facts(self, log: Log, node: str, file: str, repeated: dict[int, int]) -> LogOfNode:
        begin = log.begin or 0.0
        found = LogOfNode(node=node, file=file, clock=log.clock, begin=begin, end=begin + log.length_s)
        lines: dict[int, int] = {}
        for line, after_s, unsent in log.unsent_events:
            more = repeated.get(line - 1, 0)
            lines[line] = 1 + more
            one = self._same(replace(unsent, count=unsent.count + more) if more else unsent)
            found.facts.append(LineFact(at=begin + after_s, node=node, file=file, line=line, unsent=one))
        self._counts.meaningful += sum(lines.values())
        return found

    def _same(self, unsent: UnsentEvent) -> UnsentEvent:
        """Equal ones share their memory: a line may come a million times."""
        key = (unsent.kind, unsent.component, unsent.evidence)
        known = self._shared.get(key)
        if known == unsent:
            return known
        if len(self._shared) > 10_000:
            self._shared.clear()
        self._shared[key] = unsent
        return unsent


def _whole(lines: Iterator[str], damaged: Callable[[ConfigError], object]) -> Iterator[str]:
    """The lines up to where the file is damaged: what stands before it counts."""
    try:
        yield from lines
    except ConfigError as error:
        damaged(error)


def _told(lines: Iterator[str], progress: Progress | None) -> Iterator[str]:
    """The lines, while whoever waits is told how far they are."""
    if progress is None:
        yield from lines
        return
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > 1_000_000:
            progress(size)
            size = 0
        yield line
    progress(size)


def on_one_clock(logs: Sequence[LogOfNode]) -> list[LogOfNode]:
    """Those with dates; where their times have no year, it is the one in which they come closest to those that have."""
    dated = [log for log in logs if log.dated]
    begins = sorted(log.begin for log in dated if log.begin >= log_times.YEAR_2001_S)
    found = []
    for log in dated:
        shift = log_times.dated_begin(log.begin, begins) - log.begin
        facts = [replace(fact, at=fact.at + shift) for fact in log.facts] if shift else log.facts
        found.append(replace(log, begin=log.begin + shift, end=log.end + shift, facts=facts))
    return found
