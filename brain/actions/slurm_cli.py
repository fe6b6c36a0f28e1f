"""Slurm through its own tools, scontrol and squeue.

Without --json, which scontrol 22.05 lacks. A job name may contain any character, even a line break, so records are
separated by a token that is drawn for each query.
"""

import asyncio
import contextlib
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.contract.errors import ActionError, Refused, TimedOut, Transient, Unreachable
from agent.shared.tool import Completed
from brain.actions import tools
from brain.actions.patience import Grants
from brain.actions.slurm_rows import (
    DRAIN,
    ON_NODE,
    SILENT,
    JobRow,
    NodeRow,
    PendingRow,
    fixed,
    gave_up,
    indices,
    number,
    suspended,
    written,
)
from brain.aside import aside
from brain.glance import FileHangs
from brain.hostlist import expand

_STATE = re.compile(r"^ +State=(\S+)", re.MULTILINE)
_REASON = re.compile(
    r"^ +Reason=(?P<text>.*) \[(?P<by>\S+)@[0-9T:.-]+\]$(?P<more>(?:\n {6}.*)*)", re.MULTILINE
)
_COUNT = re.compile(r"[0-9]{1,7}")
_PART = re.compile(r"([0-9]{1,10})\+[0-9]{1,4}")  # of a heterogeneous job, as squeue's %i shows it
_TASK = re.compile(r"[0-9]{1,10}_[0-9]{1,10}")
_REQUEUE = re.compile(r"^ +Requeue=(?P<requeue>[01]) .*BatchFlag=(?P<batch>[01])", re.MULTILINE)
_GRES = re.compile(r"^ +Nodes=(\S+) .*GRES=(\S*)$", re.MULTILINE)
# Texts of slurm_strerror(), unchanged since 2.x; exit statuses show only that something failed.
_NO_SUCH = ("Invalid node name", "Invalid job id", "not found")
_REFUSED = ("disabled for job", "Invalid partition")
_NOT_ALLOWED = ("Access/permission denied", "Invalid user id")
_NOT_ASKED = ("Unable to contact slurm controller", "connect failure", "Connection refused")
# The connection was lost after the request was sent, or may have been.
_UNKNOWN = (
    "Socket timed out",
    "Transport endpoint is not connected",
    "Unexpected missing socket error",
    "Connection reset by peer",
    "Broken pipe",
    "Insane message length",
    "Zero Bytes were transmitted",
)
# slurmctld has just started: its nodes have not registered yet ("Invalid node state" for a RESUME), or it is the backup
# and has not taken over.
_PASSING = (
    "Invalid node state",
    "standby mode",
    "in the process of shutting down",
    "Protocol authentication error",
)

# The tools have no configuration: slurmctld was asked for nothing
_NO_CONF = ("Could not establish a configuration source", "Unable to process configuration file")

NO_NODE = "gpuward-doctor-asks"  # the name of no node
_MAX_OUTPUT_BYTES = 8 * 1024 * 1024  # of squeue, on a large cluster


class _NoSuch(Refused):
    """slurmctld knows no such node or job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cli:
    """Runs the tools; `conf` becomes SLURM_CONF."""

    scontrol: Path
    squeue: Path
    conf: Path | None
    timeout_s: float
    _grants: Grants = field(default_factory=Grants)

    async def node(self, node: str) -> NodeRow:
        """As in SlurmAccess."""
        says = await self._read(self.scontrol, "show", "node", node)
        return parse_node(says)

    async def jobs(self, node: str) -> list[JobRow]:
        """As in SlurmAccess, with the GPUs of each job."""
        rows = await self._squeue("-w", node, "-t", ",".join(ON_NODE))
        return [await self._with_gpus(row, node) for row in rows]

    async def all_nodes(self) -> dict[str, NodeRow]:
        """As in SlurmAccess, by sinfo, which stands beside scontrol: short lines, also of a large cluster."""
        token = secrets.token_hex(8)
        layout = "".join(f"%{letter}{token}" for letter in "NTuE")
        says = await self._read(self.scontrol.with_name("sinfo"), "-h", "-N", "-o", layout)
        parts, rows = says.split(token)[:-1], {}
        for at in range(0, len(parts) - 3, 4):
            node, state, by, reason = parts[at : at + 4]
            rows[node.strip()] = NodeRow(
                flags=sinfo_flags(state),
                reason=written("" if reason == "none" else reason),
                by=by,
                free=state.strip().lower() in _FREE,
            )
        return rows

    async def pending(self) -> list[PendingRow]:
        """As in SlurmAccess."""
        token = secrets.token_hex(8)
        layout = "".join(f"%{letter}{token}" for letter in "iuVr")
        says = await self._read(self.squeue, "-h", "-t", "PD", "-o", layout)
        parts = says.split(token)[:-1]
        return [
            PendingRow(id=job.strip(), user=user, submitted=number(submitted), reason=reason)
            for job, user, submitted, reason in (parts[at : at + 4] for at in range(0, len(parts) - 3, 4))
        ]

    async def job(self, job: str) -> JobRow | None:
        """Returns the job now, without its GPUs; None when slurmctld has forgotten it."""
        try:
            rows = await self._squeue("-j", job, "-t", "all")
        except _NoSuch:
            return None
        # By the id of an array, or of a job of several parts, slurmctld names all of them.
        return next((row for row in rows if job in (row.id, row.task)), None)

    async def parts(self, leader: str) -> list[JobRow]:
        """Returns all parts of a heterogeneous job, without their GPUs; none when slurmctld has forgotten it."""
        try:
            return await self._squeue("-j", leader, "-t", "all")
        except _NoSuch:
            return []

    async def set_state(self, node: str, state: str, reason: str) -> None:
        """As in SlurmAccess."""
        about = [f"Reason={reason}"] if reason else []
        await self._write("update", f"NodeName={node}", f"State={state}", *about)

    async def requeue(self, job: str) -> None:
        """Requests it; the job then ends within KillWait."""
        await self._write("requeue", job)

    async def reboot(self, node: str, reason: str) -> None:
        """Requests a reboot as soon as the node is idle. It comes back DOWN and no longer drained.

        With nextstate=RESUME, or without it (which 22.05 treats as RESUME on a drained node), slurmctld would remove every
        drain afterwards, even one that an administrator has set in the meantime; so would `cancel_reboot`.
        """
        await self._write("reboot", "ASAP", "nextstate=DOWN", f"reason={reason}", node)

    async def cancel_reboot(self, node: str) -> None:
        """Withdraws a reboot that has not begun."""
        await self._write("cancel_reboot", node)

    async def may_change(self) -> bool:
        """May our account set the state of nodes? Asked with a node that is in no cluster: slurmctld looks at the right first.

        Errors as in `Action`.
        """
        try:
            await self._run(self.scontrol, ("update", f"NodeName={NO_NODE}", "State=RESUME"))
        except _NoSuch:
            return True
        except Refused:
            return False
        return True

    async def answers(self) -> None:
        """Returns when slurmctld has shown its nodes. Errors as in `Action`."""
        with contextlib.suppress(_NoSuch):
            await self.node(NO_NODE)

    async def _squeue(self, *which: str) -> list[JobRow]:
        token = secrets.token_hex(8)
        layout = "".join(f"%{letter}{token}" for letter in "AuaPTSDQij")
        says = await self._read(self.squeue, "-h", *which, "-o", layout)
        parts = says.split(token)[:-1]
        rows = []
        for at in range(0, len(parts) - 9, 10):
            job, user, account, partition, state, started, nodes, priority, shown, name = parts[at : at + 10]
            rows.append(
                JobRow(
                    id=job.strip(),
                    user=user,
                    account="" if account == "(null)" else account,
                    partition=partition,
                    states=frozenset({state}),
                    name=name,
                    started=started,
                    nodes=int(nodes) if _COUNT.fullmatch(nodes) else 0,
                    leader=found[1] if (found := _PART.fullmatch(shown)) else "",
                    task=shown if _TASK.fullmatch(shown) else "",
                    fixed=suspended({state}, priority.strip()),
                )
            )
        return rows

    async def _with_gpus(self, row: JobRow, node: str) -> JobRow:
        try:
            says = await self._read(self.scontrol, "show", "job", "-d", row.task or row.id)
        except _NoSuch:
            return row  # it has ended in the meantime
        how = _REQUEUE.search(says)
        fixes = fixed(requeue=how["requeue"] == "1", batch=how["batch"] == "1") if how else ""
        return replace(row, gpus=parse_gpus(says, node), fixed=fixes or row.fixed)

    async def _read(self, path: Path, *argv: str) -> str:
        try:
            return await self._run(path, argv)
        except TimedOut as error:
            raise Unreachable(str(error)) from error  # reading changes nothing

    async def _write(self, *argv: str) -> None:
        await self._run(self.scontrol, argv, tools.change)

    async def _run(
        self,
        path: Path,
        argv: tuple[str, ...],
        run: Callable[..., Awaitable[Completed]] = tools.read,
    ) -> str:
        if self.conf is not None:  # without it they wait for a minute, and say nothing
            try:
                async with asyncio.timeout(self.timeout_s):
                    there = await aside(self.conf.exists, self.conf)
            except (TimeoutError, FileHangs):
                raise Unreachable(f"{self.conf} cannot be looked at: its file system hangs") from None
            if not there:
                raise Refused(
                    f"{self.conf} is not there: put the cluster's slurm.conf on this machine, and name it as `conf` in its table "
                    "of brain.toml"
                )
        env = (
            {"SLURM_TIME_FORMAT": "%s"} if path == self.squeue else {}
        )  # start times as slurmrestd gives them
        env |= {"SLURM_CONF": str(self.conf)} if self.conf else {}
        ran = await run([str(path), *argv], deadline_s=self.timeout_s, env=env, max_bytes=_MAX_OUTPUT_BYTES)
        if ran.status == 0:
            self._grants.allowed(_right(path, argv))
            return ran.out
        raise self._error(
            f"{ran.err}\n{ran.out}", f"{path.name} {argv[0]}: {ran.last_line}", _right(path, argv)
        )

    def _error(self, output: str, text: str, right: str) -> ActionError:
        if any(known in output for known in _NOT_ALLOWED):
            return self._grants.denied(right, text)
        if any(known in output for known in _NO_CONF):
            return Refused(
                f"{text}: put the cluster's slurm.conf on this machine, and name it as `conf` in its table of brain.toml"
            )
        for texts, kind in (
            (_NO_SUCH, _NoSuch),
            (_REFUSED, Refused),
            (_NOT_ASKED, Unreachable),
            (_PASSING, Transient),
            (_UNKNOWN, TimedOut),
        ):
            if any(known in output for known in texts):
                return kind(text)
        return ActionError(text)


def _right(path: Path, argv: tuple[str, ...]) -> str:
    """Returns what Slurm must allow for a command: reading, or the privileges of an operator."""
    if path.name == "scontrol" and argv[0] != "show":
        return f"{argv[0]} nodes and jobs (AdminLevel operator)"
    return "read nodes and jobs"


def parse_node(says: str) -> NodeRow:
    """Parses `scontrol show node NAME`; ActionError when it has another form than known."""
    state = _STATE.search(says)
    if state is None:
        raise ActionError(f"scontrol show node: no State= in {says[:200]!r}")
    # A node that does not respond is also written DOWN*: State=DOWN*+DRAIN before 22.05.
    names = state[1].upper().split("+")
    flags = {name.rstrip("*$@#~%^!-") for name in names}
    if any("*" in name for name in names):
        flags.add(SILENT)
    reason = _REASON.search(says)
    text = reason["text"] + reason["more"] if reason else ""
    return NodeRow(
        flags=frozenset(flags),
        reason=written(text),
        by=reason["by"] if reason else "",
        gave_up=gave_up(text),
    )


# sinfo's `%T` of a node without jobs; a sign behind it says that it is silent, switched off, to be rebooted, in maintenance, or
# planned for a job.
_FREE = ("idle", "reserved")


def sinfo_flags(state: str) -> frozenset[str]:
    """The states in sinfo's long form of one (`%T`): `down*`, `drained`, `draining*`, `mixed`, `inval`, ..."""
    name = state.upper().rstrip("*$@#~%^!-+")
    flags = {DRAIN} if name in ("DRAINED", "DRAINING") else {name}
    return frozenset(flags | ({SILENT} if "*" in state else set()))


def parse_gpus(says: str, node: str) -> tuple[str, ...]:
    """Returns the indices of the GPUs that a job has on `node`, from `scontrol show job -d`.

    The first line contains the job's name, which its user can choose to look like these lines: good enough to inform
    operators, not to protect anything.
    """
    for nodes, gres in _GRES.findall(says):
        try:
            here = node in expand(nodes)
        except ValueError:
            continue
        if here:
            return indices(gres)
    return ()
