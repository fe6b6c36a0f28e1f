"""Nodes and jobs as Slurm reports them, and the port of the ways to reach it."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Protocol

DRAIN, DOWN, FAIL, SILENT = "DRAIN", "DOWN", "FAIL", "NOT_RESPONDING"
NO_JOBS = frozenset({DRAIN, DOWN, FAIL})  # states in which a node takes no new jobs
REBOOT_ASKED, REBOOTING = "REBOOT_REQUESTED", "REBOOT_ISSUED"
# States of a job that has the node, or has not released it yet.
ON_NODE = (
    "RUNNING",
    "COMPLETING",
    "SUSPENDED",
    "CONFIGURING",
    "STOPPED",
    "SIGNALING",
    "STAGE_OUT",
    "RESIZING",
)
STOPPABLE = frozenset(ON_NODE) - {"COMPLETING"}  # a job that is already ending is not requeued
_SECONDS = re.compile(r"[0-9]{1,15}")
_APPENDED = re.compile(r"( : reboot (issued|timed out|complete))+$")
_IDX = re.compile(r"gpu[^,()]*\(IDX:([0-9,-]+)\)")
_SPAN = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")
MAX_GPUS = 256  # of one node


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node as slurmctld sees it now."""

    # IDLE, MIXED, DOWN, ... and DRAIN, NOT_RESPONDING, REBOOT_REQUESTED, ...
    flags: frozenset[str]
    # Without what Slurm itself appends ("reboot issued")
    reason: str
    # The user who set the reason
    by: str
    # The node did not come back from a reboot within ResumeTimeout
    gave_up: bool = False
    # No job has it, and the next one can have it at once. Only of all_nodes
    free: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job as slurmctld sees it now."""

    id: str
    user: str
    account: str
    partition: str
    states: frozenset[str]
    name: str
    # Changes when the job starts again
    started: str
    gpus: tuple[str, ...] = ()
    # How many nodes it has; 0: not told
    nodes: int = 0
    # Of a part of a heterogeneous job: the id of its first part, for which alone Slurm requeues all of them; empty: it is none
    leader: str = ""
    # Of a task of an array: its own name, ARRAY_TASK. One task has the array's id, which to Slurm means all of them
    task: str = ""
    # As of Job
    fixed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRow:
    """A job that waits, as slurmctld sees it now."""

    id: str
    user: str
    # When it was submitted, seconds since 1970
    submitted: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """Jobs that are not stopped without an approval: shell patterns, of which one match is enough."""

    # Shell patterns of user names
    users: Sequence[str] = ()
    # Shell patterns of accounts
    accounts: Sequence[str] = ()
    # Shell patterns of partitions
    partitions: Sequence[str] = ()
    # Shell patterns of job names
    names: Sequence[str] = ()
    # A misspelt key must not remove the protection
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    def why(self, job: JobRow) -> str:
        """Returns what protects the job, e.g. "user alice"; empty when nothing does."""
        for what, globs, value in (
            ("user", self.users, job.user),
            ("account", self.accounts, job.account),
            ("partition", self.partitions, job.partition),
            ("job name", self.names, job.name),
        ):
            if any(fnmatchcase(value, glob) for glob in globs):
                return f"{what} {value}"
        return ""


def fixed(*, requeue: bool, batch: bool) -> str:
    """Why Slurm does not requeue a job; empty: it does."""
    if not batch:
        return "is interactive: Slurm requeues batch jobs only"
    return "" if requeue else "was submitted with --no-requeue"


def suspended(states: Collection[str], priority: str) -> str:
    """Why a suspended job is not requeued; empty: it may be, or is not suspended.

    `scontrol suspend` takes its priority away, and a requeued one has none: it would be held (JobHeldAdmin), and a release would
    run it against the will of whoever has suspended it. One that Slurm itself has suspended, for another job, keeps its priority.
    """
    if "SUSPENDED" not in states or priority != "0":
        return ""
    return "was suspended by a person: requeued, it would be held (JobHeldAdmin). Whoever did it: scontrol resume or scancel"


class SlurmAccess(Protocol):
    """A way to read from slurmctld and to set a node's state. Errors as in `Action`; an unknown node is Refused."""

    async def node(self, node: str) -> NodeRow:
        """Returns the node as it is now."""
        ...

    async def jobs(self, node: str) -> list[JobRow]:
        """Returns the jobs that have the node now."""
        ...

    async def answers(self) -> None:
        """Returns when slurmctld has answered."""
        ...

    async def all_nodes(self) -> Mapping[str, NodeRow]:
        """Returns all nodes of the cluster by their NodeName."""
        ...

    async def pending(self) -> list[PendingRow]:
        """Returns the jobs that wait."""
        ...

    async def set_state(self, node: str, state: str, reason: str) -> None:
        """Sets DRAIN with a reason, or RESUME with an empty one."""
        ...


def written(reason: str) -> str:
    """Returns the reason as it was written, without what slurmctld appends at a reboot."""
    return _APPENDED.sub("", reason)


def number(text: str) -> float:
    """Seconds since 1970 in a text of digits; 0: it is none, as of a job that was never submitted."""
    return float(text) if _SECONDS.fullmatch(text) else 0.0


def indices(gres: str) -> tuple[str, ...]:
    """Returns the GPUs of `gpu:h200:3(IDX:0-1,5)`: 0, 1, 5; empty when Slurm does not report them, or what is there are no GPUs
    of one node: with its tools it may be the name of a job, which its user has chosen.
    """
    found: dict[str, None] = {}
    for part in ",".join(_IDX.findall(gres)).split(","):
        span = _SPAN.fullmatch(part)
        if span is None:
            return ()
        first, last = int(span[1]), int(span[2] or span[1])
        if last - first >= MAX_GPUS - len(found):
            return ()
        found |= dict.fromkeys(map(str, range(first, last + 1)))
    return tuple(found)


def gave_up(reason: str) -> bool:
    """Does the reason say that the node did not come back from its reboot?"""
    return reason.endswith(" : reboot timed out")
