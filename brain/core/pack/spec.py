"""What people write in rules/ and runbooks/, as values. The YAML keys are these field names.

A `Pack` is all that the engine's decisions depend on besides its inputs. It is itself an input on the log, so a replay
uses the rules that were in force. Times are in seconds, rates per second. It is one file although it is long: this, and no more,
is the language of a pack, in the order in which the reference shows it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Literal

from agent.contract.actions.spec import Disrupts, Repeat
from agent.contract.messages import Severity

Scalar = str | int | float | bool
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
# A reference to a field of the situation in a rung's parameter. Alone it keeps the field's type; within a text
# (`link/$name`) it becomes text.
NAMED = re.compile(r"\$[a-z][a-z0-9_]*")
# The action that the engine performs itself: it pages people. Parameters: `to` (a channel group), `text` (advice; what was
# done is said by the words of TOLD).
PAGE = "page"
ONCALL = "oncall"  # the receiver that means the escalation chain
# What a page's text says of the run as `$word`; brain/core/healing/told.py fills it in.
TOLD = ("drained", "done", "evidence", "switched_off", "node", "distrust", "repair")
DRAIN = "$drain"  # in a `todo`; brain/core/healing/advice.py
# Pydantic reads these dataclasses too (brain/adapters/pack.py): unknown keys are errors.
_STRICT: dict[str, Any] = {"extra": "forbid"}


class Priority(StrEnum):
    """How urgent an incident is. The values sort by urgency, the most urgent first."""

    P0 = "P0"  # many nodes or the fabric: needs people within 5 minutes
    P1 = "P1"  # a node or GPU is lost to its jobs: within 30 minutes
    P2 = "P2"  # degraded, or healed automatically: in working hours
    P3 = "P3"  # worth knowing


class Mode(StrEnum):
    """How far a runbook may go by itself."""

    OBSERVE = "observe"  # plans only, nothing is done (default on a new site)
    APPROVE = "approve"  # an operator must approve each disruptive rung
    AUTO = "auto"  # acts unless a gate objects


class Paging(StrEnum):
    """When people are paged for an incident."""

    OPEN = "open"  # as soon as it is open
    FAILURE = "failure"  # when its run ends without success, or there is no runbook
    NEVER = "never"  # it is only listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Which events count."""

    kind: str
    # data field, severity, component, component_type or count -> a value, a list of values, or tests ({gte: 3, lt: 10});
    # all must pass, and a field that the event does not have fails every test but `exists: false`
    where: Mapping[str, Any] = field(default_factory=dict)
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """Events that together mean that something is wrong, with a start and an end."""

    # snake_case; unique in the pack
    name: str
    # gpu, nic, port, link, service, node, leaf, rack, pod, fabric, cell
    scope: str
    # one sentence for the page
    summary: str
    # the way of detection; brain/core/faults/symptoms.py and drift.py
    detect: Literal["seen", "count", "sum", "lasting", "absence", "flapping", "spread", "unlike"] = "seen"
    # events that start or feed it; empty only for spread
    on: tuple[Match, ...] = ()
    # events that end it; empty: it ends by ttl_s or by a verification
    clear: tuple[Match, ...] = ()
    # data fields, names of the envelope as in `where`, or `kind`: facts that differ in one of them are different faults, and an
    # event ends only the one with the same values; one of a kind that `on` does not name ends all. Empty: any ends the symptom
    apart: tuple[str, ...] = ()
    # count: events · sum: total of `sum_of` · flapping: changes · spread: nodes · unlike: nodes with the baseline value
    at_least: float = 1.0
    # count, sum, flapping: length of the window, by the times when the facts occurred · spread: so many nodes must have
    # begun within it; those who recovered since count too, as long as half of the number show it
    within_s: float = 0.0
    # sum: the data field that is added up
    sum_of: str = ""
    # begins when · lasting: it was not cleared · absence: it was not seen · unlike: the node differed · for this long
    for_s: float = 0.0
    # spread: the symptom whose nodes are counted
    of: str = ""
    # spread, unlike: and at least this share of the nodes, 0 to 1
    share: float = 0.0
    # spread: or so many nodes that began to show it within within_s, whatever the share; 0: the share decides
    enough: float = 0.0
    # spread: or at_least nodes on which it began within this time, whatever the share and within_s: so many faults that have
    # nothing to do with each other do not begin so close together. Not where the agent had just started; 0: never
    at_once_s: float = 0.0
    # unlike: data fields; nodes with equal values in all of them are compared
    alike: tuple[str, ...] = ()
    # unlike: the data field that is compared
    compare: str = ""
    # ends when no fact renewed it for this long; guards against a fault that stays open for ever
    ttl_s: float = 3600.0
    # kinds of places, such as storage: where one of them has as many of the nodes that show it as another place, it is taken for
    # the cause, also when a tenth of its nodes have not noticed yet. Empty: the narrower place
    accuses: tuple[str, ...] = ()
    # situation field -> data field of the newest event; of a text that stands in `apart`: of all open facts, by blanks apart
    carry: Mapping[str, str] = field(default_factory=dict)
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A site's own judgement of an event, in place of the vendor's. The first override that fits an event counts."""

    name: str
    on: Match
    # why the site judges otherwise; shown with the evidence
    because: str
    # None: the event's own
    severity: Severity | None = None
    # in place of the catalogue's; empty: the event's own
    action: str = ""
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The same text in English and Chinese."""

    en: str
    zh: str
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What to do in one case of a fault, by what is known of it."""

    # on the situation, like the `when` of a rung
    when: Mapping[str, Any]
    # in place of the knowledge's
    todo: Text
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What people who are paged need to know. In `todo`, `$drain` says to drain the node, and nothing once it is drained."""

    cause: Text
    todo: Text
    # the first whose `when` holds takes the place of `todo`
    advice: tuple[Advice, ...] = ()
    links: tuple[str, ...] = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One thing that happens in an example: exactly one of kernel, event and unreachable."""

    # seconds after the start of the example
    at: float = 0.0
    node: str = "n1"
    # kernel lines: the agent's parser makes the events
    kernel: str = ""
    # an event kind, with component, data and severity
    event: str = ""
    component: str = "node"
    data: Mapping[str, Scalar] = field(default_factory=dict)
    # empty: the kind's own
    severity: str = ""
    # how old the events are when they arrive
    age_s: float = 0.0
    # the node becomes unreachable
    unreachable: bool = False
    # more than 1: the same on nodes n1 .. nN instead of `node`
    nodes: int = 1
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What an example must lead to."""

    # no incident at all
    nothing: bool = False
    # an incident with this cause
    incident: str = ""
    # its scope, e.g. gpu/n1/0000:3b:00; empty: any
    scope: str = ""
    # its runbook; empty: any
    runbook: str = ""
    # number of incidents in all; None: any
    incidents: int | None = None
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Given events over time → expected outcome. Every rule needs a positive and a negative one."""

    name: str
    given: tuple[Given, ...]
    expect: Expect
    # the leaf switch of all its nodes; empty: their places are not known
    leaf: str = ""
    # their rack; empty: it is not known
    rack: str = ""
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Situation → incident and runbook, with a reason."""

    # kebab-case; unique in the pack
    name: str
    # type of the scopes whose situations it matches
    scope: str
    # the language: brain/core/pack/conditions.py
    when: Mapping[str, Any]
    severity: Priority
    # one sentence: why these symptoms mean this cause
    because: str
    knowledge: Knowledge
    examples: tuple[Example, ...]
    # `because` in Chinese; empty: people read the English
    because_zh: str = ""
    # rules with one cause and overlapping scopes make one incident; empty: the rule's name
    cause: str = ""
    # empty: none, people must act
    runbook: str = ""
    # values for the runbook's `$name`s
    params: Mapping[str, Scalar] = field(default_factory=dict)
    # before paging or acting, wait this long for a wider cause that explains it
    hold_off_s: float = 0.0
    # an incident closes when its symptoms have been gone for this long
    resolve_delay_s: float = 30.0
    # causes that this one explains: their incidents within its scope are absorbed
    inhibits: tuple[str, ...] = ()
    # causes that it explains anywhere on its node, if they began from ten minutes before it to forty minutes after it
    inhibits_on_node: tuple[str, ...] = ()
    # of a rule for a place: causes that it explains where many nodes of the same place share them, if that began then: nodes that
    # are silent since their switch died
    inhibits_together: tuple[str, ...] = ()
    # of a node that people have drained, where a scheduler says so: it is told only when it has lasted for so long, since they
    # are at work there; 0: at once, as of any other node
    drained_s: float = 0.0
    page: Paging = Paging.FAILURE
    # a field of the situation, for example a code: each of its values is paged for the first two nodes that show it, once
    # for each, not once for each scope; empty: none
    page_once: str = ""
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """When a rung worked: the symptoms are gone within `within_s` of its end and then stay gone for `for_s`."""

    within_s: float
    for_s: float
    # symptoms; empty: all of the incident's
    gone: tuple[str, ...] = ()
    # Symptoms (`*`: all) that end when the rung is done and return only with a new fact; symptoms without `clear` always
    # do. For facts that no later event clears, for example an XID before a reset, and for reboots: the agent starts
    # again and reports what it finds.
    reset_on_act: tuple[str, ...] = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One step of a ladder."""

    name: str
    # an action's name
    do: str
    # "$name" takes a field of the situation, or a parameter of the rule
    params: Mapping[str, Scalar] = field(default_factory=dict)
    # 0: the action's own
    timeout_s: float = 0.0
    # further attempts after a failure or a failed verification
    retries: int = 0
    # None: as the action declares; a rung can only declare worse
    disrupts: Disrupts | None = None
    # None: as the action declares; a rung can only be more careful
    repeat: Repeat | None = None
    # precheck on the situation; if it is false, the rung is skipped
    when: Mapping[str, Any] = field(default_factory=dict)
    # in return_to_service: only if one of these rungs of the ladder was begun, so that a node is tested by what was done to
    # it; empty: always
    after: tuple[str, ...] = ()
    # None: the rung heals nothing (evidence, page), and the ladder goes on
    verify: Verify | None = None
    # next: the next rung · stop: the run fails · quit: the run ends and has succeeded
    on_failure: Literal["next", "stop", "quit"] = "next"
    # after a refusal, when nothing was done; empty: as on_failure. With `next`, a requested run succeeds without the
    # rung, and a node returns to service without the test: not every node has what an inspection looks at. People are told.
    on_refusal: Literal["", "next", "stop"] = ""
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Runbook:
    """A remedy as a ladder of rungs, gentlest first."""

    name: str
    summary: str
    rungs: tuple[Rung, ...]
    # performed once a rung has worked, if any rung disrupted something
    return_to_service: tuple[Rung, ...] = ()
    # when several parts of a node show the fault it may be run once, for all of them: `$component` is `node` then
    several: bool = False
    # when three parts of a node show the fault within ten minutes, this runbook is run once in place of it, for all of them;
    # empty: it is run for each part
    for_several: str = ""
    # operators (`gpuward start`) and its schedule may start it without a fault
    request: bool = False
    # with `request`: what it is started on
    scope: Literal["node", "fabric"] = "node"
    # with `request`: its schedule, once in this time on each node or fabric; 0: none
    every_s: float = 0.0
    # with `every_s`: a symptom of nodes; the schedule starts it only where that is active. Empty: on every node
    only_while: str = ""
    # the loosest mode that the site and operators can give it; `approve`: what people start themselves waits for an approval, too
    at_most: Mode = Mode.AUTO
    # with `at_most: approve`: a symptom of the node. While it is active, and the scheduler says that no job runs there, the mode
    # may be auto where the site wants it (restart_lost_nodes_s); empty: never
    alone_if: str = ""
    # a remedy tried this often for one fault within tries_within_s is not tried again: people must act
    tries: int = 2
    tries_within_s: float = 86400.0
    # the runbook that is run instead when it may not be tried again; it only fences: evidence, drain, page. Empty: none
    last_resort: str = ""
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeSetting:
    """The mode of runbooks on nodes. The last setting that fits counts."""

    mode: Mode
    # glob
    runbook: str = "*"
    # glob; a scope wider than a node has the empty name
    nodes: str = "*"
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationStep:
    """A step of an escalation chain: who is paged if the incident is not acknowledged by then."""

    # channel group
    to: str
    # since the first page; the chain's first step is always at once
    after_s: float = 0.0
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainWait:
    """How long a drain waits for the jobs of its node, and what follows when some are left."""

    # 0 to 30 days
    wait_s: float
    # fail: the ladder stops, the drain stays and a person decides · requeue: the jobs are ended and start again elsewhere,
    # unless one is protected · go_on: the ladder goes on beside them
    then: Literal["fail", "requeue", "go_on"] = "fail"
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


# The classes of faults, by what they mean for jobs, with the waits of a site that sets none.
# degraded: the jobs run on and would be hurt by the remedy · dead: what used the dead part is lost, others may run on
DRAINS: Mapping[str, DrainWait] = {
    "degraded": DrainWait(wait_s=7 * 86_400),
    "dead": DrainWait(wait_s=14_400, then="requeue"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """Hours of the week, in the site's own time (`settings.zone`)."""

    # mon .. sun
    days: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri")
    # 0 to 24; half hours as 8.5
    from_hour: float = 8
    # the same; later than from_hour
    until_hour: float = 18
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """Pages of one severity that wake nobody: they wait for the site's hours, and go together in one message."""

    # channel group, for example that of the ticket system; no group of a severity that is paged at once
    to: str
    # empty: at any hour
    hours: tuple[Hours, ...] = (Hours(),)
    # within the hours: how long a digest collects; 0: each incident goes at once, by itself
    every_s: float = 3600
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Tickets:
    """What needs hands has a ticket, beside the pages that call people."""

    # channel group that keeps them; no group of people who are paged
    to: str
    # incidents of these severities have one as soon as people are told
    severities: tuple[Priority, ...] = (Priority.P2, Priority.P3)
    # one of any other has one when its runbook has nothing left to try, or it has none
    gave_up: bool = True
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A maintenance window: nothing disruptive happens in its scope without an approval, and nobody is called for what lies
    wholly within it before it ends (brain/core/paging/quiet.py).
    """

    # as in a hold: `node/n1`, `rack/r3`, `all`
    scope: str
    # seconds since 1970 UTC; in brain.toml a date and time
    since: float
    # the same
    until: float
    why: str
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The site's settings for decisions. The defaults are cautious."""

    # the last one that fits counts
    modes: tuple[ModeSetting, ...] = (ModeSetting(mode=Mode.OBSERVE),)
    # most disruptive runs at once: in the cell
    disruptive_runs: int = 3
    # in one chassis, leaf, rack or pod
    disruptive_runs_per_leaf: int = 1
    # of one runbook
    disruptive_runs_per_runbook: int = 2
    # A symptom has a shared cause, and leads to no per-node action (law 6), when this many nodes
    shared_nodes: int = 8
    # and this share of the cell's nodes, 0 to 1, show it
    shared_share: float = 0.1
    # In a site with few nodes, this share of them (and at least 3) is enough, 0 to 1; more than 1: never.
    shared_small_share: float = 0.5
    # Of a leaf or rack, this many nodes that began to show it within this time are enough, whatever the share. Nodes
    # that recovered since count for the growth, in the cell too, as long as half of the number show it.
    shared_leaf_nodes: int = 4
    # the time of shared_leaf_nodes and of the other limits of shared causes
    shared_within_s: float = 900.0
    # In a place that is larger than a leaf or rack, and in the cell, shared_nodes nodes (and at least 8) that begin to show it
    # within this time are enough, whatever the share; 0: never
    shared_at_once_s: float = 30.0
    # no disruptive rung before the incident is this old: by then a shared fault shows on other nodes too
    hold_off_s: float = 2.0
    # a fault older than this when it arrived needs a fresh fact or an approval before a disruptive rung
    stale_s: float = 120.0
    # how long an approval is valid
    approval_s: float = 3600.0
    # a fault that comes back within this time of its incident's end opens that incident again, under the same alert; 0: each time
    # is an incident of its own. At most a day
    reopens_s: float = 28_800.0
    # maintenance windows: nothing disruptive in their scopes without an approval, and what lies within them calls nobody before
    # their end, P0 excepted
    maintenance: tuple[Window, ...] = ()
    # query the scheduler for a node's jobs before a disruptive rung (set when a scheduler is configured)
    ask_jobs: bool = False
    # a node that neither gpuward nor its scheduler hears, and on which no job runs by what the scheduler says, is restarted by
    # its BMC without an approval when it has been silent for so long, where the runbook is in auto mode (wake-node); 0: never.
    # Longer than a server takes to boot, and than people of the site work on one without a drain
    restart_lost_nodes_s: float = 0.0
    # query the scheduler for the jobs on an incident's nodes, so that people read who is hit (set when a scheduler is configured)
    ask_who_is_hit: bool = False
    # most disruptive runs at once on nodes of one job, when the scheduler is queried
    disruptive_runs_per_job: int = 1
    # disruptive runs on this many nodes of the cell within breaker_within_s trip the breaker: none begins until it is reset
    breaker_runs: int = 30
    # the time of breaker_runs and same_cause_nodes
    breaker_within_s: float = 3600.0
    # when disruptive runs for one cause began on this many nodes within breaker_within_s, or within a day where one job ran (one
    # in 250 of its nodes if those are more), or wait there for this reason, one on a further node needs an approval
    same_cause_nodes: int = 5
    # the same for remedies that disrupt the whole node, on so many within a day, or on 1 % of the cell's if those are more
    same_cause_nodes_per_day: int = 10
    # most remedies in a day that disrupt a node or a chassis, whatever each was for; then people must act
    remedies_per_day: int = 3
    # the same in 7 days
    remedies_per_week: int = 6
    # the same in 30 days
    remedies_per_month: int = 10
    # class of the fault (degraded, dead) -> how long its drain waits for jobs, and what then; a class without: degraded
    # 7 days, then fail; dead 4 hours, then requeue
    drains: Mapping[Literal["degraded", "dead"], DrainWait] = field(default_factory=dict)
    # a runbook after which this many nodes were worse is taken back to approve mode, and people are told; 0: never
    harm_nodes: int = 3
    # if they are also more than this share of the nodes that it treated in 14 days, 0 to 1 (Wilson's lower bound)
    harm_share: float = 0.25
    # when a page is repeated, since the first page; after the last one, that pause again and again
    page_repeat_s: tuple[float, ...] = (300, 600, 1200, 2400, 4800)
    # the severities whose pages are repeated until somebody acknowledges; a page of another one is sent once
    page_repeats: tuple[Priority, ...] = (Priority.P0, Priority.P1)
    # severity -> where its pages go instead of to a chain, and in which hours
    digests: Mapping[Priority, Digest] = field(default_factory=dict)
    # which incidents have a ticket, and where; none: there are no tickets
    tickets: Tickets | None = None
    # the site's time zone for hours, as in the tz database (Europe/Berlin); empty: UTC
    zone: str = ""
    # seconds since 1970 UTC -> the zone's offset from UTC in seconds from then on; read from the tz database by the brain
    utc_offsets: tuple[tuple[float, float], ...] = ()
    # severity -> chain of channel groups; for a severity without one, the group `oncall`
    escalation: Mapping[Priority, tuple[EscalationStep, ...]] = field(default_factory=dict)
    # the site's channel groups; read from [groups] by the brain. A page to another group goes to those on call. Empty: not known
    groups: tuple[str, ...] = ()
    # the alert that makes it this many nodes with new ones for a channel group within group_within_s, and those after it, form
    # an alert group; so many of one node form one of its own; 0: never
    group_at_least: int = 5
    # how long an alert group collects before it is paged
    group_within_s: float = 30.0
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a node is: the name of its place of each kind. Empty: not known."""

    # several nodes that share power supplies or a backplane; empty: the node has its own
    chassis: str = ""
    # NVLink domain: nodes whose GPUs one set of NVLink switches connects
    nvlink: str = ""
    # leaf switch; the first one of a node with several (`also`, `rails`)
    leaf: str = ""
    rack: str = ""
    # feed, PDU or busbar
    power: str = ""
    # cooling loop or the unit that feeds it
    cooling: str = ""
    # file server that the node's jobs and images come from
    storage: str = ""
    row: str = ""
    pod: str = ""
    room: str = ""
    fabric: str = "default"
    # further places, as scopes: `power/feed-b` of a node with two feeds
    also: tuple[str, ...] = ()
    # device of the node -> the leaf switch that it is connected to, where each rail has its own
    rails: Mapping[str, str] = field(default_factory=dict)
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    def names(self, kind: str) -> tuple[str, ...]:
        """The names of its places of one kind, the first one first."""
        first: str = getattr(self, kind)
        if not first:
            return ()
        if not self.also and not self.rails:
            return (first,)
        further = [one.partition("/")[2] for one in self.also if one.partition("/")[0] == kind]
        rails = self.rails.values() if kind == "leaf" else ()
        return tuple(dict.fromkeys((first, *further, *rails)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """All that decides: symptoms, rules, runbooks, overrides, settings and topology."""

    # digest of the content; incidents and runs name it
    version: str
    symptoms: tuple[Symptom, ...]
    rules: tuple[Rule, ...]
    runbooks: tuple[Runbook, ...]
    settings: Settings = field(default_factory=Settings)
    # node -> place
    places: Mapping[str, Place] = field(default_factory=dict)
    overrides: tuple[Override, ...] = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
