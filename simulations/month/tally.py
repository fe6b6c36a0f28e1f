"""What came of a month under one policy: each fault's times, each action and whether it was right, and what was lost. Pure."""

from dataclasses import dataclass, field
from enum import StrEnum

from simulations.month.draw import FaultCase
from simulations.month.jobs import JobLoss


class ActVerdict(StrEnum):
    """Of an action that disrupts something, by what was really so when it began."""

    RIGHT = "right"  # it ended the fault, or kept jobs away from it
    WRONG = "wrong"  # there was a fault, and it did not end it
    NEEDLESS = "needless"  # nothing was wrong with the node, or it passes by itself


@dataclass(slots=True, kw_only=True)
class FaultStory:
    """What became of one fault."""

    case: FaultCase
    begun: bool = False
    # Times after it began, seconds; None: never.
    detected_s: float | None = None
    decided_s: float | None = None
    # It is over, and its nodes are in service again.
    healed_s: float | None = None
    # Nodes on which it lasts.
    on: dict[str, None] = field(default_factory=dict)
    # gpuward's first incident about it, or the one that explains that; and what it takes it for.
    seen_by: str = ""
    seen_as: str = ""
    # Whether people had to do something about it.
    people: bool = False
    # Why they were called first, in gpuward's words.
    why_people: str = ""


@dataclass(slots=True, kw_only=True)
class Act:
    """An action that disrupts something."""

    at: float
    node: str
    action: str
    verdict: ActVerdict
    # Which hold stood on the node; empty: none.
    hold: str = ""
    # It ended a job that the node's faults had left alone.
    ended_job: bool = False


@dataclass(slots=True, kw_only=True)
class RunSpan:
    """A run of a runbook on a node."""

    node: str
    runbook: str
    since: float
    # None: it is not over
    until: float | None = None
    # whether people must act; else it has ended well, or is not over
    gave_up: bool = False


@dataclass(slots=True, kw_only=True)
class Tally:
    """Of one policy."""

    policy: str
    # When the month began, seconds since 1970.
    start: float = 0.0
    stories: dict[str, FaultStory] = field(default_factory=dict)
    acts: list[Act] = field(default_factory=list)
    # How many nodes went out of service or came back, and when: (time, 1 or -1).
    out_steps: list[tuple[float, int]] = field(default_factory=list)
    # The same by node: (node, since, until); until infinity where it lasts.
    out_spans: list[tuple[str, float, float]] = field(default_factory=list)
    # gpuward's, by their ids.
    runs: dict[str, RunSpan] = field(default_factory=dict)
    # Node-seconds out of service, and of those: while hands were awaited or at work.
    out_s: float = 0.0
    hands_s: float = 0.0
    # Node-seconds in which nodes that were well were out of service all the same.
    well_out_s: float = 0.0
    jobs: JobLoss = field(default_factory=JobLoss)
    # Nodes that were given back with a fault that harms.
    returned_broken: int = 0
    pages: int = 0

    def count(self, verdict: ActVerdict) -> int:
        """How many actions of this verdict."""
        return sum(act.verdict is verdict for act in self.acts)

    @property
    def harmful(self) -> int:
        """Actions that ended jobs which would have gone on, and nodes that were returned broken."""
        return sum(act.ended_job for act in self.acts) + self.returned_broken
