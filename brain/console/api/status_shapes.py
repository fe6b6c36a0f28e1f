"""The status of a brain, and the nodes that it knows."""

from pydantic import Field

from brain.console.api.base import Shape, Time
from brain.console.api.pages import Paged


class TroubleShape(Shape):
    """An open alert about the brain itself."""

    cause: str = Field(description="A stable name.")
    text: str = Field(description="A sentence.")
    since: Time | None


class HoldShape(Shape):
    """An operator's stop on a scope."""

    id: str
    scope: str
    who: str
    why: str
    since: Time | None
    until: Time | None = Field(description="When it ends by itself; null: not.")


class ModeShape(Shape):
    """How far runbooks may go by themselves."""

    runbook: str = Field(description="Glob.")
    nodes: str = Field(description="Glob; empty: scopes wider than a node.")
    mode: str = Field(description="`observe`, `approve` or `auto`.")
    who: str = Field(
        description="Who has set it; empty: the configuration. `gpuward`: it has taken back what harms (operations.md), and only "
        "makes what stands before it stricter."
    )
    why: str = Field(description="Why gpuward has; empty: it has not.")


class ProposalShape(Shape):
    """What one person has said, and which counts when a second one says the same."""

    who: str
    text: str


class StatusShape(Shape):
    """The state of a brain, and the holds and modes in force."""

    brain: str = Field(description="Its name.")
    version: str = Field(description="Of gpuward.")
    cell: str
    config_file: str = Field(
        description="On its machine; empty: it has none, or you have shown no credential."
    )
    data_dir: str = Field(description="On its machine; empty: you have shown no credential.")
    leads: bool
    leader: str = Field(description="The brain that leads, as the log says.")
    epoch: int = Field(description="Counts the changes of the leader.")
    connected: bool = Field(description="Is NATS connected?")
    caught_up: bool = Field(description="Has it read the whole log since its start?")
    stopped: str = Field(description="Why it no longer acts; empty: it does.")
    breaker_since: Time | None = Field(
        description="Since when nothing disruptive begins, as remedies have failed, before somebody says `gpuward reset`."
    )
    pages_failing: int = Field(description="How many pages were tried and no channel has taken yet.")
    archive_failing: str = Field(
        description="Why it cannot write the log's archive now; empty: it can, another brain does, or there is none."
    )
    troubles: list[TroubleShape]
    seq: int = Field(description="The position on the log of the newest input that it has handled.")
    log_time: Time | None
    started_at: Time | None
    pack: str = Field(description="The version of the rules in force; empty: none are.")
    rules: int
    runbooks: int
    matcher: str = Field(description="What matches situations with rules.")
    nodes: int
    nodes_unreachable: int
    nodes_silent: int = Field(description="The name of `nodes_unreachable` in version 0.1.", deprecated=True)
    incidents_open: int
    inputs: int = Field(description="How many inputs it has handled since its start.")
    malformed: int = Field(description="How many messages could not be read.")
    busy_s: float = Field(description="How many seconds it has worked for its inputs.")
    holds: list[HoldShape]
    modes: list[ModeShape] = Field(description="Weakest first: those of the configuration, then operators'.")
    proposals: list[ProposalShape]


class NodeShape(Shape):
    """A node and its newest heartbeat; only the leading brain hears those (null: none)."""

    name: str
    alive: bool
    boot: str = Field(description="The id of its boot.")
    beat_age_s: float | None
    version: str = Field(description="Of its agent; empty: no heartbeat.")
    spooled: int | None = Field(description="How many events wait on it.")
    dropped: int | None = Field(description="How many events it could not keep.")
    clock_ahead_s: float | None = Field(
        description="So far is its clock ahead of the brain's; null: an older agent does not tell."
    )
    chassis: str
    leaf: str
    rack: str
    pod: str


class NodeListShape(Shape):
    """The nodes, by name."""

    nodes: list[NodeShape]
    next: str = Field(description="The cursor of the next page; empty: this is the last one.")


class NodesQuery(Paged):
    """Which nodes. Without `limit`: all."""

    name: str = Field(default="", max_length=300, description="Only these names (glob).")
    alive: bool | None = Field(
        default=None, description="Only those that are heard, or only those that are not."
    )
    rack: str = Field(default="", max_length=300, description="Only those in these racks (glob).")
    leaf: str = Field(default="", max_length=300, description="Only those at these leaf switches (glob).")
