"""What Slurm says of its nodes and of jobs that wait, as facts: its own states and reasons, and drains of others.

The leading brain asks for all nodes and the jobs that wait, two requests, every `states_every_s`. It changes nothing: a drain of
others is told and left as it is.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

from brain.actions import slurm
from brain.actions.marks import of_a_person
from brain.actions.slurm import Slurm, SlurmOptions
from brain.actions.slurm_rows import DOWN, DRAIN, FAIL, NO_JOBS, REBOOT_ASKED, REBOOTING, SILENT, NodeRow
from brain.actions.spares import counted
from brain.actions.witness import NodeSaid, WaitingJob, Witness, ours
from brain.core.inputs import Reported
from brain.options import WrongText, options
from brain.polling import ask_on

MAX_PAUSE_S = 600.0  # between looks while Slurm does not answer
# States in which nobody wants the node to be: slurm.conf(5), sinfo(1) "NODE STATE CODES".
_UNUSABLE = (DOWN, FAIL, "FAILING", "ERROR", "INVAL", "UNKNOWN", SILENT)
_ON_PURPOSE = (REBOOT_ASKED, REBOOTING, "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "FUTURE")
_IN_A_RESERVATION = ("MAINT", "MAINTENANCE")  # people are at work there
_FEWER_GPUS = re.compile(r"gres/gpu count reported lower than configured \(([0-9]+) < ([0-9]+)\)")

_POOL = re.compile(r"[A-Za-z0-9._-]{1,60}")  # it stands in the ids of facts


class SlurmStates:
    """Those of one cluster. `run` it as long as the brain runs; it asks only while `leads()`."""

    def __init__(
        self,
        name: str,
        cluster: Slurm,
        want: SlurmOptions,
        *,
        put: Callable[[Reported], None],
        note: Callable[[str, str], None],
        leads: Callable[[], bool],
        known: Callable[[], Collection[str]],
        ill: Callable[[], Collection[str]] = frozenset,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """As NodeConditions of Kubernetes. `ill`: nodes that are no spares although they are idle."""
        self._name = name
        self._cluster = cluster
        self._want = want
        self._put = put
        self._note = note
        self._leads = leads
        self._known = known
        self._clock = clock
        self._ill = ill
        self._witness = Witness(name, idle_after_s=want.idle_after_s)

    async def close(self) -> None:
        """Closes the connection."""
        await self._cluster.close()

    async def run(self) -> None:
        """Until cancelled. A failure is noted once, and retried with growing pauses."""
        await ask_on(
            self.look,
            whom=self._name,
            every_s=self._want.states_every_s,
            slowest_s=MAX_PAUSE_S,
            leads=self._leads,
            fails=lambda error: self._note(
                "slurm.unreachable", f"{error}: what Slurm says of its nodes is not seen"
            ),
            answers=lambda: self._note("slurm.reachable", f"{self._name} says how its nodes are again"),
        )

    async def look(self) -> int:
        """Looks once and returns how many facts were published. ActionError: Slurm does not say."""
        nodes, waiting = await self._cluster.states()
        now_s, known = self._clock(), self._known()
        states = [
            said(node, row)
            for name, row in sorted(nodes.items())
            if (node := ours(self._want.node_name, name)) in known and fnmatchcase(node, self._want.nodes)
        ]
        told = self._witness.nodes(states, now_s)
        ill = self._ill() if self._want.spares else ()
        for name, pool in self._want.spares.items():
            told += self._witness.spares(counted(name, pool, states, ill), now_s)
        told += self._witness.queue(
            [
                WaitingJob(id=job.id, user=job.user, waits_s=now_s - job.submitted, reason=job.reason)
                for job in waiting
                if job.submitted
            ],
            now_s,
        )
        for report in told:
            self._put(report)
        return len(told)

    def mark_published(self, given: Reported) -> None:
        """Takes a report from the log, of whichever brain leads."""
        self._witness.learn(given, self._clock())


def said(node: str, row: NodeRow) -> NodeSaid:
    """What a row of Slurm's means. A drained node, and one that a person has set DOWN, is out of service by their will."""
    fewer = _FEWER_GPUS.search(row.reason)
    slurms = not row.reason or fewer is not None or row.reason.startswith(slurm.SLURMS_OWN)
    out = DRAIN in row.flags or (DOWN in row.flags and not slurms)
    planned = out or bool(row.flags & set(_ON_PURPOSE))
    bad = [] if planned else sorted(flag for flag in _UNUSABLE if flag in row.flags)
    theirs = bool(row.reason) and not slurms and of_a_person(row.reason)
    # `sinfo` writes a drained node that is DOWN as drained*: whether it is heard is all that counts here
    lost = SILENT in row.flags and not row.flags & {*_ON_PURPOSE, *_IN_A_RESERVATION} and not theirs
    others = out and not fewer and of_a_person(row.reason)
    return NodeSaid(
        node=node,
        unusable="+".join(bad),
        why=row.reason,
        lost=f"{SILENT}: {row.reason}".rstrip(": ") if lost else "",
        drained=(row.reason or "without a reason") if others else "",
        drained_by=row.by if others else "",
        gpus=(int(fewer[2]), int(fewer[1])) if fewer else (0, 0),
        gpus_text=row.reason if fewer else "",
        idle=row.free,
        out=bool(row.flags & NO_JOBS) or bool(bad),
    )


def listeners(
    tables: Mapping[str, Mapping[str, Any]],
    *,
    put: Callable[[Reported], None],
    note: Callable[[str, str], None],
    leads: Callable[[], bool],
    known: Callable[[], Collection[str]],
    ill: Callable[[], Collection[str]] = frozenset,
) -> list[SlurmStates]:
    """One for each table of `[schedulers]` that wants it; ConfigError names the key."""
    found = []
    for name, table in tables.items():
        if table.get("type") != "slurm":
            continue
        where = f"schedulers.{name}"
        want = options(SlurmOptions, table, where)
        for key in ("idle_after_s", "spares"):
            if getattr(want, key) and not want.states_every_s:
                raise WrongText(f"{where}.{key}: needs states_every_s, how often Slurm is asked")
        for pool in want.spares:
            if not _POOL.fullmatch(pool):
                raise WrongText(f"{where}.spares.{pool}: a pool's name has letters, digits, and . _ - only")
        if want.states_every_s:
            cluster = slurm.build(name, table, where)
            found.append(
                SlurmStates(name, cluster, want, put=put, note=note, leads=leads, known=known, ill=ill)
            )
    return found
