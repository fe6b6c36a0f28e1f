"""Schedulers as witnesses: what they say of nodes, of the GPUs there and of jobs that wait, as facts. Pure.

The same for Slurm and Kubernetes, which each make `NodeSaid` and `WaitingJob` of what they have. A state is told when it begins
or changes, again every AGAIN_S while it lasts, and when it is over. What is on the log is learned from there (`learn`), so that
the next leader goes on.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.contract.messages import Scalar, Severity, clip
from brain.actions.kube_device_taints import DeviceTaint
from brain.core.inputs import Reported
from brain.core.pack import scheduler_kinds

SOURCE = "scheduler"
AGAIN_S = 1800.0
SPARES_S = 600.0  # spares that are short, or enough again, for less are not told
SETTLES_S = 30.0  # a node that has been unusable for less is not told
WAITS_S = 3600.0
NAMED = 5  # jobs that one fact names
_MOST_TEXT = 400
# Reasons that pass by themselves, or are somebody's will: Slurm's, by `squeue` (JOB REASON CODES); Resources, of pods, too.
PASSES = (
    *(
        "Resources",
        "Priority",
        "Dependency",
        "BeginTime",
        "JobHeldUser",
        "JobArrayTaskLimit",
        "Licenses",
        "Cleaning",
    ),
    *(
        "Reservation",
        "Prolog",
        "None",
        "WaitingForScheduling",
        "AssocGrp",
        "AssocMax",
        "QOSGrp",
        "QOSMax",
        "QOSJobLimit",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSaid:
    """What a scheduler says of one node now."""

    node: str
    # It can have no jobs, though nobody wants that: in the scheduler's words; empty: it can
    unusable: str = ""
    # For so long, where the scheduler says it; None: since it was first seen
    unusable_s: float | None = None
    why: str = ""
    # It hears nothing of the node, whatever was said of it (drained, cordoned): in its words; empty: it does
    lost: str = ""
    # Somebody else has drained it: their reason; empty: nobody, or we have
    drained: str = ""
    drained_by: str = ""
    # GPUs that it should have, and that jobs can have; None: the scheduler does not say
    gpus: tuple[int, int] | None = None
    gpus_text: str = ""
    # No job has it, and the next one can have it at once
    idle: bool = False
    # It takes no jobs: drained, by us or others, or down
    out: bool = False
    # A device plug-in offers nothing any more; of a node with several makers' it may be one of them
    plugin_down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job that has been waiting for `waits_s`."""

    id: str
    user: str
    waits_s: float
    # The scheduler's, with its details behind a comma or blank
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spares:
    """What a pool has now."""

    pool: str
    # Idle and healthy nodes
    ready: int
    wanted: int
    # Nodes of the pool
    of: int
    # Idle nodes that are not healthy
    ill: tuple[str, ...] = ()
    # Nodes that take no jobs
    out: int = 0


@dataclass(slots=True)
class _Standing:
    """What the log has of one kind and node."""

    digest: str
    active: bool
    at_s: float


class Witness:
    """One scheduler. `now_s`: the wall clock."""

    def __init__(self, name: str, *, idle_after_s: float = 0.0) -> None:
        """`idle_after_s`: a node without jobs for so long is told as idle; 0: none is."""
        self._name = name
        self._idle_after_s = idle_after_s
        self._idle_since: dict[str, float] = {}
        self._spares_since: dict[str, tuple[bool, float]] = {}  # pool -> short or not, since when
        self._told: dict[tuple[str, str], _Standing] = {}  # (kind, node)
        self._since: dict[str, float] = {}  # node -> since when it has been seen unusable
        self._lost_since: dict[str, float] = {}  # node -> since when the scheduler does not hear it

    def nodes(self, said: Iterable[NodeSaid], now_s: float) -> list[Reported]:
        """What one look at nodes tells that the log does not have yet."""
        return [report for one in said for report in self._node(one, now_s)]

    def queue(self, jobs: Sequence[WaitingJob], now_s: float) -> list[Reported]:
        """The same of the jobs that wait."""
        stuck = sorted((one for one in jobs if _is_stuck(one)), key=lambda one: -one.waits_s)
        counts = Counter(_code(one.reason) for one in stuck)
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
        named = "; ".join(
            f"{one.id} of {one.user or '?'} for {one.waits_s / 3600:.1f} h: {one.reason}"
            for one in stuck[:NAMED]
        )
        data: dict[str, Scalar] = {
            "jobs": len(stuck),
            "reasons": clip(reasons, _MOST_TEXT),
            "text": clip(named, _MOST_TEXT),
        }
        # Other jobs for the same reasons are no news.
        state = " ".join(sorted(counts))
        kind = scheduler_kinds.SCHEDULER_QUEUE
        return list(self._state(kind, "", bool(stuck), data, state, Severity.WARNING, now_s))

    def spares(self, found: Spares, now_s: float) -> list[Reported]:
        """What a count of a pool tells: that spares have been short for a while, that they are other ones, or enough again."""
        kind = f"{scheduler_kinds.SCHEDULER_SPARES}/{found.pool}"
        told = self._told.get((kind, ""))
        stands = told is not None and told.active
        short = found.ready < found.wanted
        was, since_s = self._spares_since.get(found.pool, (not short, now_s))
        if was != short:
            since_s = now_s
        self._spares_since[found.pool] = short, since_s
        # A job that ends and the next one that starts are no news: each side counts when it has lasted.
        active = short if now_s - since_s >= SPARES_S else stands
        data: dict[str, Scalar] = {
            "pool": found.pool,
            "ready": found.ready,
            "wanted": found.wanted,
            "of": found.of,
            "out": found.out,
            "ill": clip(", ".join(found.ill), _MOST_TEXT),
        }
        # One spare more or less is no news; none at all is.
        state = "none" if not found.ready else "few"
        return list(self._state(kind, "", active, data, state, Severity.WARNING, now_s))

    def devices(self, node: str, taints: Sequence[DeviceTaint], now_s: float) -> list[Reported]:
        """The same of the devices of a node that are tainted; none are: all of them can be had."""

        def each(key: str) -> str:
            return clip(", ".join(dict.fromkeys(str(getattr(one, key)) for one in taints)), 200)

        by_driver = any(not one.rule for one in taints)
        data: dict[str, Scalar] = {
            "devices": len({(one.driver, one.pool, one.device) for one in taints}),
            **{key: each(key) for key in ("driver", "pool", "device", "key", "effect")},
            "by_driver": by_driver,
            "text": clip("; ".join(one.text for one in taints), _MOST_TEXT),
        }
        state = "\n".join(one.text for one in taints)
        severity = Severity.ERROR if by_driver else Severity.INFO
        kind = scheduler_kinds.SCHEDULER_DEVICES
        return list(self._state(kind, node, bool(taints), data, state, severity, now_s))

    def learn(self, given: Reported, now_s: float) -> None:
        """Takes a report from the log, of whichever brain leads."""
        source, _, rest = given.id.partition(":")
        name, _, rest = rest.partition(":")
        node, _, rest = rest.partition(":")
        kind, _, rest = rest.partition(":")
        told = node, kind.partition("/")[0]  # of a pool, its name stands behind
        if source == SOURCE and name == self._name and told == (given.node, given.kind):
            active = bool(given.data.get("active"))
            self._told[kind, node] = _Standing(digest=rest.partition(":")[0], active=active, at_s=now_s)

    def _node(self, said: NodeSaid, now_s: float) -> Iterator[Reported]:
        if said.unusable:
            since_s = self._since.setdefault(said.node, now_s - (said.unusable_s or 0.0))
            lasts = now_s - since_s >= SETTLES_S
        else:
            self._since.pop(said.node, None)
            lasts = False
        if lasts or not said.unusable:
            data: dict[str, Scalar] = {"state": clip(said.unusable, 80), "text": clip(said.why, _MOST_TEXT)}
            kind = scheduler_kinds.SCHEDULER_NODE
            yield from self._state(kind, said.node, lasts, data, said.unusable, Severity.ERROR, now_s)
        yield from self._lost(said, now_s)
        drain: dict[str, Scalar] = {"by": clip(said.drained_by, 80), "text": clip(said.drained, _MOST_TEXT)}
        kind, drained = scheduler_kinds.SCHEDULER_DRAINED, bool(said.drained)
        yield from self._state(kind, said.node, drained, drain, said.drained, Severity.INFO, now_s)
        if said.gpus is not None:
            have, usable = said.gpus
            gpus: dict[str, Scalar] = {
                "have": have,
                "usable": usable,
                "plugin_down": said.plugin_down or (have > 0 and usable == 0),
                "text": clip(said.gpus_text, _MOST_TEXT),
            }
            # Of several resources each has its number in the text: one may fail while another comes back.
            kind, state = scheduler_kinds.SCHEDULER_GPUS, f"{usable} of {have} {said.gpus_text}"
            yield from self._state(kind, said.node, usable < have, gpus, state, Severity.ERROR, now_s)
        if self._idle_after_s:
            yield from self._idle(said, now_s)

    def _lost(self, said: NodeSaid, now_s: float) -> Iterator[Reported]:
        """A ping that a busy node has not answered is nothing: it must last, as for a node that is unusable."""
        if not said.lost:
            self._lost_since.pop(said.node, None)
        elif now_s - self._lost_since.setdefault(said.node, now_s - (said.unusable_s or 0.0)) < SETTLES_S:
            return
        data: dict[str, Scalar] = {"text": clip(said.lost, _MOST_TEXT)}
        kind = scheduler_kinds.SCHEDULER_LOST
        yield from self._state(kind, said.node, bool(said.lost), data, said.lost, Severity.WARNING, now_s)

    def _idle(self, said: NodeSaid, now_s: float) -> Iterator[Reported]:
        kind = scheduler_kinds.SCHEDULER_IDLE
        if not said.idle:
            self._idle_since.pop(said.node, None)
            yield from self._state(kind, said.node, False, {"idle_s": 0.0}, "", Severity.INFO, now_s)
            return
        told = self._told.get((kind, said.node))
        since_s = self._idle_since.setdefault(said.node, now_s)
        stands = told is not None and told.active
        if told is not None and stands and now_s - told.at_s < AGAIN_S:
            return  # also of a leader before: since when, it has not seen
        if stands or now_s - since_s >= self._idle_after_s:
            data: dict[str, Scalar] = {"idle_s": round(now_s - since_s, 1)}
            yield from self._state(kind, said.node, True, data, str(round(since_s)), Severity.INFO, now_s)

    def _state(
        self,
        kind: str,
        node: str,
        active: bool,  # what it is about
        data: Mapping[str, Scalar],
        state: str,
        severity: Severity,
        now_s: float,
    ) -> Iterator[Reported]:
        told = self._told.get((kind, node))
        lasts = told is not None and told.active
        if not active and not lasts:
            return
        what = (
            state if active or told is None else told.digest
        )  # an end is of what began, and not that of an hour ago
        digest = hashlib.sha256(f"{active}\n{what}".encode()).hexdigest()[:16]
        if told is not None and active and digest == told.digest and now_s - told.at_s < AGAIN_S:
            return
        self._told[kind, node] = _Standing(digest=digest, active=active, at_s=now_s)
        yield Reported(
            id=f"{SOURCE}:{self._name}:{node}:{kind}:{digest}:{int(now_s // AGAIN_S)}",
            source=SOURCE,
            node=node,
            kind=kind.partition("/")[0],
            component="node",
            severity=severity if active else Severity.INFO,
            data={"active": active, "scheduler": self._name, **data},
        )


def ours(template: str, name: str) -> str:
    """Our name of the node that a scheduler calls so, by `node_name`; empty: it is none of that form."""
    before, _, after = template.partition("{node}")
    if not name.startswith(before) or not name.endswith(after) or len(name) < len(before) + len(after):
        return ""
    return name[len(before) : len(name) - len(after)]


def _code(reason: str) -> str:
    """The reason without its details."""
    return clip(reason.strip("()").replace(",", " ").split(" ")[0].strip("(), ") or "unknown", 60)


def _is_stuck(job: WaitingJob) -> bool:
    return job.waits_s >= WAITS_S and not _code(job.reason).startswith(PASSES)
