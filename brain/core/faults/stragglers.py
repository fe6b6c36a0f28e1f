"""Stragglers: a GPU or a node that is slower than its peers of the same job, for minutes. Pure.

Nodes tell what the GPUs of each job did in a minute, when that has moved (gpu.minute). A GPU whose SM clock is far below those of
the job's other GPUs of its model is slow; so is one that stands idle while the others compute. The symptom must last
(`for_s` of gpu_straggler and node_straggler): one minute is a checkpoint. What is slow is kept with the node's minute, so
a brain that starts anew goes on with the same. Decision 76.

A synchronous job is as slow as its slowest part and all its nodes have the same step time, so step times name nobody; clocks do.
"""

from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter

from agent.contract import components
from agent.contract.counted import counted, span
from agent.contract.errors import ContractError
from agent.contract.gpu_minutes import decode
from agent.contract.messages import Event, Scalar, Severity, clip
from brain.core import ids
from brain.core.context import Context
from brain.core.faults import job_steps, symptoms
from brain.core.minutes import NOT_JUDGED, JobMinutes, JobPeers, Slow, gpus_of
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.vocabulary import GPU_STRAGGLER, NODE_STRAGGLER
from brain.core.state import JobMinute, SymptomState

KIND = "gpu.minute"
_KINDS = (KIND, job_steps.KIND)
HOLDS_S = 1500.0  # a minute is told again every ten minutes: after two and a half of them it holds no more
LATE_S = 300.0  # what is older when it comes is not compared with what is new
MAX_JOBS = 8  # jobs of one node that are compared
# One that was as its peers for so long had the same work as they, and has it still.
ALIKE_S = 300.0


def feed(ctx: Context, event: Event) -> list[SymptomState]:
    """Takes what a node tells of its GPUs. Returns the symptoms of stragglers that began, ended or go on."""
    if event.kind not in _KINDS:  # as nearly all events
        return []
    if event.kind == job_steps.KIND:
        return list(_told_again(ctx, job)) if (job := job_steps.feed(ctx, event)) else []
    known = _known(ctx)  # from the state as it was before this event
    changed = list(_forget_old(ctx, known, event.node))
    at, job, model = ctx.now - event.age_s, str(event.data.get("job", "")), str(event.data.get("model", ""))
    key = f"{event.node} {job} {model}"
    before = ctx.state.minutes.get(key)
    if before is not None and at < before.at:
        return changed  # it was overtaken
    if event.data.get("active") is not True:
        if before is not None:
            changed += _remove(ctx, known, key, "the job has no GPU there any more")
        return changed
    if event.age_s > LATE_S or not job:
        return changed
    try:
        gpus = decode(event.data)
    except ContractError as error:
        ctx.note("straggler.unread", f"{event.node}: {error}", scope=f"node/{event.node}")
        return changed
    if not gpus:
        return changed
    if before is None and len(known.of_node.get(event.node, ())) >= MAX_JOBS:
        oldest = next(iter(known.of_node[event.node]))
        changed += _remove(ctx, known, oldest, "the node has told newer jobs")
    told = event.data
    minute = JobMinute(
        node=event.node, job=job, model=model, at=at, since=at, arrived=ctx.now, gpus=str(told["gpus"]),
        sm_mhz=str(told["sm_mhz"]), power_w=str(told["power_w"]), busy=str(told["busy"]),
    )  # fmt: skip
    if before is not None:
        minute = replace(minute, since=before.since, slow=before.slow, slow_since=before.slow_since)
        known.take(key, before)
    ctx.state.minutes.pop(key, None)  # the newest stands last
    ctx.state.minutes[key] = minute
    return changed + list(_judge(ctx, known.add(key, minute), event.node))


def forget_node(ctx: Context, node: str) -> list[SymptomState]:
    """It is gone for good: nobody is compared with it. Returns the symptoms of others that began or ended without it."""
    known = _known(ctx)
    left: dict[JobPeers, None] = {}
    for key in list(known.of_node.get(node, ())):
        minute = ctx.state.minutes.pop(key)
        left[known.jobs[minute.job, minute.model]] = None
        known.take(key, minute)
    return [symptom for peers in left for symptom in _judge(ctx, peers, "")]


def standing(ctx: Context, node: str) -> str:
    """How the node's GPUs are beside their peers now, as a clause for whoever asks. Changes nothing."""
    known = ctx.index.minutes or JobMinutes(ctx.state)
    said = []
    for key in known.of_node.get(node, ()):
        minute = ctx.state.minutes[key]
        peers = known.jobs[minute.job, minute.model]
        clocks = [one.sm_mhz for one in gpus_of(minute) if one.sm_mhz]
        text, beside = f"job {minute.job} beside {counted(len(peers.nodes) - 1, 'other node')}", peers.clock()
        if clocks and beside is not None:
            text += f": lowest SM clock {min(clocks)} MHz, median {beside.median:.0f} MHz, limit {beside.limit:.0f} MHz"
        why = peers.judge(ctx.state, node).unjudged.get(node, "")
        said.append(f"{text}, not judged: {why}" if why else text)
    return "; ".join(said) or f"{node} tells no figures of jobs (compare_gpus in the file of its agent)"


def _told_again(ctx: Context, job: str) -> Iterator[SymptomState]:
    """News of a job's steps: it stands in the newest fact of its stragglers. Any node may tell it, so it is no news of them."""
    for _, peers in sorted(_known(ctx).of_job.get(job, {}).items(), key=itemgetter(0)):
        found = peers.judge(ctx.state, "").slow if peers.suspects else {}
        for node, key in sorted(peers.suspects.items()):
            if node not in found:  # a brain of another version judged it
                continue
            for part in _parts(found[node]):
                told = _told(ctx, ctx.state.minutes[key], part, found[node], len(peers.nodes) - 1)
                yield from _go_on(ctx, told)


def _known(ctx: Context) -> JobMinutes:
    """The jobs as the minutes of the state are."""
    if ctx.index.minutes is None:
        ctx.index.minutes = JobMinutes(ctx.state)
    return ctx.index.minutes


def _go_on(ctx: Context, told: Event) -> Iterator[SymptomState]:
    """What is slow goes on being slow. That is no newer fact: whoever has closed its incident, because it is slow by design, is
    not told again every ten minutes.
    """
    for state in symptoms.feed(ctx, told):
        for name in ctx.state.matched.get(state.scope, ()):
            rule, match = ctx.compiled.rules.get(name), ids.key(name, state.scope)
            if match in ctx.state.dismissed and rule is not None and state.name in symptoms_in(rule.when):
                ctx.state.dismissed[match] = ctx.now
        yield state


def _forget_old(ctx: Context, known: JobMinutes, node: str) -> Iterator[SymptomState]:
    """Takes out what has not been told again, and judges each job that lost something once."""
    left: dict[JobPeers, None] = {}
    while ctx.state.minutes:
        key = next(iter(ctx.state.minutes))
        if ctx.state.minutes[key].arrived > ctx.now - HOLDS_S:
            break
        left[known.jobs[ctx.state.minutes[key].job, ctx.state.minutes[key].model]] = None
        yield from _take_out(ctx, known, key, "nothing has been told of it for a while")
    for peers in left:
        yield from _judge(ctx, peers, node)


def _remove(ctx: Context, known: JobMinutes, key: str, why: str) -> Iterator[SymptomState]:
    minute = ctx.state.minutes[key]
    peers = known.jobs[minute.job, minute.model]
    yield from _take_out(ctx, known, key, why)
    yield from _judge(ctx, peers, minute.node)


def _take_out(ctx: Context, known: JobMinutes, key: str, why: str) -> Iterator[SymptomState]:
    minute = ctx.state.minutes.pop(key)
    known.take(key, minute)
    if minute.slow not in ("", NOT_JUDGED):
        yield from _tell_over(ctx, minute, minute.slow.split(), why)


def _judge(ctx: Context, peers: JobPeers, teller: str) -> Iterator[SymptomState]:
    """Compares the nodes of one job, and tells what has become slow, what goes on being slow, and what is no longer.

    In the order of their names: that in which they became slow is not known to a brain that has started since.
    """
    found = peers.judge(ctx.state, teller)
    for node in sorted(node for node in peers.suspects if node not in found.slow):
        key = peers.suspects.pop(node)
        minute = ctx.state.minutes[key]
        ctx.state.minutes[key] = replace(minute, slow="", slow_since=0.0)
        yield from _tell_over(ctx, minute, minute.slow.split(), "it is as its peers are")
    for node, slow in sorted(found.slow.items(), key=itemgetter(0)):
        key = peers.nodes[node]
        minute = ctx.state.minutes[key]
        parts = _parts(slow)
        if minute.slow == " ".join(parts) and node != teller:
            continue
        was = minute.slow.split() if node in peers.suspects else []
        yield from _tell_over(
            ctx, minute, [part for part in was if part not in parts], "it is another part now"
        )
        since = minute.slow_since if was else ctx.now
        minute = ctx.state.minutes[key] = replace(minute, slow=" ".join(parts), slow_since=since)
        peers.suspects[node] = key
        for part in parts:
            told = _told(ctx, minute, part, slow, len(peers.nodes) - 1)
            yield from _go_on(ctx, told) if part in was else symptoms.feed(ctx, told)
    if teller in peers.nodes and teller not in found.slow:
        _note_unjudged(ctx, peers.nodes[teller], found.unjudged.get(teller, ""))


def _note_unjudged(ctx: Context, key: str, why: str) -> None:
    """What deviates and is not judged is said once, until it does not any more."""
    minute = ctx.state.minutes[key]
    if why and not minute.slow:
        text = f"{minute.node} is slower than the others of job {minute.job}, and that is not judged: {why}"
        ctx.note("straggler.unjudged", text, scope=f"node/{minute.node}")
    mark = NOT_JUDGED if why else ""
    if minute.slow != mark:
        ctx.state.minutes[key] = replace(minute, slow=mark)


def _parts(slow: Slow) -> tuple[str, ...]:
    """The node, where half of its GPUs or more are slow and these are several; else each GPU."""
    if len(slow.gpus) > 1 and 2 * len(slow.gpus) >= slow.of:
        return (components.NODE,)
    return tuple(components.gpu(bdf) for bdf in slow.gpus)


def _told(ctx: Context, minute: JobMinute, part: str, slow: Slow, others: int) -> Event:
    from_start = minute.slow_since - minute.since < ALIKE_S
    beside, nodes = slow.beside, counted(others, "other node")
    peers = f"is the median of job {minute.job} on {nodes} with {minute.model or 'such GPUs'}"
    if slow.what == "clock":
        seen = (
            f"SM clock {slow.value:.0f} MHz, and {beside.median:.0f} MHz {peers} (median deviation {beside.spread:.0f} MHz, "
            f"limit {beside.limit:.0f} MHz)"
        )
    else:
        seen = f"used {slow.value:.0f} %, and {beside.median:.0f} % {peers} (limit {beside.limit:.0f} %): it waits for its node"
    began = (
        "it has been so since the job came to the node, so its rank may have other work by design"
        if from_start
        else f"before, it was as its peers for {span(minute.slow_since - minute.since)}"
    )
    lasted = f", for {span(ctx.now - minute.slow_since)}" if ctx.now - minute.slow_since >= 60 else ""
    power = f"{slow.power_w:.0f} W beside {slow.usual_power_w:.0f} W"
    steps = job_steps.said_of(ctx, minute.job)
    text = f"{counted(len(slow.gpus), 'GPU')} of {slow.of}{lasted}: {seen}; {power}{steps}; {began}"
    data: dict[str, Scalar] = {
        "active": True, "job": clip(minute.job, 120), "what": slow.what, "value": slow.value, "median": beside.median,
        "limit": round(beside.limit, 1), "peers": others, "from_start": from_start,
    }  # fmt: skip
    return _event(ctx, minute.node, part, Severity.WARNING, data, clip(text))


def _tell_over(ctx: Context, minute: JobMinute, parts: list[str], why: str) -> Iterator[SymptomState]:
    """These parts are slow no more, unless another job on the node says that they are."""
    known = ctx.index.minutes
    others = (
        [ctx.state.minutes[key] for key in known.of_node.get(minute.node, ())] if known is not None else []
    )
    still = [
        part
        for one in others
        if (one.job, one.model) != (minute.job, minute.model)
        for part in one.slow.split()
    ]
    for part in parts:
        if part not in still:
            data: dict[str, Scalar] = {"active": False, "job": clip(minute.job, 120)}
            yield from symptoms.feed(ctx, _event(ctx, minute.node, part, Severity.INFO, data, why))


def _event(
    ctx: Context, node: str, part: str, severity: Severity, data: dict[str, Scalar], evidence: str
) -> Event:
    kind = NODE_STRAGGLER if part == components.NODE else GPU_STRAGGLER
    return Event(
        id=ctx.cause, node=node, kind=kind, component=part, severity=severity, at="", age_s=0.0, boot="", count=1,
        data=data, evidence=evidence,
    )  # fmt: skip
