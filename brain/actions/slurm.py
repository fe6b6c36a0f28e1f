"""Slurm as a `Scheduler`: only our own drains are removed, and every change is read back.

Only plain node names go to slurmctld, which reads `gpu[1-9]` and `ALL` as many nodes.
One race remains that Slurm offers no means against: it overwrites any reason, so a reason that an administrator sets in
the milliseconds between our check and our change is lost.
"""

import asyncio
import contextlib
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agent.contract.drain_reason import words_of
from agent.contract.errors import ActionError, ConfigError, Refused, TimedOut, Unreachable
from brain.actions.base import Job, Wanted, always
from brain.actions.marks import Mark, added, owns, read, taken_over, without, written
from brain.actions.patience import PASSING, settling
from brain.actions.pauses import until
from brain.actions.slurm_cli import Cli
from brain.actions.slurm_rest import Rest, version
from brain.actions.slurm_rows import (
    DOWN,
    DRAIN,
    NO_JOBS,
    REBOOT_ASKED,
    REBOOTING,
    SILENT,
    STOPPABLE,
    JobRow,
    NodeRow,
    PendingRow,
    Protected,
    SlurmAccess,
)
from brain.actions.spares import SparePool
from brain.options import options

SETTLE_S = 10.0  # how long it may take until an accepted change is visible
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_JOB = re.compile(r"[0-9]{1,10}(_[0-9]{1,10})?")
SLURMS_OWN = (
    "Not responding",
    "Node unexpectedly rebooted",
)  # reasons of Slurm itself for setting a node DOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmOptions:
    """The keys of a table with `type = "slurm"`."""

    # Shell pattern: the nodes that it manages, by their name in gpuward
    nodes: str = "*"
    # NodeName of a node; {node} is its name in gpuward
    node_name: str = "{node}"
    # Absolute path of scontrol
    scontrol: Path = Path("/usr/bin/scontrol")
    # Absolute path of squeue
    squeue: Path = Path("/usr/bin/squeue")
    # slurm.conf; none: the tools' own default
    conf: Path | None = None
    # Timeout of one request to slurmctld
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 30.0
    # SlurmUser: a node that this user has set DOWN may be drained by us
    slurm_user: str = "slurm"
    # Interval at which people are told what Slurm says of nodes (down, fewer GPUs, drained by others) and of jobs that wait for
    # over an hour; 0: they are not
    states_every_s: Annotated[float, Field(ge=0, le=3600)] = 0.0
    # A node without a job for so long is told as idle, so that the runbook test-idle-node may test it; 0: none is. Needs
    # states_every_s
    idle_after_s: Annotated[float, Field(ge=0, le=604800)] = 0.0
    # Pools of nodes of which a share is to be idle and healthy, as spares for what fails: name -> nodes and share (0.1). A short
    # supply is told. Empty: none is counted. Needs states_every_s
    spares: Mapping[str, SparePool] = field(default_factory=dict)
    # Shell patterns of the reasons that a node health check gives when it drains a node: we may drain over it, and give
    # the node back. Those of everybody else stand
    health_checks: tuple[str, ...] = ()
    # Jobs that are not stopped without an approval
    protected: Protected = field(default_factory=Protected)
    # http(s)://host:port of slurmrestd; empty: only the tools are used
    rest_url: str = ""
    # Version of its API; before v0.0.39 the state of nodes is set by scontrol
    rest_version: str = "v0.0.39"
    # User of the token
    rest_user: str = "slurm"
    # File with the JWT of rest_user; needed with rest_url
    token_file: Path | None = None
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class Slurm:
    """One cluster."""

    def __init__(
        self,
        name: str,
        cli: Cli,
        rest: Rest | None = None,
        *,
        node_name: str = "{node}",
        slurm_user: str = "slurm",
        health_checks: Sequence[str] = (),
        protected: Protected,
    ) -> None:
        """`rest`: used instead of the tools where possible."""
        self._name = name
        self._cli = cli
        self._rest = rest
        self._node_name = node_name
        self._slurm_user = slurm_user
        self._health_checks = tuple(health_checks)
        self._protected = protected
        self._reader: SlurmAccess = rest or cli
        self._writer: SlurmAccess = rest if rest and rest.sets_nodes else cli
        # Slurm overwrites any reason: two incidents must not change the marks of one node at the same time.
        self._changing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def name(self) -> str:
        """As in Scheduler."""
        return self._name

    async def drained(self, node: str) -> str:
        """As in Scheduler."""
        row = await self._reader.node(self._of(node))
        blocked = sorted(row.flags & NO_JOBS)
        return (row.reason or f"{'+'.join(blocked)} without a reason") if blocked else ""

    async def marks(self, node: str) -> tuple[Mark, ...]:
        """As in Scheduler."""
        return _marks(await self._reader.node(self._of(node)))

    async def drain(self, node: str, mark: Mark) -> None:
        """As in Scheduler. A node that someone has set DOWN is also left as it is; one that Slurm set DOWN is drained.

        So is one that a health check has drained: its reason gives way to ours, and it may give it anew after the resume. One
        that a prolog of ours has drained is taken over with its words.
        """
        slurms = self._of(node)
        async with self._changing[slurms]:
            row = await self._reader.node(slurms)
            marks = _marks(row)
            if row.flags & NO_JOBS and not marks and not self._may_take(row):
                return
            if DRAIN not in row.flags or not owns(marks, mark.incident):  # Slurm keeps one reason only
                await self._marked(node, slurms, added(marks, taken_over(mark, row.reason)))

    async def resume(self, node: str, owners: Collection[str] | None) -> bool:
        """As in Scheduler. Unreachable for a node that does not answer slurmctld: it could run nothing."""
        slurms = self._of(node)
        async with self._changing[slurms]:
            row = await self._reader.node(slurms)
            marks = _marks(row)
            left = without(marks, owners)
            if len(left) == len(marks):
                return False
            if left:
                await self._marked(node, slurms, left)
            else:
                await self._resumed(node, slurms, row)
            return True

    async def _marked(self, node: str, slurms: str, marks: Collection[Mark]) -> None:
        """Drains the node with these marks."""
        reason = written(tuple(marks))
        await self._writer.set_state(slurms, DRAIN, reason)
        with settling():
            after = await self._reader.node(slurms)
        if DRAIN not in after.flags or after.reason != reason:
            raise ActionError(f"{node} was not drained: {_state(after)}")

    async def _resumed(self, node: str, slurms: str, row: NodeRow) -> None:
        """Takes our drain off."""
        if row.flags & {REBOOT_ASKED, REBOOTING}:
            raise Refused(f"{node} is about to be rebooted: {_state(row)}")
        if DOWN in row.flags and SILENT in row.flags:
            raise Unreachable(f"{node} does not answer slurmctld, our drain stays: {_state(row)}")
        await self._writer.set_state(slurms, "RESUME", "")
        for pause_s in until(SETTLE_S):
            with settling():
                row = await self._reader.node(slurms)
            if not row.flags & NO_JOBS:
                return
            await asyncio.sleep(pause_s)
        raise ActionError(f"{node} was resumed and takes no jobs: {_state(row)}")

    async def jobs(self, node: str) -> list[Job]:
        """As in Scheduler."""
        rows = await self._reader.jobs(self._of(node))
        return [self._job(row, await self._cli.parts(row.leader) if row.leader else ()) for row in rows]

    async def requeue(self, job: Job, *, within_s: float = inf, wanted: Wanted = always) -> None:
        """As in Scheduler. Refused for an interactive job, and one submitted with --no-requeue."""
        if _JOB.fullmatch(job.id) is None:
            raise Refused(f"{job.id!r} is not the id of a Slurm job")
        before = await self._cli.job(job.id)
        if job.run and (before is None or before.started != job.run):
            return
        if before is None:
            raise Refused(f"Slurm has no job {job.id}")
        if before.states.isdisjoint(STOPPABLE):  # a job that has ended would run a second time
            raise Refused(f"job {job.id} does not run: {'+'.join(sorted(before.states))}")
        if before.fixed:
            raise Refused(f"job {job.id} is not requeued, as it {before.fixed}")
        await wanted()
        await self._cli.requeue(before.leader or before.task or job.id)
        for pause_s in until(min(SETTLE_S, within_s)):
            with settling():
                after = await self._cli.job(job.id)
            if after is None or "RUNNING" not in after.states or after.started != before.started:
                return
            await asyncio.sleep(pause_s)
        raise ActionError(f"job {job.id} was requeued and still runs")

    async def reboot(self, node: str, mark: Mark) -> None:
        """As in Scheduler. The node is drained with our mark first, so that it comes back drained and returns to service
        by `resume` once it is verified. A cancellation before the reboot has begun withdraws it.
        """
        slurms = self._of(node)
        await self.drain(node, mark)
        row = await self._reader.node(slurms)
        if not owns(_marks(row), mark.incident):
            raise Refused(
                f"{node} is not rebooted under the drain of {row.by or 'someone else'}: {_state(row)}"
            )
        try:
            if not row.flags & {REBOOT_ASKED, REBOOTING}:
                await self._ask_reboot(slurms, row.reason)
            await self._back(node, slurms, mark.incident)
            await self._drained_after(slurms, mark.incident)
        except asyncio.CancelledError:
            # Too late, or slurmctld is gone: the outcome of the step is unknown anyway.
            with contextlib.suppress(ActionError):
                if REBOOT_ASKED in (await self._reader.node(slurms)).flags:
                    await self._cli.cancel_reboot(slurms)
            raise

    async def lacking(self) -> list[str]:
        """As in Closing. With slurmrestd alone that sets the state of nodes, only reading is tried."""
        await self._reader.answers()
        if self._writer is self._cli and not await self._cli.may_change():
            return ["update nodes and jobs (AdminLevel operator)"]
        return []

    async def states(self) -> tuple[Mapping[str, NodeRow], Sequence[PendingRow]]:
        """Returns all nodes of the cluster by their NodeName, and the jobs that wait. Errors as in `Action`."""
        return await self._reader.all_nodes(), await self._reader.pending()

    async def close(self) -> None:
        """Closes connections."""
        if self._rest is not None:
            await self._rest.close()

    async def _ask_reboot(self, slurms: str, reason: str) -> None:
        """Requests the reboot. Where the answer was lost, slurmctld is asked whether it has the request."""
        try:
            await self._cli.reboot(slurms, reason)
        except TimedOut as lost:
            try:
                flags = (await self._reader.node(slurms)).flags
            except PASSING:
                raise lost from None
            if not flags & {REBOOT_ASKED, REBOOTING}:
                raise

    async def _back(self, node: str, slurms: str, incident: str) -> None:
        """Waits until the node has rebooted; slurmctld gives up after ResumeTimeout and sets it DOWN."""
        begun = False
        for pause_s in until(float("inf"), most_s=3.0):
            with contextlib.suppress(*PASSING):  # slurmctld may restart: it remembers the reboot
                row = await self._reader.node(slurms)
                # nextstate=DOWN leaves DOWN without DRAIN: a reboot may be over before the first check.
                begun = begun or REBOOTING in row.flags or (DOWN in row.flags and DRAIN not in row.flags)
                if not owns(read(row.reason), incident):
                    if REBOOT_ASKED in row.flags:
                        await self._cli.cancel_reboot(slurms)
                    raise ActionError(
                        f"the reason was changed in the meantime, {node} is left as it is: {_state(row)}"
                    )
                if not row.flags & {REBOOT_ASKED, REBOOTING}:
                    if not begun or row.gave_up:
                        says = "did not come back" if begun else "was not rebooted, someone cancelled it"
                        raise ActionError(f"{node} {says}: {_state(row)}")
                    return
            await asyncio.sleep(pause_s)

    async def _drained_after(self, slurms: str, incident: str) -> None:
        """Drains a node that has rebooted, since DOWN alone ends with ReturnToService=2."""
        for pause_s in until(float("inf"), most_s=3.0):
            with contextlib.suppress(*PASSING):
                async with self._changing[slurms]:
                    row = await self._reader.node(slurms)
                    if DRAIN not in row.flags and owns(read(row.reason), incident):
                        await self._writer.set_state(slurms, DRAIN, row.reason)
                    return
            await asyncio.sleep(pause_s)

    def _of(self, node: str) -> str:
        name = self._node_name.replace("{node}", node)
        if _NODE.fullmatch(name) is None or name.upper() in ("ALL", "DEFAULT"):
            raise Refused(f"{name!r} is not the name of one Slurm node")
        return name

    def _may_take(self, row: NodeRow) -> bool:
        """Did only Slurm itself, a health check, or a prolog of ours take the node out of service?"""
        if words_of(row.reason) or any(fnmatchcase(row.reason, pattern) for pattern in self._health_checks):
            return True
        return row.flags & NO_JOBS == {DOWN} and (
            row.by == self._slurm_user or not row.reason or row.reason.startswith(SLURMS_OWN)
        )

    def _job(self, row: JobRow, parts: Sequence[JobRow]) -> Job:
        """`parts`: all of a heterogeneous job, for whoever stops one stops them all."""
        return Job(
            id=row.id,
            user=row.user,
            state="+".join(sorted(row.states)).lower(),
            gpus=row.gpus,
            gpu_count=len(row.gpus),
            name=row.name,
            run=row.started,
            nodes=sum(part.nodes for part in parts) or row.nodes,
            protected=next(filter(None, map(self._protected.why, (row, *parts))), ""),
            fixed=row.fixed,
        )


def _marks(row: NodeRow) -> tuple[Mark, ...]:
    """Returns the marks of our drain; none for a node that is in service, or out of it for someone else."""
    return read(row.reason) if row.flags & {DRAIN, DOWN} else ()


def _state(row: NodeRow) -> str:
    return f"{'+'.join(sorted(row.flags))}, reason {row.reason!r} by {row.by or 'nobody'}"


def build(name: str, table: Mapping[str, Any], where: str) -> Slurm:
    """Builds the scheduler of a configuration table; ConfigError names the key."""
    want = options(SlurmOptions, table, where)
    for key in ("scontrol", "squeue"):
        if not Path(str(table.get(key, "/"))).is_absolute():
            raise ConfigError(f"{where}.{key}: must be an absolute path")
    if "{node}" not in want.node_name:
        raise ConfigError(f"{where}.node_name: must contain {{node}}")
    rest = None
    if want.rest_url:
        if not want.rest_url.startswith(("http://", "https://")):
            raise ConfigError(f"{where}.rest_url: want http://host:port or https://host:port")
        if want.token_file is None:
            raise ConfigError(f"{where}.token_file: is missing; rest_url needs it")
        version(want.rest_version, f"{where}.rest_version")
        rest = Rest(
            url=want.rest_url.rstrip("/"),
            api=want.rest_version,
            user=want.rest_user,
            token_file=want.token_file,
            where=f"{where}.token_file",
            timeout_s=want.timeout_s,
        )
    cli = Cli(scontrol=want.scontrol, squeue=want.squeue, conf=want.conf, timeout_s=want.timeout_s)
    return Slurm(
        name,
        cli,
        rest,
        node_name=want.node_name,
        slurm_user=want.slurm_user,
        health_checks=want.health_checks,
        protected=want.protected,
    )
