"""The engine's whole memory: plain dataclasses that a snapshot writes as JSON and reads back.

Times are seconds since 1970 UTC, by the log's clock. Dicts keep the order of insertion; nothing here is a set.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from agent.contract.messages import Event
from brain.core.spec import Pack, Runbook, Scalar

KEPT_TIMERS = ("schedule:", "hold:")  # what people arranged, not faults


class IncidentState(StrEnum):
    """Where an incident stands. The transitions stand in brain/core/incidents.py."""

    SETTLING = "settling"  # waiting for a cause that explains it; nobody was told
    OPEN = "open"  # the fault is there and nothing is being done
    HEALING = "healing"  # a run is under way
    PERSON = "person"  # gpuward will not do more: people must
    MENDED = "mended"  # the symptoms are gone; waiting whether they stay away
    CLOSED = "closed"
    EXPLAINED = "explained"  # another incident is its cause


class RunState(StrEnum):
    """Where a run stands. The transitions stand in brain/core/runs.py."""

    HELD = "held"  # a gate says no for now
    APPROVAL = "approval"  # a person must agree
    INTENT = "intent"  # the intent is being written
    PERFORMING = "performing"
    VERIFYING = "verifying"
    CANCELLING = "cancelling"  # not wanted any more, and a step is still under way
    SUCCEEDED = "succeeded"  # verified, or the fault went away before anything was needed
    EXHAUSTED = "exhausted"  # no rung is left: a person
    OBSERVED = "observed"  # planned only
    CANCELLED = "cancelled"  # a person or a wider cause ended it


@dataclass(slots=True, kw_only=True)
class Evidence:
    """One event that an incident rests on."""

    id: str
    at: float  # when the fact came about, by the log's clock
    node: str
    kind: str
    component: str
    text: str  # the line or reading


@dataclass(slots=True, kw_only=True)
class SymptomState:
    """One symptom at one scope: active, or half way there (a window that fills)."""

    name: str
    scope: str
    active: bool = False
    since: float = 0.0  # when the fact behind it began
    last: float = 0.0  # newest fact that fed it
    heard: float = 0.0  # when that arrived
    hits: list[tuple[float, float]] = field(default_factory=list)  # (time, weight) in the window
    on: bool = False  # lasting, flapping: the condition's present state
    members: dict[str, float] = field(default_factory=dict)  # spread: node -> when it started there
    carried: dict[str, Scalar] = field(default_factory=dict)
    evidence: list[Evidence] = field(default_factory=list)  # first and newest, bounded
    total: int = 0  # facts so far


@dataclass(slots=True, kw_only=True)
class StepRecord:
    """What became of one attempt."""

    id: str
    rung: str
    action: str
    params: dict[str, Scalar]
    at: float
    outcome: str = ""  # empty while under way
    doing: str = ""  # what it last said that it is doing
    why: str = ""
    verified: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A person's word for one step, under the circumstances of that moment."""

    who: str
    until: float
    what: str  # rung, action, parameters, node
    symptoms: list[str]  # of the incident, active then
    nodes: int
    severity: str


@dataclass(slots=True, kw_only=True)
class Run:
    """One execution of a runbook."""

    id: str
    incident: str
    runbook: Runbook  # the version with which it began
    pack: str
    scope: str
    node: str  # empty for a scope wider than a node
    params: dict[str, Scalar]
    state: RunState
    started_at: float
    rung: int = 0  # index into the ladder, or into its way back
    worked: str = ""  # why it has worked; from then on the run is on its way back
    back_to: int = 0  # index of the rung to go on with if the fault comes back before the way back is over
    disrupted: bool = False  # a disruptive rung was begun
    requested_by: str = ""  # a person, or "schedule"; empty: a fault led to it
    jobs: list[str] = field(default_factory=list)  # on its node when it claimed it
    asked: list[str] = field(default_factory=list)  # steps whose plan was asked for
    attempt: int = 1
    why: str = ""  # reason of the present state
    claimed: bool = False  # holds the node for its disruptive rungs
    approved: Approval | None = None
    quiet_since: float = 0.0  # verifying: since when the symptoms are gone; 0: they are not
    deadline: float = 0.0
    steps: list[StepRecord] = field(default_factory=list)
    ended_at: float = 0.0


@dataclass(slots=True, kw_only=True)
class PageState:
    """What people were told of an incident."""

    sent: int = 0  # pages so far
    first_at: float = 0.0
    told: list[str] = field(default_factory=list)  # channel groups, in order
    by: dict[str, list[str]] = field(default_factory=dict)  # group -> channels that took a page of it
    bundled: dict[str, str] = field(default_factory=dict)  # group -> the bundle that speaks for it there
    acked_by: str = ""
    resolved: bool = False
    severities: list[str] = field(default_factory=list)  # those that it was told with before it was raised
    waiting: dict[str, "PendingPage"] = field(default_factory=dict)  # page id -> not yet delivered


@dataclass(slots=True, kw_only=True)
class PendingPage:
    """A page on its way."""

    what: Literal["open", "repeat", "update", "ack", "resolve"]
    to: str
    text: str
    tries: int = 0
    away: bool = False  # with the notifier, which has not answered yet
    bundle: str = ""  # the bundle whose page tells this one; empty: it goes by itself
    carries: list[str] = field(default_factory=list)  # a bundle's page: the incidents' pages that it tells


@dataclass(slots=True, kw_only=True)
class Listed:
    """One incident of a bundle, as the bundle's page lists it."""

    incident: str
    severity: str
    cause: str
    scope: str
    node: str
    since: float
    evidence: str  # its first line; only of the first ones
    text: str  # its newest news
    acked: bool = False
    over: bool = False


@dataclass(slots=True, kw_only=True)
class Bundle:
    """Many incidents that one group is told of as one. Its alert opens, repeats and resolves as that of an incident does."""

    id: str
    to: str
    opened_at: float
    severity: str = "P3"  # the worst that it ever listed
    listed: dict[str, Listed] = field(default_factory=dict)  # incident -> its line
    over: int = 0  # how many of them are over
    seen: int = 0  # and how many over or acknowledged
    queued: list[str] = field(default_factory=list)  # incidents' pages that the next page of it tells
    pages: PageState = field(default_factory=PageState)


@dataclass(slots=True, kw_only=True)
class GroupPages:
    """How often a group of people was woken lately."""

    first: list[tuple[float, str]] = field(
        default_factory=list
    )  # (when, severity) of new alerts in the window
    storm_until: float = 0.0  # until then a new incident goes into a bundle
    bundle: str = ""  # the one that still collects


@dataclass(slots=True, kw_only=True)
class Incident:
    """What people see: one fault, from open to closed."""

    id: str
    cause: str
    state: IncidentState
    severity: str  # P0 .. P3
    scope: str
    node: str  # empty for a scope wider than a node
    rule: str
    because: str
    runbook: str
    pack: str
    opened_at: float
    settle_until: float
    quiet_s: float
    page: str
    params: dict[str, Scalar] = field(default_factory=dict)
    support: dict[str, str] = field(default_factory=dict)  # "<rule>@<scope>" that match now -> rule
    symptoms: list[str] = field(default_factory=list)  # "<symptom>@<scope>", in order of appearance, bounded
    symptom_count: int = 0
    nodes: int = 1  # how many nodes show it
    evidence: list[Evidence] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    explains: int = 0  # incidents and matches that it absorbed
    explained_by: str = ""
    stale: bool = False  # every fact was old when it arrived; a fresh one clears it
    pages: PageState = field(default_factory=PageState)
    closed_at: float = 0.0
    closed_why: str = ""


@dataclass(slots=True, kw_only=True)
class Node:
    """What is known of a node besides its faults."""

    name: str
    alive: bool = True
    boot: str = ""
    booted_at: float = 0  # when it was first heard with this boot id
    spool: str = ""
    seq: int = 0  # of `spool`: an event at or below is a repeat
    spool_before: str = ""
    seq_before: int = 0


@dataclass(slots=True, kw_only=True)
class Hold:
    """A person's stop on a scope."""

    scope: str
    who: str
    why: str
    since: float
    until: float  # 0: until released


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJobs:
    """What the scheduler says of a node, for a short while."""

    at: float
    known: bool  # False: it could not be asked
    jobs: list[str]
    protected: str = ""  # a protected job, and why it is one
    why: str = ""


@dataclass(slots=True, kw_only=True)
class ModeSaid:
    """A person's mode for runbooks on nodes."""

    runbook: str
    nodes: str
    mode: str
    who: str


@dataclass(slots=True, kw_only=True)
class Early:
    """An event that came before there were any rules."""

    event: Event
    at: float


@dataclass(slots=True, kw_only=True)
class State:
    """Everything. `fault_free` says whether the engine has forgotten all faults (law: forget)."""

    now: float = 0.0  # the newest input's time; never runs backwards
    epoch: int = 0
    leader: str = ""
    pack: Pack | None = None
    nodes: dict[str, Node] = field(default_factory=dict)
    symptoms: dict[str, SymptomState] = field(default_factory=dict)  # "<symptom>@<scope>"
    matched: dict[str, list[str]] = field(default_factory=dict)  # scope -> rules that match now
    incidents: dict[str, Incident] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)  # of incidents that are not closed
    tries: dict[str, list[float]] = field(
        default_factory=dict
    )  # "<runbook>@<cause>@<scope>" -> ends of failed runs
    bundles: dict[str, Bundle] = field(default_factory=dict)  # until all that they list is over
    groups: dict[str, GroupPages] = field(default_factory=dict)  # channel groups that were woken lately
    timers: dict[str, float] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    modes: list[ModeSaid] = field(default_factory=list)
    jobs: dict[str, NodeJobs] = field(default_factory=dict)  # node -> what the scheduler said a moment ago
    began: list[float] = field(default_factory=list)  # when disruptive runs began, for the breaker; bounded
    tripped: float = 0.0  # since when the breaker holds; 0: it does not
    inspected: dict[str, float] = field(default_factory=dict)  # "<runbook>@<node>" -> when it last began
    likes: dict[str, str] = field(default_factory=dict)  # "<kind> <node>" -> what `unlike` compares, as JSON
    recent: dict[str, float] = field(default_factory=dict)  # ids of inputs that were not events, bounded
    malformed: int = 0
    early: list[Early] = field(default_factory=list)  # judged when the first rules come; bounded

    def fault_free(self) -> bool:
        """Is no trace of a fault left? People's holds and modes, and the table of nodes, are not faults."""
        timers = [name for name in self.timers if not name.startswith(KEPT_TIMERS)]
        faults = self.symptoms or self.matched or self.incidents or self.runs or self.tries
        return not (faults or self.bundles or self.groups or timers)
