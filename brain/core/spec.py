"""What people write in rules/ and runbooks/, as values. The YAML keys are these field names.

A `Pack` is everything that the engine's decisions depend on besides its inputs: it travels on the log itself, so a
replay uses the rules that were in force. Every time is in seconds, every rate per second.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Literal

from agent.contract.actions.spec import Disrupts, Repeat
from agent.contract.messages import Severity

Scalar = str | int | float | bool
# Pydantic reads these dataclasses too (brain/adapters/pack.py): unknown keys are errors.
_STRICT: dict[str, Any] = {"extra": "forbid"}


class Priority(StrEnum):
    """How urgent an incident is."""

    P0 = "P0"  # many nodes or the fabric: somebody must look within 5 minutes
    P1 = "P1"  # a node or GPU is lost to its jobs: within 30 minutes
    P2 = "P2"  # degraded, or healed by itself: working hours
    P3 = "P3"  # worth knowing


class Mode(StrEnum):
    """How far a runbook may go by itself."""

    OBSERVE = "observe"  # plan only, nothing is done (default on a new site)
    APPROVE = "approve"  # a person must agree before anything disruptive
    AUTO = "auto"  # go, if the gates say so


class Paging(StrEnum):
    """When people are told of an incident."""

    OPEN = "open"  # as soon as it is open
    FAILURE = "failure"  # when the runbook gave up or there is none
    NEVER = "never"  # it stands in the list only


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Which events count. `where` maps a data field (or severity, component, component_type, count) to a value, a list
    of values, or tests such as {gte: 3, lt: 10}; all must hold. A field that the event does not have never matches."""

    kind: str
    where: Mapping[str, Any] = field(default_factory=dict)
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """Events that together mean that something is wrong, with a start and an end."""

    name: str  # snake_case; unique in the pack
    scope: str  # gpu, nic, port, link, service, node, leaf, rack, pod, fabric, cell
    summary: str  # one sentence for the page
    detect: Literal["seen", "count", "sum", "lasting", "absence", "flapping", "spread", "unlike"] = "seen"
    on: tuple[Match, ...] = ()  # what starts or feeds it; empty only for spread
    clear: tuple[Match, ...] = ()  # what ends it; empty: it ends by ttl_s or by a verification
    # count: events · sum: total of `sum_of` · flapping: changes · spread: nodes · unlike: nodes with the usual value
    at_least: float = 1
    within_s: float = 0  # count, sum, flapping, spread: the window, counted from the facts' own times
    sum_of: str = ""  # sum: the data field that is added up
    for_s: float = (
        0  # lasting: not cleared for so long · absence: not seen for so long · unlike: not so for so long
    )
    of: str = ""  # spread: the symptom whose nodes are counted
    share: float = 0  # spread, unlike: and at least this share of the nodes, 0 to 1
    alike: tuple[str, ...] = ()  # unlike: data fields; nodes with equal values in all of them are compared
    compare: str = ""  # unlike: the data field in which a node differs from most of those
    ttl_s: float = (
        3600  # ends when nothing renewed it for so long; guards against a fault that stays "open" for ever
    )
    carry: Mapping[str, str] = field(
        default_factory=dict
    )  # situation field <- data field of the newest event
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A site's own verdict on a fact, in place of the vendor's: the first that fits an event counts."""

    name: str
    on: Match
    because: str  # why the site knows better; stands in the evidence
    severity: Severity | None = None  # None: as the node says
    action: str = ""  # instead of the catalogue's; empty: as the node says
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The same text in English and Chinese."""

    en: str
    zh: str
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What a person who is woken by it needs to know."""

    cause: Text
    todo: Text
    links: tuple[str, ...] = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One thing that happens in an example, `at` seconds after its start. Exactly one of kernel, event, node, said."""

    at: float = 0
    node: str = "n1"
    kernel: str = ""  # a kernel line: the agent's own parser makes the event
    event: str = ""  # an event kind, with component and data
    component: str = "node"
    data: Mapping[str, Scalar] = field(default_factory=dict)
    severity: str = ""  # default: the kind's usual one
    age_s: float = 0
    silent: bool = False  # the node falls silent
    nodes: int = 1  # the same on so many nodes n1 .. nN
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What an example must lead to. `nothing: true` says: no incident at all."""

    nothing: bool = False
    incident: str = ""  # cause
    scope: str = ""  # e.g. gpu/n1/0000:3b:00
    runbook: str = ""
    incidents: int | None = None  # how many incidents in all
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Given events over time → expected outcome. Every rule needs a positive and a negative one."""

    name: str
    given: tuple[Given, ...]
    expect: Expect
    leaf: str = ""  # its nodes stand under this leaf switch; empty: their places are not known
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Situation → incident and runbook, with a reason."""

    name: str
    scope: str
    when: Mapping[str, Any]  # see brain/core/conditions.py
    severity: Priority
    because: str  # one sentence: why these symptoms mean this cause
    knowledge: Knowledge
    examples: tuple[Example, ...]
    cause: str = ""  # rules with one cause and overlapping scopes make one incident; default: the rule's name
    runbook: str = ""  # empty: people only
    params: Mapping[str, Scalar] = field(default_factory=dict)  # for the runbook's `$name`s
    settle_s: float = 0  # wait so long for a cause that explains it before paging or acting
    quiet_s: float = 30  # an incident closes when its symptoms have been gone for so long
    inhibits: tuple[str, ...] = ()  # causes within this scope that this one explains
    page: Paging = Paging.FAILURE
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """A rung worked if the symptoms are gone `within_s` after it and stay so `for_s`."""

    within_s: float
    for_s: float
    gone: tuple[str, ...] = ()  # symptoms; empty: all of the incident's
    # Symptoms that a rung makes a matter of the past (`*`: all): set aside when it is done, and back if they are said
    # anew. For what nothing takes back (an XID before a reset), and for a reboot: a new agent says what it finds.
    anew: tuple[str, ...] = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One step of a ladder."""

    name: str
    do: str  # an action's name
    params: Mapping[str, Scalar] = field(
        default_factory=dict
    )  # "$name" takes a field of the situation or rule
    timeout_s: float = 0  # 0: the action's default
    retries: int = 0  # more attempts after a failure or a failed verification
    disrupts: Disrupts | None = None  # None: what the action says; may only be made worse
    repeat: Repeat | None = None  # None: what the action says
    when: Mapping[str, Any] = field(
        default_factory=dict
    )  # precheck on the situation; false: the rung is skipped
    verify: Verify | None = None  # None: the rung heals nothing (evidence, page); the ladder goes on
    on_failure: Literal["next", "stop", "quit"] = "next"  # quit: the run ends there, and that is no failure
    # After a refusal (nothing was done); empty: as on_failure. With `next` a run that people asked for is as good
    # without it: not every node has what an inspection looks at.
    on_refusal: Literal["", "next", "stop"] = ""
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Runbook:
    """A remedy as a ladder of rungs, gentlest first."""

    name: str
    summary: str
    rungs: tuple[Rung, ...]
    way_back: tuple[Rung, ...] = ()  # once a rung has worked (and only if one disrupted): back into service
    request: bool = False  # people may start it without a fault (`gpuward start`), and a schedule may
    scope: Literal["node", "fabric"] = "node"  # with `request`: what it is started on
    every_s: float = 0  # with `request`: on each of those once in so long, one at a time; 0: never by itself
    at_most: Mode = Mode.AUTO  # the site may not set it looser than this
    tries: int = 2  # a remedy that failed so often in tries_within_s is not tried again: a person
    tries_within_s: float = 86400
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeSetting:
    """The mode of runbooks on nodes; the last setting that fits wins."""

    mode: Mode
    runbook: str = "*"  # glob
    nodes: str = "*"  # glob
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationStep:
    """Who is told next when nobody has acknowledged."""

    to: str  # channel group
    after_s: float = 0  # since the first page; the first step is always at once
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A maintenance window: what is disturbed in it, and by whom, people have arranged."""

    scope: str  # as in a hold: `node/n1`, `rack/r3`, `all`
    since: float  # seconds since 1970 UTC; brain.toml takes a date and time
    until: float
    why: str
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The site's part of what decides. Defaults are the cautious ones."""

    modes: tuple[ModeSetting, ...] = (ModeSetting(mode=Mode.OBSERVE),)
    disruptive_runs: int = 3  # at once in the cell
    disruptive_runs_per_leaf: int = 1  # and in one leaf, rack or pod each
    disruptive_runs_per_runbook: int = 2
    shared_nodes: int = (
        8  # so many nodes with one symptom within shared_within_s, and shared_share of the fleet:
    )
    shared_share: float = 0.1  # a shared cause, no per-node action (law 6)
    shared_within_s: float = 60
    settle_s: float = 2  # no disruptive rung before an incident is so old: a storm shows itself by then
    stale_s: float = 120  # a fault older than this when it arrived needs a fresh sign or an approval before a disruptive rung
    approval_s: float = 3600  # how long an approval holds
    maintenance: tuple[Window, ...] = ()  # nothing disruptive without an approval
    ask_jobs: bool = (
        False  # ask the scheduler what runs on a node before disturbing it (set when there is one)
    )
    disruptive_runs_per_job: int = 1  # at once on nodes of one job, when the scheduler is asked
    breaker_runs: int = 30  # so many disruptive runs in the cell within breaker_within_s trip the breaker:
    breaker_within_s: float = 3600  # no further ones until a person says `reset`
    page_repeat_s: tuple[float, ...] = (
        300,
        600,
        1200,
        2400,
        4800,
    )  # since the first page, then every last one
    escalation: Mapping[Priority, tuple[EscalationStep, ...]] = field(
        default_factory=dict
    )  # severity -> chain of groups; a severity without one: the people on call, again and again
    bundle_at_least: int = (
        5  # so many new alerts for one group within bundle_within_s, and this one and the next
    )
    bundle_within_s: float = 30  # wait so long and go as one page; 0 alerts: never bundled
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a node stands; empty: not known."""

    leaf: str = ""
    rack: str = ""
    pod: str = ""
    fabric: str = "default"
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """All that decides: symptoms, rules, runbooks, settings, topology."""

    version: str  # digest of the content; runs and incidents name it
    symptoms: tuple[Symptom, ...]
    rules: tuple[Rule, ...]
    runbooks: tuple[Runbook, ...]
    settings: Settings = field(default_factory=Settings)
    places: Mapping[str, Place] = field(default_factory=dict)  # node -> place
    overrides: tuple[Override, ...] = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
