"""What a backtest found: the incidents, decisions, holds and pages of one rule set over one recording."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from agent.contract.actions.spec import Disrupts
from agent.shared.words import t

_YEAR_2001_S = 978_307_200.0  # a time without a year counts as one of 2000 (agent.contract.kernel_text)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundIncident:
    """An incident that gpuward would have opened."""

    id: str
    cause: str
    severity: str
    # Its scope: `gpu/n1/0000:3b:00`, `leaf/l3`
    place: str
    # When the first fact behind it occurred, and when it was over; empty: it was not
    since: str
    until: str
    state: str
    # How many nodes show it, and their names as far as they are known
    nodes: int
    affected: list[str]
    # How many others it explains
    explains: int
    rule: str
    because: str
    # the same in Chinese; empty: there is only the English
    because_zh: str
    # Empty: people must act
    runbook: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDecision:
    """A run that would have begun."""

    id: str
    # Cause and place of its incident
    cause: str
    place: str
    at: str
    runbook: str
    # Of the recorded log also how it went on; `observed`: nothing was done
    state: str
    # The most that a rung of it disrupts
    disrupts: Disrupts
    # One line for each rung
    rungs: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundHold:
    """A gate that would have kept a run waiting, or asked for an approval, or stopped it."""

    run: str
    cause: str
    place: str
    at: str
    # Which gate of brain/core/healing; empty: the plan of an observed run names its reason only
    gate: str
    # hold, approval, stop
    answer: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPage:
    """What people would have been told about one subject."""

    # The incident's, or that of a group of alerts
    subject: str
    cause: str
    place: str
    severity: str
    # Channel group
    to: str
    since: str
    # open, repeat, update, ack, resolve -> how often
    sent: dict[str, int]


@dataclass(slots=True, kw_only=True)
class BacktestOutcome:
    """All of it, in the order of time."""

    incidents: list[FoundIncident] = field(default_factory=list)
    # Incidents that were over within their hold-off, and those that another one explains: nobody is told of them
    quiet: int = 0
    explained: int = 0
    decisions: list[FoundDecision] = field(default_factory=list)
    holds: list[FoundHold] = field(default_factory=list)
    pages: list[FoundPage] = field(default_factory=list)

    def add(self, other: "BacktestOutcome") -> None:
        """Takes up what was judged by itself."""
        self.incidents += other.incidents
        self.quiet += other.quiet
        self.explained += other.explained
        self.decisions += other.decisions
        self.holds += other.holds
        self.pages += other.pages

    def totals(self) -> dict[str, int]:
        """Counts, by their names."""
        return {
            "incidents": len(self.incidents),
            **{
                severity: sum(one.severity == severity for one in self.incidents)
                for severity in ("P0", "P1", "P2", "P3")
            },
            "decisions": len(self.decisions),
            "disruptive": sum(one.disrupts is not Disrupts.NOTHING for one in self.decisions),
            "holds": len(self.holds),
            "pages": sum(sum(one.sent.values()) for one in self.pages),
            "quiet": self.quiet,
            "explained": self.explained,
        }


@dataclass(slots=True, kw_only=True)
class Input:
    """What was read: everything is counted, and what could not be read is named."""

    # `log`: a log of gpuward; `folder`: kernel logs
    kind: str = "folder"
    files: int = 0
    nodes: int = 0
    # Lines that are not empty, or messages of a log; those with a meaning; those in a form that is not known
    lines: int = 0
    meaningful: int = 0
    unread: int = 0
    # Lines that look like no kernel's
    foreign: int = 0
    # Facts of facts.jsonl or facts.yaml
    facts: int = 0
    # Messages that are missing in the log
    missing: int = 0
    since: str = ""
    until: str = ""
    # File -> why it, or a part of it, was not read
    unreadable: dict[str, str] = field(default_factory=dict)
    # Log -> why its silence is no all-clear
    blind: dict[str, str] = field(default_factory=dict)
    # Logs whose lines have no date: each was judged by itself
    undated: list[str] = field(default_factory=list)
    # What else whoever reads the outcome must know
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """One backtest: what was read, with which rules, and what came of it."""

    input: Input
    # Where the rules are from, and their version
    rules: str
    version: str
    outcome: BacktestOutcome

    def data(self) -> dict[str, Any]:
        """Returns a dict that JSON can hold."""
        found = asdict(self.outcome)
        return {
            "ok": self.is_whole(),
            "input": asdict(self.input),
            "rules": {"from": self.rules, "version": self.version},
            **found,
            "totals": self.outcome.totals(),
        }

    def is_whole(self) -> bool:
        """Whether there was something to read, and all of it was read."""
        return bool(self.input.lines or self.input.facts) and not (
            self.input.unreadable or self.input.blind or self.input.missing
        )


When = Callable[[float], str]


def wall(at: float) -> str:
    """A time of the log: ISO 8601 UTC; where the log's times have no year, without one.

    >>> wall(1_795_835_465.0), wall(975_380_400.0)
    ('2026-11-28T03:11:05Z', '11-28T03:00:00')
    """
    try:
        then = datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{at:.0f}"
    return f"{then:%m-%dT%H:%M:%S}" if at < _YEAR_2001_S else f"{then:%Y-%m-%dT%H:%M:%SZ}"


def up(at: float) -> str:
    """A time since the machine booted, as dmesg writes it."""
    return f"[{at:.6f}]"


def listed(names: Iterable[str], most: int = 6) -> str:
    """Some names, and how many more there are."""
    all_ = list(names)
    more = t(" and {all} more", all=len(all_) - most) if len(all_) > most else ""
    return ", ".join(all_[:most]) + more
