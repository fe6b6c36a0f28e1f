"""What Slurm says of nodes and jobs, whichever way it was asked; and the port of those ways."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Protocol

DRAIN, DOWN, FAIL, SILENT = "DRAIN", "DOWN", "FAIL", "NOT_RESPONDING"
NO_JOBS = frozenset({DRAIN, DOWN, FAIL})  # states in which a node takes no new jobs
REBOOT_ASKED, REBOOTING = "REBOOT_REQUESTED", "REBOOT_ISSUED"
# Of a job that has the node, or has not yet given it back.
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
STOPPABLE = frozenset(ON_NODE) - {"COMPLETING"}  # a job that ends by itself is not requeued
_APPENDED = re.compile(r"( : reboot (issued|timed out|complete))+$")
_IDX = re.compile(r"gpu[^,()]*\(IDX:([0-9,-]+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node as slurmctld sees it now."""

    flags: frozenset[str]  # IDLE, MIXED, DOWN, ... and DRAIN, NOT_RESPONDING, REBOOT_REQUESTED, ...
    reason: str  # without what Slurm itself appended ("reboot issued")
    by: str  # user who set the reason
    gave_up: bool = False  # slurmctld has waited for ResumeTimeout until a reboot was over, in vain


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job as slurmctld sees it now."""

    id: str
    user: str
    account: str
    partition: str
    states: frozenset[str]
    name: str
    started: str  # changes when it begins anew
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """Jobs that nobody stops without being asked: shell patterns. Any one that fits protects."""

    users: Sequence[str] = ()
    accounts: Sequence[str] = ()
    partitions: Sequence[str] = ()
    names: Sequence[str] = ()  # of jobs
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}  # a typing error must not unprotect

    def why(self, job: JobRow) -> str:
        """What protects it, e.g. "user alice"; empty when nothing does."""
        for what, globs, value in (
            ("user", self.users, job.user),
            ("account", self.accounts, job.account),
            ("partition", self.partitions, job.partition),
            ("job name", self.names, job.name),
        ):
            if any(fnmatchcase(value, glob) for glob in globs):
                return f"{what} {value}"
        return ""


class Asks(Protocol):
    """A way to read from slurmctld and to set a node's state. Errors as in `Action`; an unknown node is Refused."""

    async def node(self, node: str) -> NodeRow:
        """The node now."""
        ...

    async def jobs(self, node: str) -> list[JobRow]:
        """The jobs that have the node now."""
        ...

    async def set_state(self, node: str, state: str, reason: str) -> None:
        """DRAIN with a reason, RESUME with an empty one."""
        ...


def written(reason: str) -> str:
    """The reason as somebody wrote it, without what slurmctld itself appends at a reboot."""
    return _APPENDED.sub("", reason)


def indices(gres: str) -> tuple[str, ...]:
    """GPUs of `gpu:h200:3(IDX:0-1,5)` → 0, 1, 5; empty when Slurm does not tell."""
    return tuple(
        str(index)
        for ranges in _IDX.findall(gres)
        for first, _, last in (part.partition("-") for part in ranges.split(","))
        for index in range(int(first), int(last or first) + 1)
    )


def gave_up(reason: str) -> bool:
    """Does slurmctld say that the node did not come back from its reboot?"""
    return reason.endswith(" : reboot timed out")
