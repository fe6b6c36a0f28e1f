"""Who is hit: the jobs on the nodes of an incident, as their schedulers tell it. Pure.

People read it; no gate, run or page is decided by it (decision 64). An incident asks when it begins, so that its first page may
say it, once for each node, whoever else asks there. It is forgotten with the incident.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from brain.core.context import Context
from brain.core.effects import AskJobs
from brain.core.hit_words import sentence, standing
from brain.core.jobs_seen import JobSeen
from brain.core.pack.spec import Scalar
from brain.core.state import HitJob, HitNode, Incident, IncidentState, NodeJobs

TIMER = "hit"  # `hit:<incident>`: nothing was known, and it is asked again
MAX_NODES = 16  # of one incident that are asked about
MAX_JOBS = 16  # of one node that are kept, those that are gone too
MAX_TOLD = 5  # jobs that one note names
MAX_OUT = 64  # questions that are out at most when one is asked for an incident that still settles: a wider one may explain it
FRESH_S = 60.0  # an answer this young is not asked for again
_OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)
# Where nothing was known it is asked again after these times, and then no more.
AGAIN_S = (60.0, 300.0, 1500.0)


def follow(ctx: Context) -> None:
    """After each input: the incidents that it has changed ask about nodes of which they have not, or are over.

    While one settles it asks only about its own node, and only as long as few questions are out.
    """
    for incident in ctx.shown:
        if incident.state in _OVER:
            ctx.cancel_timer(f"{TIMER}:{incident.id}")
        elif ctx.compiled.settings.ask_who_is_hit and len(incident.hit) < MAX_NODES:
            settles = incident.state is IncidentState.SETTLING
            for node in islice(incident.affected, 1 if settles else MAX_NODES):
                wait = settles and (node != incident.node or len(ctx.state.asked) >= MAX_OUT)
                if node not in incident.hit and len(incident.hit) < MAX_NODES and not wait:
                    _ask(ctx, incident, node)


def came_back(ctx: Context, incident: Incident) -> None:
    """The fault is back: asks again about the nodes of which it is known for a while."""
    for node, told in incident.hit.items():
        if told.at and ctx.now - told.at > FRESH_S and ctx.compiled.settings.ask_who_is_hit:
            _ask(ctx, incident, node)


def ask_again(ctx: Context, incident: Incident) -> None:
    """Its timer fired: asks about the nodes of which nothing was known."""
    for node, told in incident.hit.items():
        if told.why and told.asked <= len(AGAIN_S) and ctx.compiled.settings.ask_who_is_hit:
            _ask(ctx, incident, node)


def new_leader(ctx: Context) -> None:
    """What the former leader was asked and has not answered is asked again."""
    ctx.state.asked.clear()
    if not ctx.compiled.settings.ask_who_is_hit:
        return
    for incident in ctx.state.incidents.values():
        for node, told in incident.hit.items():
            if not (told.at or told.why or incident.closed_at):
                _send(ctx, node)


def answered(ctx: Context, node: str, answer: NodeJobs) -> None:
    """A scheduler has said what runs on the node, whoever asked: the incidents of the node keep it, and so do the wider ones that
    asked about it.
    """
    ctx.state.asked.pop(node, None)
    for incident in (*ctx.index.open_at.get(node, {}).values(), *ctx.index.open_at.get("", {}).values()):
        if incident.node == node or node in incident.hit:
            _keep(ctx, incident, node, answer)


def inherit(by: Incident, former: Incident) -> None:
    """`by` explains `former` from now on: who is hit by that is hit by this. An answer that is still out comes to it, too."""
    for node, told in former.hit.items():
        if node not in by.hit and len(by.hit) < MAX_NODES:
            by.hit[node] = replace(told, jobs=list(told.jobs))  # a snapshot would tell them apart


def _ask(ctx: Context, incident: Incident, node: str) -> None:
    told = incident.hit.setdefault(node, HitNode())
    told.asked += 1
    ctx.show(incident)
    fresh = ctx.state.jobs.get(node)
    if fresh is not None and fresh.known:
        _keep(ctx, incident, node, fresh)
    else:
        _send(ctx, node)


def _send(ctx: Context, node: str) -> None:
    """One question for all incidents that ask it."""
    if node not in ctx.state.asked:
        ctx.state.asked[node] = ctx.now
        ctx.effects.append(AskJobs(node=node, people=True))


def _keep(ctx: Context, incident: Incident, node: str, answer: NodeJobs) -> None:
    told = incident.hit.setdefault(node, HitNode())
    ctx.show(incident)
    told.scheduler = answer.scheduler
    first = bool(told.asked) and not told.known_since  # who looks at its page sees the answer by its note
    if not answer.known:
        why, told.why = told.why, answer.why or "it has not said why"
        if first and not why:
            _note(ctx, incident, node, f"it is not known whose jobs run on {node}: {told.why}")
        timer = f"{TIMER}:{incident.id}"
        if not told.at and 0 < told.asked <= len(AGAIN_S) and timer not in ctx.state.timers:
            ctx.set_timer(timer, ctx.now + AGAIN_S[told.asked - 1])
        return
    told.known_since = told.known_since or answer.at
    told.at, told.why, told.unlisted = answer.at, "", answer.unlisted
    before = [one.job.id for one in told.jobs]
    told.jobs = _merged(told.jobs, answer.seen, answer.at)
    came = [one.job for one in told.jobs if one.job.id not in before and not one.gone_at]
    if came:
        _tell(ctx, incident, node, came)
    elif first:
        none = f"it is not known whose jobs run there: no scheduler of the configuration has {node}"
        _note(ctx, incident, node, f"no job runs on {node}" if answer.scheduler != "" else none)


def _merged(before: list[HitJob], seen: list[JobSeen], at: float) -> list[HitJob]:
    """Those that run there, the known ones first, and then those that are gone, the last ones to go first."""
    now = {job.id: job for job in seen}
    stay = [
        HitJob(job=_larger(now.pop(one.job.id), one.job), since=one.since)
        for one in before
        if one.job.id in now
    ]
    came = [HitJob(job=job, since=at) for job in now.values()]
    here = {one.job.id: True for one in stay}
    gone = [
        HitJob(job=one.job, since=one.since, gone_at=one.gone_at or at)
        for one in before
        if one.job.id not in here
    ]
    return [*stay, *came, *sorted(gone, key=lambda one: -one.gone_at)][:MAX_JOBS]


def _larger(job: JobSeen, before: JobSeen) -> JobSeen:
    """What a gate asked for may leave out how large the job is."""
    return job if job.nodes or not before.nodes else replace(job, nodes=before.nodes)


def _tell(ctx: Context, incident: Incident, node: str, came: list[JobSeen]) -> None:
    """One note for what is new of a node."""
    ids = {job.id: True for job in came}
    lines = [line for line in standing(incident.hit, asks=True).jobs if line.job.id in ids]
    more = f"; and {len(lines) - MAX_TOLD} more" if len(lines) > MAX_TOLD else ""
    _note(ctx, incident, node, f"on {node} runs {'; '.join(map(sentence, lines[:MAX_TOLD]))}{more}", came)


def _note(ctx: Context, incident: Incident, node: str, text: str, came: Sequence[JobSeen] = ()) -> None:
    data: dict[str, Scalar | list[str]] = {"node": node, "jobs": [job.id for job in came]}
    ctx.note("incident.hit", text, incident=incident.id, scope=incident.scope, data=data)
