"""The keys of a story."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from agent.contract.messages import Scalar, Severity
from simulations.faults import Fix

_STRICT: dict[str, Any] = {"extra": "forbid"}
# Keys of a line that say what happens; a line has exactly one of them.
VERBS = (
    *("port_down", "link_down", "gpu_lost", "wants_reset", "xid", "kernel", "event", "hot", "dark", "silent"),
    *("agent_restarts", "sm_master", "unit_fails", "inventory", "job", "job_ends", "drained", "drill"),
    *("repaired", "says", "nobody_leads", "restarts", "stands"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorySite:
    """The nodes, n000 and so on, and where they are. A number: so many neighbours share a place; 0: it is not known.

    Names instead of a number: place -> its nodes, as in `n[000-031]`; a node may stand in several, as with two feeds.
    """

    nodes: int = 64
    chassis: int | Mapping[str, str] = 0
    nvlink: int | Mapping[str, str] = 0
    leaf: int | Mapping[str, str] = 32
    rack: int | Mapping[str, str] = 16
    power: int | Mapping[str, str] = 0
    cooling: int | Mapping[str, str] = 0
    storage: int | Mapping[str, str] = 0
    row: int | Mapping[str, str] = 0
    pod: int | Mapping[str, str] = 64
    room: int | Mapping[str, str] = 0
    # so many ports of each node go to leaf switches of their own: `leaf-0-rail-3` of mlx5_3; 0: all to one
    rails: int = 0
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Shut:
    """A maintenance window, in seconds after the start."""

    scope: str
    since: float
    until: float
    why: str
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryLine:
    """One line of a timeline: when, on which nodes, and one of VERBS."""

    # seconds after the start
    at: float
    # nodes: `n003`, `n[000-031]`, every second one `n[000-031/2]`; several apart by blanks
    on: str = ""
    # the next node so many seconds later; 0: all at once
    every: float = 0.0
    # the whole line so often, with this pause
    times: int = 1
    pause: float = 0.0
    # ends after so many seconds; 0: when it is fixed
    lasts: float = 0.0
    # an event arrives so many seconds after its fact occurred
    age: float = 0.0
    # so many equal facts in one event
    count: int = 1
    # which of the eight GPUs: its index, several, or all
    gpu: int | tuple[int, ...] | Literal["all"] = 0

    # an InfiniBand port (`mlx5_0`) loses its link: the other end is dead
    port_down: str = ""
    # an interface (`eth1`) loses its carrier until it is taken down and up
    link_down: str = ""
    # a GPU falls off the bus: until a power cycle, or for good
    gpu_lost: Literal["", "until power", "for good"] = ""
    # XID 95, and NVML wants a reset of the GPU
    wants_reset: bool = False
    # a line of the NVIDIA driver, with `text` after the code
    xid: int = 0
    text: str = "pid=1234, name=python3, something happened"
    # a line of the kernel log
    kernel: str = ""
    # any event: its kind
    event: str = ""
    # `{gpu}` in it is the address of the GPU
    component: str = "node"
    severity: Severity | None = None
    data: Mapping[str, Scalar] = field(default_factory=dict)
    # the fields of the event that says that it is over; empty: nothing says so
    well: Mapping[str, Scalar] = field(default_factory=dict)
    # the kind of that event, if it is another one
    well_kind: str = ""
    # UFM and the like report it, not the node: its name
    source: str = ""
    # what ends it besides time
    fixed_by: tuple[Fix, ...] = ()
    # GPUs are at their temperature limit
    hot: bool = False
    # no power, or not a sign of life, for so many seconds
    dark: float = 0.0
    silent: float = 0.0
    # somebody restarts the node in order, which takes so many seconds
    restarts: float = 0.0
    # the topology says from now on that the nodes stand elsewhere: kind -> name; empty: it is not known any more
    stands: Mapping[str, str] = field(default_factory=dict)
    # the agent is silent for so many seconds and starts again
    agent_restarts: float = 0.0
    # another subnet manager becomes master: its LID
    sm_master: int = 0
    # a systemd unit fails
    unit_fails: str = ""
    # the node tells its versions and parts; what differs from the usual ones
    inventory: Mapping[str, Scalar] = field(default_factory=dict)
    # a job starts; it ends
    job: str = ""
    protected: bool = False
    job_ends: str = ""
    # somebody drains the node by hand, for this reason
    drained: str = ""
    # a drill of simulations/drills
    drill: str = ""
    # people have repaired the node
    repaired: bool = False
    # an operator's command, with its arguments; `about`: of each open incident whose cause this is
    says: str = ""
    about: str = ""
    args: Mapping[str, Scalar] = field(default_factory=dict)
    # no brain leads for so many seconds
    nobody_leads: float = 0.0
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    @property
    def verb(self) -> str:
        """What happens."""
        return next((name for name in VERBS if getattr(self, name)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """An incident that people should see. Patterns as of a shell; any one of several will do."""

    cause: str | tuple[str, ...]
    # scope, as in `leaf/leaf-0` or `gpu/n003/*`
    place: str | tuple[str, ...]
    # of the end
    state: str | tuple[str, ...] = "*"
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryExpect:
    """What a good engineer would want."""

    # each is seen once; those that another one explains are not seen
    incidents: tuple[Sight, ...] = ()
    # these instead are as good
    or_incidents: tuple[Sight, ...] = ()
    # incidents seen in all, at most; None: as many as are listed
    most: int | None = None
    # nodes that may be disturbed, and `fabric` for what is about no node; empty: none
    disturbed: str = ""
    # so many of them at most; None: all
    disturbed_most: int | None = None
    # node -> actions that must be among those done there
    done: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # actions that are done nowhere
    never: tuple[str, ...] = ()
    # new pages and news at most; repeats until somebody acknowledges and resolutions do not count
    pages: int
    # words that stand in the text of some page
    told: tuple[str, ...] = ()
    # words in the reasons for which runs were held
    held: tuple[str, ...] = ()
    # nodes out of service at the end; None: not looked at
    out: str | None = None
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Tale:
    """One story."""

    name: str
    # what happens, in one sentence
    what: str
    # why the judgement should be so, in one sentence
    why: str
    site: StorySite = field(default_factory=StorySite)
    mode: Literal["auto", "approve", "observe"] = "auto"
    maintenance: tuple[Shut, ...] = ()
    timeline: tuple[StoryLine, ...]
    # played for so many seconds
    until: float = 3600.0
    expect: StoryExpect
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """One file: the stories of one class of causes."""

    # of the page
    title: str
    # name -> story
    stories: tuple[Tale, ...]
    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
