"""Who is hit by an incident, put together over its nodes, and how it reads. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from agent.contract.counted import counted
from brain.core.jobs_seen import JobSeen
from brain.core.state import HitNode


class HitKnown(StrEnum):
    """What is known of who is hit by an incident."""

    KNOWN = "known"  # `jobs` ran there, or none did
    ASKED = "asked"  # the answer is still out
    SILENT = "silent"  # the scheduler did not answer
    NO_TABLE = "no_table"  # no scheduler of the configuration has these nodes
    NO_SCHEDULER = "no_scheduler"  # none is configured
    NOT_ASKED = "not_asked"  # it was open before this version led, or settles, or is about no node


@dataclass(frozen=True, slots=True, kw_only=True)
class HitLine:
    """One job over all nodes of an incident that were asked about."""

    # as the newest answer has it
    job: JobSeen
    # on which of these nodes it ran
    on: tuple[str, ...]
    # GPUs that it has on them; 0: none, or not known
    gpus: int
    since: float
    # when it was first not named any more on the last of them; 0: it still runs there
    gone_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HitStanding:
    """Who is hit by an incident, as far as that is known."""

    known: HitKnown
    # those that still run there first, of these the largest first
    jobs: tuple[HitLine, ...]
    # when it was first known, and the newest answer; 0: it is not
    since: float
    at: float
    # why it is not known of some node; empty: it is
    why: str
    # nodes that were asked about, and of how many of them it is known
    asked: int
    answered: int
    # how many more jobs their schedulers named
    unlisted: int


def standing(hit: Mapping[str, HitNode], *, asks: bool) -> HitStanding:
    """Puts together what is known of each node. `asks`: a scheduler is configured."""
    told = [one for one in hit.values() if one.at]
    with_table = [one for one in told if one.scheduler != ""]
    return HitStanding(
        known=_known(hit, asks=asks),
        jobs=_lines(hit),
        since=min((one.known_since for one in with_table), default=0.0),
        at=max((one.at for one in with_table), default=0.0),
        why=next((f"{one.why} ({node})" for node, one in hit.items() if one.why), ""),
        asked=len(hit),
        answered=len(with_table),
        unlisted=sum(one.unlisted for one in told),
    )


def _known(hit: Mapping[str, HitNode], *, asks: bool) -> HitKnown:
    told = [one for one in hit.values() if one.at]
    if any(one.jobs or one.scheduler != "" for one in told):
        return HitKnown.KNOWN
    if told:
        return HitKnown.NO_TABLE
    if any(one.why for one in hit.values()):
        return HitKnown.SILENT
    if hit:
        return HitKnown.ASKED
    return HitKnown.NOT_ASKED if asks else HitKnown.NO_SCHEDULER


def _lines(hit: Mapping[str, HitNode]) -> tuple[HitLine, ...]:
    found: dict[str, HitLine] = {}
    for node, told in hit.items():
        for one in told.jobs:
            before = found.get(one.job.id)
            if before is None:
                found[one.job.id] = HitLine(
                    job=one.job, on=(node,), gpus=one.job.gpus, since=one.since, gone_at=one.gone_at
                )
                continue
            gone_at = 0.0 if not (before.gone_at and one.gone_at) else max(before.gone_at, one.gone_at)
            found[one.job.id] = HitLine(
                job=one.job if before.gone_at and not one.gone_at else before.job,
                on=(*before.on, node),
                gpus=before.gpus + one.job.gpus,
                since=min(before.since, one.since),
                gone_at=gone_at,
            )
    size = {id_: max(line.job.nodes, len(line.on)) for id_, line in found.items()}
    return tuple(
        sorted(found.values(), key=lambda line: (bool(line.gone_at), -size[line.job.id], line.job.id))
    )


def sentence(line: HitLine) -> str:
    """`job 4711 (train-llama) of alice: 1 of its 16 nodes, 8 GPUs`."""
    job = line.job
    name = f" ({job.name})" if job.name and job.name != job.id.rpartition("/")[2] else ""
    user = f" of {job.user}" if job.user else ""
    gpus = f", {counted(line.gpus, 'GPU')}" if line.gpus else ""
    return f"job {job.id}{name}{user}: {share(line)}{gpus}"


def share(line: HitLine) -> str:
    """How much of the job it is."""
    here, of = len(line.on), line.job.nodes
    if not of or of < here:  # not known, or the scheduler has counted at another moment
        return f"{counted(here, 'node')} of it"
    if of == 1:
        return "its only node"
    return f"all of its {of} nodes" if here == of else f"{here} of its {of} nodes"


def together(hits: Iterable[Mapping[str, HitNode]]) -> dict[str, HitNode]:
    """Who is hit by several incidents: of a node that several have, the one that knows most."""
    found: dict[str, HitNode] = {}
    for hit in hits:
        for node, told in hit.items():
            before = found.get(node)
            if before is None or (told.at, len(told.jobs)) > (before.at, len(before.jobs)):
                found[node] = told
    return found


def of_several(hits: Iterable[Mapping[str, HitNode]]) -> str:
    """One line for a page about several incidents: `3 jobs of 2 users; the largest: alice's 4711 (4 of its 16 nodes); not known
    of 2 nodes`. Empty where no scheduler has said anything.
    """
    hit = together(hits)
    now = standing(hit, asks=True)
    if now.known is not HitKnown.KNOWN:
        return short(hit)
    there = [line for line in now.jobs if not line.gone_at]
    missing = now.asked - now.answered
    unknown = f"; not known of {counted(missing, 'node')}" if missing else ""
    if len(there) + now.unlisted < 2:
        return short(hit) + unknown
    users = dict.fromkeys(line.job.user for line in there if line.job.user)
    whose = f" of {counted(len(users), 'user')}" if users else ""
    return f"{counted(len(there) + now.unlisted, 'job')}{whose}; the largest: {_whose(there[0])} ({share(there[0])}){unknown}"


def short(hit: Mapping[str, HitNode]) -> str:
    """One line for a page: `alice's 4711 (1 of its 16 nodes), and 2 more jobs`. Empty where no scheduler has said anything."""
    now = standing(hit, asks=True)
    if now.known is HitKnown.SILENT:
        return f"not known: {now.why}"
    if now.known is not HitKnown.KNOWN:
        return ""
    there = [line for line in now.jobs if not line.gone_at]
    first = (there or now.jobs)[:1]
    if not first:
        return "nobody: no job runs there"
    whose = _whose(first[0])
    gone = "" if there else ", which is gone by now"
    more = len(now.jobs) - 1 + now.unlisted
    others = f", and {counted(more, 'more job')}" if more > 0 else ""
    return f"{whose} ({share(first[0])}{gone}){others}"


def _whose(line: HitLine) -> str:
    return f"{line.job.user}'s {line.job.id}" if line.job.user else f"job {line.job.id}"
