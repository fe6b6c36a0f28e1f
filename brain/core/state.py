"""The engine's whole memory: plain dataclasses that a snapshot writes as JSON and reads back.

Times are in seconds since 1970 UTC, by the log's clock. Dicts keep the order of insertion, and nothing here is a set.
It is one file although it is long: this, and no more, is what a snapshot holds and what every later version must read.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from agent.contract.messages import Event
from brain.core.jobs_seen import JobSeen
from brain.core.pack.spec import Mode, Pack, Paging, Priority, Runbook, Scalar

# timers that belong to what people arranged, or to what is remembered of faults that are over
# By how much timestamps run backwards where nobody has set a clock: another server of a cluster leads the log.
STANDS_STILL_S = 2.0
KEPT_TIMERS = ("schedule:", "hold:", "left:", "recurred:", "recovered:", "releases:", "rollout:")
GPUWARD = "gpuward"  # who has set a mode that no person has set


class IncidentState(StrEnum):
    """The state of an incident. Its transitions: brain/core/incidents.py."""

    SETTLING = "settling"  # held off, in case a wider cause explains it; no page was sent
    OPEN = "open"  # the fault is there and no run is under way
    HEALING = "healing"  # a run is under way
    NEEDS_HUMAN = "needs_human"  # gpuward does nothing more: people must act
    RECOVERED = "recovered"  # the symptoms are gone; it closes if they stay away
    CLOSED = "closed"  # over: its symptoms stayed away, or an operator closed it
    EXPLAINED = "explained"  # another incident is its cause


class RunState(StrEnum):
    """The state of a run. Its transitions: brain/core/healing/runs.py."""

    HELD = "held"  # a gate holds it for now
    APPROVAL = "approval"  # waits for an operator's approval
    INTENT = "intent"  # the intent of a step is being written to the log
    PERFORMING = "performing"  # a step is under way
    VERIFYING = "verifying"  # a step is done: are the symptoms gone?
    CANCELLING = "cancelling"  # cancelled, but a step is still under way
    SUCCEEDED = "succeeded"  # verified, or the fault went away before anything was needed
    EXHAUSTED = "exhausted"  # no rung is left: people must act
    OBSERVED = "observed"  # only planned: observe mode
    CANCELLED = "cancelled"  # by an operator, or because the incident is over


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One event behind a symptom or an incident."""

    # of the event
    id: str
    # when the fact occurred: arrival less age
    at: float
    node: str
    kind: str
    component: str
    # the kernel line or the sample
    text: str


@dataclass(slots=True, kw_only=True)
class SetAside:
    """A symptom that ended because a remedy is being verified."""

    # whose remedy it is
    run: str
    at: float
    # when it would have ended without the remedy, unless a fact renewed it
    until: float
    # SymptomState.jobs
    jobs: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OpenFact:
    """One of the facts of a symptom that are told apart, and that nothing has ended yet."""

    # when it began, and when its newest event occurred
    since: float
    last: float = 0.0
    # when its newest event arrived. 0: an earlier version kept none
    arrived: float = 0.0
    # the fields for the situation that its newest event has
    carried: dict[str, Scalar] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Burst:
    """Nodes that fell ill at once, and those that fell ill soon after them."""

    # when the first one did
    since: float
    # when the last one did
    until: float
    # how many did
    size: int


@dataclass(slots=True, kw_only=True)
class SymptomState:
    """One symptom at one scope: active, or on the way to it (for example a window that fills)."""

    name: str
    scope: str
    active: bool = False
    # when the first fact behind it occurred
    since: float = 0.0
    # when the newest fact behind it occurred
    last: float = 0.0
    # when the newest fact arrived
    arrived: float = 0.0
    # (time, weight) of the facts in the window
    hits: list[tuple[float, float]] = field(default_factory=list)
    # lasting, flapping: whether the condition is met now
    on: bool = False
    # spread: node -> when the counted symptom began there
    members: dict[str, float] = field(default_factory=dict)
    # spread of a job: how many nodes it has, by its scheduler; 0: nobody says
    size: int = 0
    # spread: node that fell ill anew, at another part -> when it first did
    earlier: dict[str, float] = field(default_factory=dict)
    # active spread: when the shared cause began; what began before stood there already. 0: they came one by one
    cause_at: float = 0.0
    # active spread: so few show it that only their falling ill at once (Symptom.at_once_s) makes it shared
    at_once: bool = False
    # its nodes fell ill one after the other, too slowly for its numbers, and nobody else's did
    crept: bool = False
    # active spread: which of its nodes fell ill at once; bounded
    bursts: list[Burst] = field(default_factory=list)
    # active spread: how many nodes it had when it was last asked which place it is
    judged: int = 0
    # fields for the situation, from the newest event that has them
    carried: dict[str, Scalar] = field(default_factory=dict)
    # the jobs whose logs told it, as `job/<id>`, where nodes are counted by jobs; bounded
    jobs: list[str] = field(default_factory=list)
    # facts that are told apart: by their values of Symptom.apart; empty: they are not
    open_facts: dict[str, OpenFact] = field(default_factory=dict)
    # the first facts and the newest; bounded
    evidence: list[Evidence] = field(default_factory=list)
    # number of facts so far
    total: int = 0


@dataclass(slots=True, kw_only=True)
class StepRecord:
    """One attempt of one rung, and what came of it."""

    id: str
    rung: str
    action: str
    params: dict[str, Scalar]
    # when its intent was requested
    at: float
    # empty while it is under way
    outcome: str = ""
    # the text of its last progress report
    doing: str = ""
    # reason of the outcome
    why: str = ""
    # None: no verification has ended
    verified: bool | None = None
    # when its outcome came, or its verification ended. 0: neither has
    settled_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """An operator's approval of one step, with the circumstances in which it was given."""

    # maintenance windows that were open, as "<scope> <since>"
    windows: list[str] = field(default_factory=list)
    # the protected job that ran on the node
    protected: str = ""
    # why it has become void, for good; empty: it has not
    ended: str = ""

    who: str
    # when it expires
    until: float
    # the step: rung, action, parameters, scope
    what: str
    # "<symptom>@<scope>" of the incident that were active
    symptoms: list[str]
    # Incident.nodes
    nodes: int
    severity: Priority


@dataclass(slots=True, kw_only=True)
class Run:
    """One execution of a runbook."""

    # <incident>.r<n>
    id: str
    incident: str
    # as it was when the run began: a new pack does not change it
    runbook: Runbook
    # version of the pack with which it began
    pack: str
    scope: str
    # empty for a scope wider than a node
    node: str
    # values for `$name` in the rungs' parameters
    params: dict[str, Scalar]
    state: RunState
    started_at: float
    # index into the ladder, or into the return to service
    rung: int = 0
    # why it worked; once this is set, the run performs its return to service
    worked: str = ""
    # index of the rung to go on with if the fault recurs during the return to service
    back_to: int = 0
    # whether a disruptive step has left
    disrupted: bool = False
    # whether it was counted for the breaker and its node's limits
    counted: bool = False
    # an operator's name, or "schedule"; empty: a fault led to it
    requested_by: str = ""
    # whether whoever asked for it says that the node is healthy, which the node is asked about first
    vouched: bool = False
    # jobs on the node when the run claimed it, or began to wait because the faults of several nodes belong together
    jobs: list[str] = field(default_factory=list)
    # ids of steps whose plan was requested
    asked: list[str] = field(default_factory=list)
    # of the present rung, from 1
    attempt: int = 1
    # epoch of the leader that performs its present step
    epoch: int = 0
    # when it last got on by itself: a step of it ended, or a verification failed
    moved_at: float = 0.0
    # its facts were not old news when its present step left: the time that the step takes makes them no older
    in_time: bool = True
    # when its last disruptive step left or ended
    disturbed_at: float = 0.0
    # how often the node was asked to look again
    looks: int = 0
    # id of the look that is not answered yet; empty: none is
    looking: str = ""
    # when it is given up
    looking_until: float = 0.0
    # since when the node is asked to look again, without success; 0: it is not
    asked_since: float = 0.0
    # when the node was last found unheard while it was to look
    unheard_at: float = 0.0
    # why the last look proved nothing
    unseen: str = ""
    # when the node last looked again and no source that saw the fault was blind
    looked_at: float = 0.0
    # when that look was asked for: what the node has told since then came of it, or is newer
    looked_since: float = 0.0
    # who else had drained the node when we were to drain it, as a sentence; empty: nobody
    kept_out: str = ""
    # since when the scheduler has not answered the gate that asks what runs on the node; 0: it has, or was not asked
    jobs_asked_since: float = 0.0
    # when it was first held because the faults of several nodes belong together; 0: never
    related_since: float = 0.0
    # a gate found that its remedy has been tried too often
    spent: bool = False
    # how often a failed check of the return to service sent it back into the ladder
    relapses: int = 0
    # the test before the return that has failed, with its reason, until it is decided what that means; empty: none has
    failed_test: str = ""
    test_failed_at: float = 0.0
    # whether a shared cause may be behind it: the node is tested again
    retest: bool = False
    # reason of the present state
    why: str = ""
    # whether it has its node to itself, for disruptive rungs
    claimed: bool = False
    # the rung, and why it waits, for which people were last asked to approve
    wanted: str = ""
    # the last approval, which may be void now
    approved: Approval | None = None
    # verifying: since when the symptoms are gone; 0: they are not
    quiet_since: float = 0.0
    # performing: when the step is given up; verifying: when the symptoms must be gone
    deadline: float = 0.0
    # when its present step was begun, or last gave a sign of life
    heard_at: float = 0.0
    # performing a step that takes the node away: when the node was first found to be back, or still there; 0: not yet
    back_at: float = 0.0
    steps: list[StepRecord] = field(default_factory=list)
    # what was not tested, one sentence each
    untested: list[str] = field(default_factory=list)
    ended_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFace:
    """What an alert was said to be."""

    cause: str
    scope: str
    # empty for a scope wider than a node
    node: str
    # how many nodes showed it
    nodes: int
    severity: Priority


@dataclass(slots=True, kw_only=True)
class PageState:
    """The pages of one incident or alert group."""

    # number of pages so far
    sent: int = 0
    # when the first page was sent; 0: none was
    first_at: float = 0.0
    # since when its repeats are counted, where that is later: its alert was told to be of another place
    repeats_since: float = 0.0
    # channel groups that were paged, in order; of an incident that was opened again, this time
    notified: list[str] = field(default_factory=list)
    # channel groups that were called when it was open before, and have not heard yet that it is open again
    before: list[str] = field(default_factory=list)
    # the severity that it had at its end, when it was open before; None: it was not
    severity_before: Priority | None = None
    # channel group -> channels that accepted an alert
    by: dict[str, list[str]] = field(default_factory=dict)
    # channel group -> id of the alert group that the incident belongs to there
    grouped: dict[str, str] = field(default_factory=dict)
    # empty: not acknowledged
    acked_by: str = ""
    resolved: bool = False
    # "<channel group>: <text>" of the newest updates: the same news is told once, until an operator has answered it
    said: list[str] = field(default_factory=list)
    # the same of the times that it was open before: it is no reason to tell at once that it is back
    said_before: list[str] = field(default_factory=list)
    # channel group -> what of that is so again, for when it is told that it lasts
    unsaid: dict[str, str] = field(default_factory=dict)
    # severities under which it was paged before it was raised
    severities: list[Priority] = field(default_factory=list)
    # page id -> page that is not delivered yet
    waiting: dict[str, "PendingPage"] = field(default_factory=dict)
    # channel -> by what its receiver knows the alert, such as the key of a ticket
    tickets: dict[str, str] = field(default_factory=dict)
    # the same of the times that it was open before: what was closed is named by the next one, what was not is gone on with
    tickets_before: dict[str, str] = field(default_factory=dict)
    # which time that it is open has these tickets
    time: int = 1
    # by which channels know the alert: the id of the incident with which it began; empty: of this one
    key: str = ""
    # id of the incident whose alert it is by now; empty: it is this one's
    passed_to: str = ""
    # what people were last told that it is, before the alert passed to this incident; None: they know
    was: AlertFace | None = None
    # what it was before it passed to this incident, under each severity; the newest last; bounded
    faces: list[AlertFace] = field(default_factory=list)
    # channel group -> what it will be told first, at the end of a maintenance window; empty: nobody is
    later: dict[str, str] = field(default_factory=dict)
    # when people last heard that its fault had come, for the first time or again; 0: never
    came_told_at: float = 0.0
    # opened again and not told: for how long its symptoms, which are gone now, must last yet, in seconds; 0: all of it
    wait_left_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class PendingPage:
    """A page that is not delivered yet."""

    what: Literal["open", "repeat", "update", "ack", "resolve"]
    # channel group
    to: str
    text: str
    # failed deliveries so far
    tries: int = 0
    # PageState.time when it was posted
    time: int = 1
    # whether the notifier has it and has not answered yet
    away: bool = False
    # the alert group whose page includes this one; empty: it is sent by itself
    alert_group: str = ""
    # page of an alert group: ids of the incidents' pages that it includes
    carries: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedAlert:
    """One incident of an alert group, as the group's page lists it."""

    incident: str
    severity: Priority
    cause: str
    scope: str
    node: str
    since: float
    # text of its first fact; empty for incidents far down the list
    evidence: str
    # the latest news of it
    text: str
    acked: bool = False
    over: bool = False
    # over because another incident explains it
    explained: bool = False


@dataclass(slots=True, kw_only=True)
class AlertGroup:
    """Many incidents that go to one channel group as one alert, which opens, repeats and resolves like an incident's."""

    id: str
    # channel group
    to: str
    opened_at: float
    # the most urgent that it ever listed
    severity: Priority = Priority.P3
    # incident id -> its line
    listed: dict[str, GroupedAlert] = field(default_factory=dict)
    # every node that one of them affects
    affected: dict[str, bool] = field(default_factory=dict)
    # the node that opened them all; empty: each node has a few of them
    node: str = ""
    # the severity by whose `settings.digests` it waits for its hours; empty: it is the page of a storm
    digest: str = ""
    # how many of them are over
    over: int = 0
    # how many of them are over or acknowledged
    seen: int = 0
    # ids of incidents' pages that its next page includes
    queued: list[str] = field(default_factory=list)
    pages: PageState = field(default_factory=PageState)


@dataclass(slots=True, kw_only=True)
class ChannelGroup:
    """How often a channel group was alerted lately."""

    # (when, severity, node or wider scope) of the new alerts in the window; of an alert group its id
    first: list[tuple[float, Priority, str]] = field(default_factory=list)
    # node -> how many incidents of it the alert group that still collects has
    collected: dict[str, int] = field(default_factory=dict)
    # until then every new incident goes into an alert group
    storm_until: float = 0.0
    # id of the alert group that still collects; empty: none does
    alert_group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What was known of an incident when another one explained it."""

    incident: str
    # empty: nobody had acknowledged it
    acked_by: str
    severity: Priority
    # whether it kept its node out of service
    drained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceCandidate:
    """A place that was considered as the cause of a fault of several nodes."""

    # the scope: `rack/r1`
    place: str
    # how many of its nodes show it
    ill: int
    # how many nodes it has
    of: int
    # whether it is the one that was chosen
    best: bool = False
    # why it is the one, or why not, as people read it
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HitJob:
    """A job that ran on a node of an incident."""

    job: JobSeen
    # when its scheduler first said so
    since: float
    # when its scheduler first did not name it any more; 0: it still does
    gone_at: float = 0.0


@dataclass(slots=True, kw_only=True)
class HitNode:
    """What the scheduler of one node of an incident has said runs there, for people: nothing is decided by it."""

    # how often it was asked for this incident's sake
    asked: int = 0
    # when it first said what runs there, and when last; 0: never
    known_since: float = 0.0
    at: float = 0.0
    # why it has not, the last time that it was asked; empty: it has, or the answer is still out
    why: str = ""
    # its name; empty: no scheduler has the node. None: not told
    scheduler: str | None = None
    # those that run there still come first; bounded
    jobs: list[HitJob] = field(default_factory=list)
    # how many more it named
    unlisted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One time that an incident was open, of one that was opened again."""

    opened_at: float
    closed_at: float
    # why it was over
    why: str
    # how many nodes showed it
    nodes: int


@dataclass(slots=True, kw_only=True)
class LatelyClosed:
    """What is kept of an incident that is over while its fault may come back: then it is opened again (decision 85)."""

    # of the incident
    id: str
    closed_at: float
    # how often it has been open
    times: int
    # the last of these; bounded
    episodes: list[Episode]
    # how many runs it had: further ones are numbered on
    runs: int
    # the rule that opened it; empty: an earlier version kept none
    rule: str = ""
    # when its symptoms were gone, in seconds since 1970
    clear_since: float = 0.0
    # its alert, once everything was delivered; empty until then
    pages: PageState = field(default_factory=PageState)


@dataclass(slots=True, kw_only=True)
class Incident:
    """What people see: one fault, from open to closed; and open again, if it comes back soon."""

    id: str
    cause: str
    state: IncidentState
    severity: Priority
    scope: str
    # empty for a scope wider than a node
    node: str
    # that opened it
    rule: str
    because: str
    # empty: none, people must act
    runbook: str
    # version of the pack that opened it
    pack: str
    opened_at: float
    # until then it is settling
    hold_off_until: float
    # it closes when its symptoms have been gone this long
    resolve_delay_s: float
    page: Paging
    # "<rule>@<value>" of a rule with `page_once`: another incident may have been paged for it; empty: it has none
    page_once: str = ""
    # of the rule, for the runbook's `$name`s
    params: dict[str, Scalar] = field(default_factory=dict)
    # "<rule>@<scope>" of each match -> rule; empty: the fault is gone
    matching_rules: dict[str, str] = field(default_factory=dict)
    # "<symptom>@<scope>", in order of appearance; bounded
    symptoms: list[str] = field(default_factory=list)
    # of all symptoms, listed or not
    symptom_count: int = 0
    # how many nodes show it
    nodes: int = 1
    # bounded
    evidence: list[Evidence] = field(default_factory=list)
    # ids, oldest first
    runs: list[str] = field(default_factory=list)
    # number of incidents and matches that it explains
    explains: int = 0
    # nodes that it was seen on or that it explains
    affected: dict[str, bool] = field(default_factory=dict)
    # causes that it explains within its scope
    inhibits: list[str] = field(default_factory=list)
    # causes that it explains on its node while they began with it
    inhibits_on_node: list[str] = field(default_factory=list)
    # several parts of its node show it: it is the node's
    several: bool = False
    # of a place whose nodes fell ill one after the other: over what time, in place of the rule's reason; empty: of any other
    slow: str = ""
    slow_zh: str = ""
    # what its card had in other places, as a clause; empty: nothing is known
    past: str = ""
    # `because` and `past` in Chinese; empty: people read the English
    because_zh: str = ""
    past_zh: str = ""
    # "<rule>@<scope>" of matches that it explains -> what was known of their incident before
    known: dict[str, Known] = field(default_factory=dict)
    # id of the incident that explains this one
    explained_by: str = ""
    # every fact was old when it arrived; a fresh fact ends this
    stale: bool = False
    # a symptom of it ended without a fact that says so: its time to live was over, or it was reset on act
    unproven: bool = False
    # of a shared cause: when the last burst of its nodes began that people have heard of; 0: none but the first
    burst_told: float = 0.0
    # of a shared cause: the places that were considered, the chosen one first; empty: it was not judged
    places: list[PlaceCandidate] = field(default_factory=list)
    # how sure it is that this is the place, 0 to 1; 0: it was not judged
    sure: float = 0.0
    # node of it -> who is hit there; of many nodes the first ones
    hit: dict[str, HitNode] = field(default_factory=dict)
    # "<rule>@<scope>" of wider or crossing causes that this one explains: while they match, it stands for all nodes there
    stands_for: list[str] = field(default_factory=list)
    # settling beyond its hold-off: until when, and why; kept afterwards
    waits: str = ""
    # when the scheduler was asked who has drained its node, for what it is told; 0: it was not, or has answered
    drain_asked_at: float = 0.0
    pages: PageState = field(default_factory=PageState)
    # recovered: since when, and why
    clear_since: float = 0.0
    clear_why: str = ""
    # who has said since its fault last came that its node is healthy; empty: nobody
    vouched_by: str = ""
    closed_at: float = 0.0
    closed_why: str = ""
    # how often it has been opened; `opened_at` is the last time
    times: int = 1
    # when it was open before; of many the last times
    episodes: list[Episode] = field(default_factory=list)
    # how many runs it had before it was opened again
    runs_before: int = 0


@dataclass(slots=True, kw_only=True)
class Node:
    """What is known of a node besides its faults."""

    name: str
    # False: unreachable, no beat for a while
    alive: bool = True
    # boot id of its newest event
    boot: str = ""
    # when the first fact with this boot id occurred
    booted_at: float = 0.0
    # id of the spool that its events come from
    spool: str = ""
    # newest sequence number of `spool`: an event with this or a lower one is a repeat
    seq: int = 0
    # the same of the spool before
    spool_before: str = ""
    seq_before: int = 0
    # since when it has not answered a step, though it is heard; 0: it has answered the last one
    unanswered_at: float = 0.0
    # when it left steps so, whether or not it has answered since; bounded
    unanswered: list[float] = field(default_factory=list)
    # when it was last told that facts of its parts are left out; 0: never
    crowded_at: float = 0.0
    # when its agent last started, and began to tell what it found; 0: not known
    started_at: float = 0.0
    # when the first of several starts was that came soon after each other; 0: there was one
    starts_since: float = 0.0
    # when it was last heard before it became unreachable, and when it was heard again; 0: it never was
    silent_at: float = 0.0
    back_at: float = 0.0
    # when its agent last started that had been stopped in order before, as by a reboot that somebody asked for; 0: never
    in_order_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """A node that was silent, and told another version when it was back."""

    # when it told that
    at: float
    # when it was last heard before, and how long it was silent
    silent_at: float
    away_s: float


@dataclass(slots=True, kw_only=True)
class RollOut:
    """A version that came to nodes while they were silent."""

    # by node; for an hour
    done: dict[str, Upgrade] = field(default_factory=dict)
    # how many fell silent together, at most
    batch: int = 0


@dataclass(slots=True, kw_only=True)
class Traits:
    """Since when a node has had what it is compared with others by: driver, firmware, kernel, product."""

    # when it first told them. 0: before an earlier version kept this
    since: float
    # field of node.inventory -> when it was another one than before, and an hour more; absent: `since`
    changed: dict[str, float] = field(default_factory=dict)
    # field -> the value that it told last, where it tells none now
    untold: dict[str, str] = field(default_factory=dict)

    def begun(self, trait: str) -> float:
        """From when on what happens to the node counts for its version."""
        return max(self.since, self.changed[trait]) if trait in self.changed else self.since


@dataclass(slots=True, kw_only=True)
class OwnedDrain:
    """What one incident has taken, or keeps, out of service on one node."""

    since: float
    # ids of the incidents under which the scheduler has our mark: this one, and those that left theirs to it
    marks: list[str] = field(default_factory=list)
    # whether the scheduler has said that the node gets no new jobs, and nothing since has put that in doubt
    sure: bool = False
    # the scheduler's record of the node on which it stands; empty: it is not known, or people have taken it off there
    record: str = ""
    # a later record, on which it was missed
    missed_on: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruption:
    """The beginning of one disruptive run."""

    at: float
    # a scope wider than a node stands for itself
    node: str
    cause: str
    # what ran there
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bout:
    """A day on which a node needed a remedy."""

    # when the first of them began to disturb it
    at: float
    # for what
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMinute:
    """What the GPUs of one model and one job did on one node in a minute, as the node told it last."""

    node: str
    job: str
    # of the GPUs; empty: not known
    model: str
    # when the minute ended, and when the first one did that the node told of this job
    at: float
    since: float
    arrived: float
    # PCI addresses; and of each its SM clock (MHz), power (W) and utilisation (%), by blanks apart
    gpus: str
    sm_mhz: str
    power_w: str
    busy: str
    # the parts that are slower than their peers, `node` or `gpu/0000:3b:00`, by blanks apart; `?`: it deviates, and is not judged
    slow: str = ""
    # since when; 0: none is
    slow_since: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedPaths:
    """The paths from one interface of a node that are bad, as the node told it last."""

    # loss | slow
    what: str
    node: str
    component: str
    at: float
    arrived: float
    # peers that it probes on its own leaf switch and behind others; and which of them show it, `, ` apart
    near: int
    far: int
    near_ill: str
    far_ill: str
    # those of them that do not answer at all
    silent: str
    evidence: str
    figures: dict[str, float]
    # what its own words say of its own end; and what was told of it: link | across | path | none
    end: str
    place: str
    # that, and of which peers
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSteps:
    """How long the steps of a job take, in seconds."""

    # when it was told last
    at: float
    least: float
    newest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFault:
    """A fault that a card had."""

    at: float
    cause: str
    # where the card was: scope of a GPU
    place: str


@dataclass(slots=True, kw_only=True)
class Aftermath:
    """What became of a node after a runbook's last disruptive step there that was to heal it."""

    # when the step left
    at: float
    # for which
    incident: str
    severity: Priority
    # whether the node was heard then
    heard: bool
    # what shows that it was made worse, as a clause; empty: nothing does
    worse: str = ""


@dataclass(slots=True, kw_only=True)
class Hold:
    """An operator's stop on a scope."""

    id: str
    scope: str
    who: str
    why: str
    since: float
    # 0: until it is released
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJobs:
    """The scheduler's answer about a node; kept for a short while."""

    at: float
    # False: the scheduler could not be queried
    known: bool
    jobs: list[str]
    # a protected job that runs there; empty: none does
    protected: str = ""
    # why it is protected, or why nothing is known
    why: str = ""
    # why the node takes no new jobs; empty: it takes them
    drained: str = ""
    # whether that is a drain of ours; None: this was not asked
    ours: bool | None = None
    # which of the scheduler's records of the node that is; empty: it keeps one for ever
    record: str = ""
    # the jobs as people know them, of many the first ones
    seen: list[JobSeen] = field(default_factory=list)
    # how many more there are
    unlisted: int = 0
    # name of the scheduler; empty: none has the node. None: an earlier version did not say
    scheduler: str | None = None


@dataclass(slots=True, kw_only=True)
class ModeOverride:
    """An operator's mode for runbooks on nodes, in place of the site's setting."""

    # glob
    runbook: str
    # glob
    nodes: str
    mode: Mode
    # an operator's name, or `gpuward`
    who: str
    # of one that gpuward has set, which only makes stricter what was said before it: why, and when. Empty: an operator has
    why: str = ""
    since: float = 0.0


@dataclass(slots=True, kw_only=True)
class Early:
    """An event that came before the first rules."""

    event: Event
    # when it arrived
    at: float


@dataclass(slots=True, kw_only=True)
class State:
    """Everything that the engine remembers. Once all faults are over it is `fault_free` (law: forget)."""

    # time of the newest input; never runs backwards
    now: float = 0.0
    # the newest time by the server's clock: before `now` while that was set back. 0: an earlier version kept none
    stamp: float = 0.0
    # of the present leader; 0: there was none yet
    epoch: int = 0
    leader: str = ""
    # None: no rules yet
    pack: Pack | None = None
    nodes: dict[str, Node] = field(default_factory=dict)
    # by "<symptom>@<scope>"
    symptoms: dict[str, SymptomState] = field(default_factory=dict)
    # symptom that ended because a remedy is being verified; until its run is over, its node counts as showing it
    set_aside: dict[str, SetAside] = field(default_factory=dict)
    # spread symptom -> node that showed what it counts and does not any more -> when it began there; for within_s
    recovered: dict[str, dict[str, float]] = field(default_factory=dict)
    # spread symptom -> node that showed what it counts for a while, by itself -> when it began there; for six hours; bounded
    passed: dict[str, dict[str, float]] = field(default_factory=dict)
    # spread symptom of the cell -> symptom that it counts and a remedy has ended; until its facts would have ended it
    treated: dict[str, dict[str, SetAside]] = field(default_factory=dict)
    # node (empty: wider scopes) -> symptom, with what tells one of its facts apart -> (when it was over, when that was told); for
    # an hour; bounded
    over: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    # cause -> when it was told that it goes round, from node to node; not again for two days
    rounds: dict[str, float] = field(default_factory=dict)
    # scope -> rules that match there now
    matched: dict[str, list[str]] = field(default_factory=dict)
    # by id; those that are over are forgotten soon
    incidents: dict[str, Incident] = field(default_factory=dict)
    # by id; kept as long as their incident
    runs: dict[str, Run] = field(default_factory=dict)
    # run that has its node to itself -> node; in the order in which they claimed it
    claims: dict[str, str] = field(default_factory=dict)
    # "<runbook>@<cause>@<scope>" -> when its disruptive runs ended, for the runbook's `tries`
    tries: dict[str, list[float]] = field(default_factory=dict)
    # by id; kept until all that they list is over
    alert_groups: dict[str, AlertGroup] = field(default_factory=dict)
    # key of an alert -> id of the incident whose alert it is, where that is not the one with which it began
    alerts: dict[str, str] = field(default_factory=dict)
    # channel groups that were alerted lately, by name
    groups: dict[str, ChannelGroup] = field(default_factory=dict)
    # name -> when it is due
    timers: dict[str, float] = field(default_factory=dict)
    # by id
    holds: dict[str, Hold] = field(default_factory=dict)
    # node -> incident -> what it keeps out of service there; the node goes back with the last of them
    drains: dict[str, dict[str, OwnedDrain]] = field(default_factory=dict)
    # "<rule>@<scope>" of matches whose incident an operator closed -> when; a newer fact ends it
    dismissed: dict[str, float] = field(default_factory=dict)
    # "<cause>@<scope>" -> when it came up lately
    recurred: dict[str, list[float]] = field(default_factory=dict)
    # "<cause>@<scope>" -> its incident that is over, and is opened again if the fault comes back; at most as long as `recurred`
    lately_closed: dict[str, LatelyClosed] = field(default_factory=dict)
    # node -> when remedies disrupted it lately; bounded
    remedied: dict[str, list[float]] = field(default_factory=dict)
    # node -> the days on which it needed a remedy, the oldest first; for 28 days; bounded
    bouts: dict[str, list[Bout]] = field(default_factory=dict)
    # node -> "<slot>=<serial number>" of its cards, apart by blanks
    cards: dict[str, str] = field(default_factory=dict)
    # serial number of a card -> the faults that it had, wherever it was; for 28 days; bounded
    card_faults: dict[str, list[CardFault]] = field(default_factory=dict)
    # runbook -> node -> what became of it lately; bounded
    aftermath: dict[str, dict[str, Aftermath]] = field(default_factory=dict)
    # node that nobody may speak for -> when it was revoked, by the clock of the brain's machine where that was said; bounded
    shut_out: dict[str, float] = field(default_factory=dict)
    # node that was forgotten while it was drained -> our marks on it in the scheduler; until it is heard again; bounded
    left_behind: dict[str, list[str]] = field(default_factory=dict)
    # id of a join token that was taken away -> when, by the same clock; bounded
    void_tokens: dict[str, float] = field(default_factory=dict)
    # the last one that fits counts
    modes: list[ModeOverride] = field(default_factory=list)
    # node -> the scheduler's last answer, while it is fresh
    jobs: dict[str, NodeJobs] = field(default_factory=dict)
    # node -> when its scheduler was asked who is hit there, for a minute or until it has answered
    asked: dict[str, float] = field(default_factory=dict)
    # the disruptive runs that began lately, for the breaker
    began: list[Disruption] = field(default_factory=list)
    # since when the breaker has tripped; 0: it has not
    tripped: float = 0.0
    # "<runbook>@<node>" -> when a requested run last began there
    inspected: dict[str, float] = field(default_factory=dict)
    # "<kind> <node>" -> the fields that `unlike` symptoms compare, as JSON
    peers: dict[str, str] = field(default_factory=dict)
    # "<node> <job> <model>" -> its newest minute, the one that was told last standing last; bounded
    minutes: dict[str, JobMinute] = field(default_factory=dict)
    # "<what> <node> <interface>" -> its bad paths, those that were told last standing last; only while there are any
    paths: dict[str, ProbedPaths] = field(default_factory=dict)
    # job -> its steps, the one that was told last standing last; bounded
    steps: dict[str, JobSteps] = field(default_factory=dict)
    # node that people have drained -> (for how long it was silent in all, in seconds, and until when the last time); bounded
    shifts: dict[str, tuple[float, float]] = field(default_factory=dict)
    # node -> since when it has had its versions
    traits: dict[str, Traits] = field(default_factory=dict)
    # node that is unreachable now -> when it was last heard
    silent: dict[str, float] = field(default_factory=dict)
    # "<field of node.inventory> <value>" -> the nodes to which it came lately; until none has for an hour
    rollouts: dict[str, RollOut] = field(default_factory=dict)
    # "<symptom>" or "<symptom>/<xid>" -> node -> when it last began there, the newest last; for 28 days; bounded
    ill: dict[str, dict[str, float]] = field(default_factory=dict)
    # "<figure> <what the nodes are made of>" -> node -> its newest value, the newest last; bounded
    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    # id -> time, of inputs other than events and timers; bounded
    recent: dict[str, float] = field(default_factory=dict)
    # "<rule>@<value>" of rules with `page_once` -> node or wider scope -> when an incident of it was paged for the value; bounded
    paged_once: dict[str, dict[str, float]] = field(default_factory=dict)
    # number of messages that could not be read
    malformed: int = 0
    # events to judge when the first rules come; bounded
    early: list[Early] = field(default_factory=list)

    def time_at(self, stamp: float) -> float:
        """Returns what `now` is for a message with this timestamp of the server: the same (seconds since 1970).

        While the server's clock is behind `now`, because it was set back, time goes on at half the speed until the two meet
        (decision 45). Where it is behind by no more than the clocks of several servers differ, it stands still.
        """
        if stamp >= self.now - STANDS_STILL_S:
            return max(self.now, stamp)
        passed = max(0.0, stamp - self.stamp) if self.stamp else 0.0
        return self.now + passed / 2

    def heard(self, stamp: float) -> None:
        """A message has this timestamp: takes over the time. Between servers whose clocks differ a little none passes."""
        self.now = self.time_at(stamp)
        if not self.stamp - STANDS_STILL_S <= stamp < self.stamp:
            self.stamp = stamp

    def fault_free(self) -> bool:
        """Whether no trace of a fault is left. Operators' holds and modes, schedules and known nodes are no faults."""
        timers = [name for name in self.timers if not name.startswith(KEPT_TIMERS)]
        faults = self.symptoms or self.set_aside or self.matched or self.incidents or self.runs or self.drains
        remembered = self.tries or self.dismissed or self.alert_groups or self.groups or self.alerts
        return not (faults or remembered or timers)
