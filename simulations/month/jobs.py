"""Jobs over many nodes: gangs that fail together, start again from a checkpoint, and wait when nodes are short.

The nodes of a gang share one mapping of jobs (`MachineState.jobs`), so it ends on all of them at once, whoever ends it. The
scheduler gives a gang the nodes that it had before, as far as they are in service, and spare nodes for the others; it knows
nothing of faults. A gang that starts on a node with a fault that ends jobs fails again when it has been read in.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import islice
from math import exp, inf

from simulations.machines import Machine
from simulations.month.draw import Month
from simulations.virtual_fleet import VirtualFleet

USER = "ann"


class GangState(StrEnum):
    """The state of a gang."""

    WAITING = "waiting"  # it was requeued, or nodes are short
    STARTING = "starting"  # it reads its checkpoint
    RUNNING = "running"


@dataclass(slots=True, kw_only=True)
class Gang:
    """One job on several nodes; when it is done the next one of its kind follows."""

    id: str
    size: int
    # How long it runs in all, seconds.
    work_s: float
    # Shared by its machines: itself, while it is on them.
    held: dict[str, str] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)
    state: GangState = GangState.WAITING
    # Counts its changes of state, so that what was planned before counts no more.
    turn: int = 0
    # Since when it does not work.
    down_since: float = 0.0
    # Since when it works, and what it had done by then, seconds.
    works_since: float = 0.0
    done_s: float = 0.0
    # It hangs since then.
    hangs_since: float = inf
    # It has never started yet: that it is read in is nobody's loss.
    fresh: bool = False
    slow: dict[str, None] = field(default_factory=dict)
    slow_since: float = 0.0


@dataclass(slots=True, kw_only=True)
class JobLoss:
    """What gangs have lost, in node-seconds."""

    # work since the last checkpoint
    work: float = 0.0
    # not working: requeued, short of nodes, starting
    away: float = 0.0
    # hanging until its watchdog ends it
    hanging: float = 0.0
    # slower than it could be
    slow: float = 0.0
    failures: int = 0
    failed_starts: int = 0

    @property
    def total(self) -> float:
        """All of it."""
        return self.work + self.away + self.hanging + self.slow


class GangScheduler:
    """The gangs of a fleet, and where they run."""

    def __init__(self, fleet: VirtualFleet, month: Month) -> None:
        self.loss = JobLoss()
        # node -> how many of its faults end jobs
        self.hurt: dict[str, int] = {}
        # Called with a gang that has just ended, and its nodes; a fleet may have waited for it.
        self.ended: Callable[[Gang, float], None] = lambda _gang, _now: None
        self._fleet = fleet
        self._jobs = month.profile.jobs
        self._seed = month.seed
        self._owner: dict[str, Gang] = {}
        self._spare: dict[str, None] = dict.fromkeys(month.nodes)
        self._count = 0
        # Nodes on which no job may start now.
        self._absent: dict[str, None] = {}
        # Those for which nodes are short, with their turn.
        self._short: dict[str, tuple[Gang, int]] = {}
        self.gangs = self._made(len(month.nodes))
        for gang in self.gangs:
            self._take(gang, list(self._spare)[: gang.size])
            gang.state, gang.works_since = GangState.RUNNING, fleet.start
            self._plan_end(gang, fleet.start)

    def _made(self, count: int) -> list[Gang]:
        usable = count - max(1, round(count * self._jobs.spare_share)) if count > 1 else count
        gangs: list[Gang] = []
        for number, mix in enumerate(self._jobs.mix):
            share = int(usable * mix.share + 1e-9)
            size = min(mix.nodes or share, share)
            for slot in range(share // size if size else 0):
                gangs.append(Gang(id="", size=size, work_s=0.0))
                self._next_job(gangs[-1], f"{number}.{slot}", 1)
        return gangs

    def _next_job(self, gang: Gang, slot: str, n: int) -> None:
        """The n-th job of a slot takes as long under every policy."""
        hours = self._jobs.mix[int(slot.partition(".")[0])].hours
        chance = random.Random(f"gpuward {self._seed} job {slot} {n}")  # noqa: S311  a simulation
        gang.id = f"{slot}.{n}"
        gang.work_s = round(3600 * hours * exp(0.8 * chance.gauss(0.0, 1.0)), 3) if hours else inf
        gang.done_s = 0.0

    # --- what happens to nodes ---

    def gang_on(self, node: str) -> Gang | None:
        """The gang that is on a node, unless it waits."""
        gang = self._owner.get(node)
        return gang if gang is not None and gang.state is not GangState.WAITING else None

    def has(self, gang: Gang, node: str) -> bool:
        """Whether a node is the gang's, also while it waits."""
        return self._owner.get(node) is gang

    def hit(self, node: str, now: float, *, since: float | None = None) -> None:
        """A fault that ends jobs has begun on a node, or shows now what it has spoilt since then."""
        self.hurt[node] = self.hurt.get(node, 0) + 1
        gang = self.gang_on(node)
        if gang is not None:
            self.fail(gang, now, spoilt_since=since)

    def relieved(self, node: str) -> None:
        """A fault that ends jobs is over."""
        self.hurt[node] -= 1
        if not self.hurt[node]:
            del self.hurt[node]

    def hang(self, node: str, now: float, for_s: float) -> None:
        """The gang on a node hangs, until its watchdog ends it."""
        gang = self.gang_on(node)
        if gang is not None and gang.state is GangState.RUNNING and gang.hangs_since == inf:
            gang.hangs_since = now
            self._fleet.call(now + for_s, partial(self._watchdog, gang, gang.turn))

    def _watchdog(self, gang: Gang, turn: int, now: float) -> None:
        if gang.turn == turn:
            self.fail(gang, now)

    def slowed(self, node: str, now: float, *, slow: bool) -> None:
        """A node is slower than the others from now on, or no longer."""
        gang = self._owner.get(node)
        if gang is None or (node in gang.slow) == slow:
            return
        self._count_slow(gang, now)
        if slow:
            gang.slow[node] = None
        else:
            del gang.slow[node]

    def _count_slow(self, gang: Gang, now: float) -> None:
        if gang.slow and gang.state is GangState.RUNNING:
            since = max(gang.slow_since, gang.works_since)
            self.loss.slow += gang.size * self._jobs.slower_by * max(0.0, now - since)
        gang.slow_since = now

    def looked_at(self, node: str, now: float) -> bool:
        """A machine may have changed: its gang ends with it, or waits for it no longer. Whether a gang ended that it had not
        hurt.
        """
        gang = self.gang_on(node)
        machine = self._fleet.machines[node]
        unhurt = False
        if gang is not None and (not gang.held or machine.down(now)):
            unhurt = node not in self.hurt and gang.hangs_since == inf
            self.fail(gang, now)
        if not self.in_service(machine, now):
            self._absent[node] = None
        elif node in self._absent:
            del self._absent[node]
            for waiting, turn in list(self._short.values()):
                self._try(waiting, turn, now)
        return unhurt

    def in_service(self, machine: Machine, now: float) -> bool:
        """Whether the scheduler may start a job there: it is not drained, and its daemon answers."""
        state = machine.state
        return (
            not state.drain_reason
            and not state.unreachable(now)
            and state.units["slurmd.service"].active == "active"
        )

    # --- what happens to gangs ---

    def fail(self, gang: Gang, now: float, *, spoilt_since: float | None = None) -> None:
        """A gang ends before its time, and is requeued."""
        self.loss.failures += 1
        if gang.state is GangState.RUNNING:
            self._count_slow(gang, now)
            ran_s = max(0.0, min(now, gang.hangs_since) - gang.works_since)
            every_s = self._jobs.checkpoint_minutes * 60
            lost_s = ran_s % every_s
            if spoilt_since is not None:
                lost_s = max(lost_s, min(ran_s, now - spoilt_since))
            self.loss.work += gang.size * lost_s
            self.loss.hanging += gang.size * max(0.0, now - max(gang.hangs_since, gang.works_since))
            gang.done_s += ran_s - lost_s
            gang.down_since = now
        else:
            self.loss.failed_starts += 1
        self._end(gang, now)
        self._fleet.call(now + max(1.0, self._jobs.requeue_minutes * 60), partial(self._try, gang, gang.turn))

    def _end(self, gang: Gang, now: float) -> None:
        gang.held.clear()
        gang.state, gang.hangs_since = GangState.WAITING, inf
        gang.turn += 1
        self.ended(gang, now)

    def _try(self, gang: Gang, turn: int, now: float) -> None:
        """Starts a gang if there are enough nodes; else it is tried again when one comes back."""
        if gang.turn != turn:
            return
        chosen = [node for node in gang.nodes if node not in self._absent]
        if len(chosen) < gang.size:
            ready = (node for node in self._spare if node not in self._absent)
            chosen += islice(ready, gang.size - len(chosen))
        if len(chosen) < gang.size:
            self._short[gang.id] = gang, turn
            return
        self._short.pop(gang.id, None)
        self._take(gang, chosen)
        gang.state = GangState.STARTING
        gang.turn += 1
        self._fleet.call(now + self._jobs.start_minutes * 60, partial(self._started, gang, gang.turn))

    def _take(self, gang: Gang, chosen: list[str]) -> None:
        self._count += 1
        gang.held[f"job-{self._count}"] = USER
        before, kept = gang.nodes, dict.fromkeys(chosen)
        for node in before:
            if node not in kept:
                self._spare[node] = None
                del self._owner[node]
                gang.slow.pop(node, None)
                self._fleet.machines[node].state.jobs = {}
        for node in kept:
            if self._owner.get(node) is not gang:
                del self._spare[node]
                self._owner[node] = gang
                self._fleet.machines[node].state.jobs = gang.held
        gang.nodes = chosen

    def _started(self, gang: Gang, turn: int, now: float) -> None:
        if gang.turn != turn:
            return
        if any(self._owner.get(node) is gang for node in self.hurt):
            self.fail(gang, now)
            return
        away_s = now - gang.down_since - (self._jobs.start_minutes * 60 if gang.fresh else 0.0)
        self.loss.away += gang.size * away_s
        gang.fresh = False
        gang.state, gang.works_since, gang.slow_since = GangState.RUNNING, now, now
        self._plan_end(gang, now)

    def _plan_end(self, gang: Gang, now: float) -> None:
        if gang.work_s < inf:
            self._fleet.call(now + gang.work_s - gang.done_s, partial(self._done, gang, gang.turn))

    def _done(self, gang: Gang, turn: int, now: float) -> None:
        """The job is done; the next one of its slot starts at once."""
        if gang.turn != turn:
            return
        if gang.hangs_since < inf:
            return  # its watchdog comes
        self._count_slow(gang, now)
        self._end(gang, now)
        slot, _, n = gang.id.rpartition(".")
        self._next_job(gang, slot, int(n) + 1)
        gang.down_since, gang.fresh = now, True
        self._try(gang, gang.turn, now)

    def close(self, now: float) -> None:
        """The month is over: what is lost by now counts."""
        for gang in self.gangs:
            self._count_slow(gang, now)
            if gang.state is not GangState.RUNNING:
                self.loss.away += gang.size * (now - gang.down_since)
            elif gang.hangs_since < inf:
                self.loss.hanging += gang.size * (now - gang.hangs_since)
