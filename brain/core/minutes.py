"""The GPUs of each job beside each other, by the minutes that their nodes told last. It serves brain/core/faults/stragglers.py.

Derived from `State.minutes`: never saved, built again from it. A value is counted in steps, so what one event costs does not grow
with the job: a median and the deviations from it are read off the counts of some dozen steps, and only GPUs that lie beyond the
limit are looked at one by one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.contract.counted import counted
from agent.contract.errors import ContractError
from agent.contract.gpu_minutes import GpuMinute, decode
from brain.core.state import JobMinute, State

PEERS = 5  # other nodes of the job that a GPU is compared with; fewer are no peers
# How far beyond the median of the peers, in median absolute deviations: five standard deviations of a normal distribution. The
# five of acceptance figures (decision 23) are 3.4 of these: 14 of 100 jobs of 512 healthy chips would have a straggler.
MADS = 7.5
SHARE = 0.05  # of a clock. Stragglers of MegaScale are about a tenth slower
BUSY_POINTS = 20.0  # of utilisation
COMPUTES = (
    80  # % utilisation of the median GPU: a job that loads data or writes a checkpoint is not judged by it
)
# A GPU that draws more than its peers by this share works more than they do, so it is no straggler; one that waits draws less.
POWER_SHARE = 0.1
# The node with most GPUs may have one in so many of all: with more, what it alone tells would move the median.
ONE_NODE_IN = 4
# One node in so many may be a straggler. More of them are a part of the job that has other work, or share a cause.
ONE_IN = 32
NOT_JUDGED = "?"  # JobMinute.slow of a node that is beyond a limit and no straggler
_WORKS = {
    "clock": "it draws more power than its peers do, so it has more to do than they",
    "waits": "its power is that of its peers or not known, so it may do other work",
}
_MANY = f"more than one in {ONE_IN} nodes of the job are as far from the others: they have other work, or share a cause"
_CLOCK_STEP, _POWER_STEP, _BUSY_STEP = 5, 5, 1  # MHz, W, %


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One quantity over all GPUs of a job."""

    median: float
    # median absolute deviation
    spread: float
    # a lower value lies beyond it, whatever one node tells: from the lowest median and the largest deviation that may be left
    # without that node
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """What a node's GPUs show that lie beyond the limit."""

    # clock | waits
    what: str
    # PCI addresses of those GPUs, and how many the node has in the job
    gpus: tuple[str, ...]
    of: int
    # of the slowest of them: MHz or %, and W
    value: float
    power_w: float
    beside: Beside
    # median power of the peers, W
    usual_power_w: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All nodes of one job that are slow, and why no more of it is judged."""

    slow: dict[str, Slow]
    # nodes that lie beyond a limit and are no stragglers -> why, as a clause
    unjudged: dict[str, str]


class Steps:
    """How many GPUs have each value, in steps, and on which nodes (a bit for each place in the node's list)."""

    __slots__ = ("_counts", "_nodes", "_step")

    def __init__(self, step: int) -> None:
        self._step = step
        self._counts: dict[int, int] = {}
        self._nodes: dict[int, dict[str, int]] = {}

    def add(self, node: str, slot: int, value: int) -> None:
        """Counts one GPU."""
        step = value // self._step
        self._counts[step] = self._counts.get(step, 0) + 1
        here = self._nodes.setdefault(step, {})
        here[node] = here.get(node, 0) | 1 << slot

    def take(self, node: str, slot: int, value: int) -> None:
        """Counts it no more."""
        step = value // self._step
        here = self._nodes[step]
        here[node] &= ~(1 << slot)
        if not here[node]:
            del here[node]
        self._counts[step] -= 1
        if not self._counts[step]:
            del self._counts[step], self._nodes[step]

    def middle(self, one_node: int = 0) -> tuple[float, float]:
        """The median and the median absolute deviation from it; (0, 0) of nothing. `one_node`: so many of the values may be lies
        of one node; the lowest median and the largest deviation that they may hide.
        """
        half = sum(self._counts.values()) // 2
        median = _at(sorted(self._counts.items()), half - one_node)
        apart: dict[int, int] = {}
        for step, count in self._counts.items():
            apart[abs(step - median)] = apart.get(abs(step - median), 0) + count
        return float(median * self._step), float(_at(sorted(apart.items()), half + one_node) * self._step)

    def below(self, limit: float, most: int) -> dict[str, int] | None:
        """Node -> its GPUs that lie below the limit; None: these are more than `most` nodes."""
        found: dict[str, int] = {}
        for step in sorted(step for step in self._counts if step * self._step < limit):
            for node, slots in self._nodes[step].items():
                found[node] = found.get(node, 0) | slots
                if len(found) > most:
                    return None
        return found

    def is_below(self, limit: float, node: str) -> bool:
        """Whether a GPU of this node lies below the limit."""
        return any(step * self._step < limit and node in here for step, here in self._nodes.items())


class JobPeers:
    """The GPUs of one model in one job."""

    def __init__(self) -> None:
        # node -> key of its minute in State.minutes
        self.nodes: dict[str, str] = {}
        # the same, of those that were told to be slow
        self.suspects: dict[str, str] = {}
        self._clocks, self._powers, self._busy = Steps(_CLOCK_STEP), Steps(_POWER_STEP), Steps(_BUSY_STEP)
        # how many GPUs a node has -> how many nodes have so many
        self._sizes: dict[int, int] = {}

    def add(self, key: str, minute: JobMinute) -> None:
        """A node tells its minute."""
        self.nodes[minute.node] = key
        if minute.slow not in ("", NOT_JUDGED):
            self.suspects[minute.node] = key
        gpus = gpus_of(minute)
        self._sizes[len(gpus)] = self._sizes.get(len(gpus), 0) + 1
        for slot, one in enumerate(gpus):
            for steps, value in self._values(one):
                steps.add(minute.node, slot, value)

    def take(self, minute: JobMinute) -> None:
        """What it told before does not hold any more."""
        del self.nodes[minute.node]
        self.suspects.pop(minute.node, None)
        gpus = gpus_of(minute)
        self._sizes[len(gpus)] -= 1
        if not self._sizes[len(gpus)]:
            del self._sizes[len(gpus)]
        for slot, one in enumerate(gpus):
            for steps, value in self._values(one):
                steps.take(minute.node, slot, value)

    def _values(self, one: GpuMinute) -> Iterator[tuple[Steps, int]]:
        if one.sm_mhz:
            yield self._clocks, one.sm_mhz
        if one.power_w:
            yield self._powers, one.power_w
        yield self._busy, one.busy

    def judge(self, state: State, node: str) -> Judgement:
        """Which nodes are slow, and whether `node`, which has told its minute, is beyond a limit for another reason."""
        usual_w, _ = self._powers.middle()
        clock, busy = self.clock(), self._used()
        slow: dict[str, Slow] = {}
        unjudged: dict[str, str] = {}
        why_not = self._why_not()
        for what, steps, beside in (("clock", self._clocks, clock), ("waits", self._busy, busy)):
            if beside is None:
                continue
            found = None if why_not else steps.below(beside.limit, self._most())
            if found is None:
                if steps.is_below(beside.limit, node):
                    unjudged[node] = why_not or _MANY
                continue
            for name, slots in found.items():
                one = self._slow(state, name, what, slots, beside, usual_w)
                if one is not None:
                    slow.setdefault(name, one)
                elif name == node:
                    unjudged[name] = _WORKS[what]
        return Judgement(
            slow=slow, unjudged={name: why for name, why in unjudged.items() if name not in slow}
        )

    def clock(self) -> Beside | None:
        """The SM clock over all GPUs; None: nobody tells it."""
        median, spread = self._clocks.middle()
        if not median:
            return None
        least, most = self._clocks.middle(self._one_node())
        return Beside(median=median, spread=spread, limit=least - max(MADS * most, SHARE * least))

    def _used(self) -> Beside | None:
        median, spread = self._busy.middle()
        if median < COMPUTES:
            return None
        least, most = self._busy.middle(self._one_node())
        return Beside(median=median, spread=spread, limit=least - max(MADS * most, BUSY_POINTS))

    def _most(self) -> int:
        return max(1, len(self.nodes) // ONE_IN)

    def _one_node(self) -> int:
        """How many GPUs may be lies of one node; 0 where nothing is judged, so that what deviates is noted."""
        return 0 if self._why_not() else max(self._sizes)

    def _why_not(self) -> str:
        """Why nothing can be said of the job; empty: it can."""
        others = len(self.nodes) - 1
        if others < PEERS:
            return f"{counted(others, 'other node')} of the job with such GPUs told theirs, and {PEERS} are needed to judge"
        all_of_them = sum(size * nodes for size, nodes in self._sizes.items())
        if ONE_NODE_IN * max(self._sizes) > all_of_them:
            return f"one node has {max(self._sizes)} of the {all_of_them} such GPUs of the job, so they are no peers"
        return ""

    def _slow(
        self, state: State, node: str, what: str, slots: int, beside: Beside, usual_w: float
    ) -> Slow | None:
        gpus = gpus_of(state.minutes[self.nodes[node]])
        chosen = [
            one
            for slot, one in enumerate(gpus)
            if slots >> slot & 1 and _value(one, what) < beside.limit and _may(one, what, usual_w)
        ]
        if not chosen:
            return None
        worst = min(chosen, key=lambda one: _value(one, what))
        return Slow(
            what=what,
            gpus=tuple(one.bdf for one in chosen),
            of=len(gpus),
            value=_value(worst, what),
            power_w=worst.power_w,
            beside=beside,
            usual_power_w=usual_w,
        )


class JobMinutes:
    """The jobs whose GPUs are compared: job and model -> its nodes."""

    def __init__(self, state: State) -> None:
        self.jobs: dict[tuple[str, str], JobPeers] = {}
        self.of_job: dict[str, dict[str, JobPeers]] = {}  # job -> model
        self.of_node: dict[str, dict[str, None]] = {}  # node -> keys of its minutes, the oldest first
        for key, minute in state.minutes.items():
            self.add(key, minute)

    def add(self, key: str, minute: JobMinute) -> JobPeers:
        """A minute holds from now on. Returns the job's GPUs."""
        peers = self.jobs.get((minute.job, minute.model))
        if peers is None:
            peers = self.jobs[minute.job, minute.model] = JobPeers()
            self.of_job.setdefault(minute.job, {})[minute.model] = peers
        peers.add(key, minute)
        here = self.of_node.setdefault(minute.node, {})
        here.pop(key, None)
        here[key] = None
        return peers

    def take(self, key: str, minute: JobMinute) -> None:
        """It holds no more."""
        peers = self.jobs[minute.job, minute.model]
        peers.take(minute)
        if not peers.nodes:
            del self.jobs[minute.job, minute.model], self.of_job[minute.job][minute.model]
            if not self.of_job[minute.job]:
                del self.of_job[minute.job]
        here = self.of_node[minute.node]
        del here[key]
        if not here:
            del self.of_node[minute.node]


def gpus_of(minute: JobMinute) -> Sequence[GpuMinute]:
    """The GPUs of a minute. What does not fit was refused when it came."""
    try:
        return decode(
            {"gpus": minute.gpus, "sm_mhz": minute.sm_mhz, "power_w": minute.power_w, "busy": minute.busy}
        )
    except ContractError:  # of a snapshot that an older or newer version wrote
        return ()


def _value(one: GpuMinute, what: str) -> int:
    return one.sm_mhz if what == "clock" else one.busy


def _may(one: GpuMinute, what: str, usual_w: float) -> bool:
    """Whether its power fits what it seems to be. Without a power nothing speaks against it but for one that waits."""
    if what == "clock":
        return not usual_w or one.power_w <= (1 + POWER_SHARE) * usual_w
    return bool(usual_w and one.power_w) and one.power_w < (1 - POWER_SHARE) * usual_w


def _at(counts: Sequence[tuple[int, int]], place: int) -> int:
    """Which of all values, in their order, stands at this place, from 0, by sorted (value, how often); else the first or last."""
    seen = 0
    for value, count in counts:
        seen += count
        if seen > place:
            return value
    return counts[-1][0] if counts else 0
