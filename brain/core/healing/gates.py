"""Gates: reasons not to act now. Each is a small function; the first that objects decides, and gives its reason.

Only disruptive rungs pass the gates: collecting evidence and paging are always allowed (except in observe mode).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from agent.contract.actions.spec import Disrupts
from brain.core import ids
from brain.core.context import Context
from brain.core.effects import AskJobs
from brain.core.faults import situations
from brain.core.healing import approvals, looks, plans
from brain.core.pack.spec import Mode, Rung
from brain.core.pack.topology import CELL, WIDE, node_of, type_of
from brain.core.pack.vocabulary import NODE_UNREACHABLE
from brain.core.paging import escalation
from brain.core.state import Disruption, Incident, Run, RunState, SymptomState


class Answer(StrEnum):
    """A gate's answer."""

    GO = "go"
    HOLD = "hold"  # not now; the gates are asked again later
    APPROVAL = "approval"  # only if an operator approves
    STOP = "stop"  # not at all: people must take over


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A gate's answer and its reason."""

    answer: Answer
    gate: str
    reason: str
    # HOLD: ask again after this long, unless something else wakes the run before
    retry_s: float = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a gate judges: may this rung of this run begin now?"""

    ctx: Context
    run: Run
    incident: Incident
    rung: Rung


Gate = Callable[[Case], Verdict | None]
SCHEDULE = "schedule"  # `requested_by` of a run that the runbook's schedule started
RELATED = "related"  # the gate that people must hear of: it holds nodes for a reason that only they can find
DAY_S = 86_400.0
# A drain that has waited for so long for jobs uses up no budget. Before, it does: budgets also limit how fast faults are
# acted on, so that a shared cause shows on other nodes in time.
LONG_WAIT_S = 900.0
# The ages of events of one moment differ by less than this. A fact of an earlier boot is older than the boot by more.
BOOT_JITTER_S = 1.0
GO = Verdict(answer=Answer.GO, gate="", reason="no gate objects")


def check(ctx: Context, run: Run, incident: Incident, rung: Rung) -> Verdict:
    """The first objection, or GO."""
    case = Case(ctx=ctx, run=run, incident=incident, rung=rung)
    for gate in GATES:
        verdict = gate(case)
        if verdict is not None:
            return verdict
    return GO


def mode_of(ctx: Context, runbook: str, node: str, at_most: Mode) -> Mode:
    """The mode in force for a runbook on a node: the last operator command that fits, else the last setting that fits.

    Never looser than `at_most`; OBSERVE where nothing fits, and always with `observe_all`.
    """
    if ctx.observe_all:
        return Mode.OBSERVE
    mode = Mode.OBSERVE
    for setting in ctx.compiled.settings.modes:
        if fnmatchcase(runbook, setting.runbook) and fnmatchcase(node, setting.nodes):
            mode = setting.mode
    for override in ctx.state.modes:
        if fnmatchcase(runbook, override.runbook) and fnmatchcase(node, override.nodes):
            mode = override.mode
    order = (Mode.OBSERVE, Mode.APPROVE, Mode.AUTO)
    return min(mode, at_most, key=order.index)


def hold(case: Case) -> Verdict | None:
    """Law 2: never under an operator's hold. A hold on a part of a node stops all that disturbs the node around it."""
    topology, run = case.ctx.compiled.topology, case.run
    whole_node = plans.disrupts(case.ctx, case.rung) in (Disrupts.NODE, Disrupts.FABRIC)
    for entry in case.ctx.state.holds.values():
        if entry.until and case.ctx.now >= entry.until:
            continue
        within = run.node and node_of(entry.scope) == run.node
        if topology.overlap(entry.scope, run.scope) or (within and whole_node):
            return Verdict(
                answer=Answer.HOLD,
                gate="hold",
                reason=f"{entry.who} holds {entry.scope}: {entry.why}",
                retry_s=60,
            )
    return None


def mode(case: Case) -> Verdict | None:
    """The runbook's mode: `observe` holds, `approve` needs an approval."""
    now = mode_of(case.ctx, case.run.runbook.name, case.run.node, case.run.runbook.at_most)
    if now is Mode.OBSERVE:
        return Verdict(
            answer=Answer.HOLD,
            gate="mode",
            reason=f"{case.run.runbook.name} is in observe mode for this node",
            retry_s=60,
        )
    if now is Mode.APPROVE and not approvals.valid(case.ctx, case.run):
        if case.run.requested_by not in ("", SCHEDULE):
            return None  # the operator who started the run has agreed by that
        void = approvals.void(case.ctx, case.run)
        reason = f"{case.run.runbook.name} is in approve mode"
        return Verdict(
            answer=Answer.APPROVAL,
            gate="mode",
            reason=f"{reason}; the approval of {case.run.approved.who} is void: {void}"
            if void and case.run.approved
            else reason,
        )
    return None


def maintenance(case: Case) -> Verdict | None:
    """Law 2: in a maintenance window only with an approval."""
    for window in case.ctx.compiled.settings.maintenance:
        inside = window.since <= case.ctx.now < window.until
        if (
            inside
            and case.ctx.compiled.topology.contains(window.scope, case.run.scope)
            and not approvals.valid(case.ctx, case.run)
        ):
            return Verdict(
                answer=Answer.APPROVAL,
                gate="maintenance",
                reason=f"{window.scope} is in maintenance: {window.why}",
            )
    return None


def protected(case: Case) -> Verdict | None:
    """Law 2: never on a node that runs a protected job, without an approval. Holds until the scheduler has answered."""
    ctx, node = case.ctx, case.run.node
    if not ctx.compiled.settings.ask_jobs or not node:
        return None
    answer = ctx.state.jobs.get(node)
    if answer is None:
        ask = AskJobs(node=node)
        if ask not in ctx.effects:
            ctx.effects.append(ask)
        return Verdict(
            answer=Answer.HOLD, gate="protected", reason="asking the scheduler what runs there", retry_s=10
        )
    if answer.known and not answer.protected:
        return None
    if approvals.valid(ctx, case.run):
        return None
    reason = (
        f"protected job {answer.protected} runs there"
        if answer.known
        else f"it is not known what runs there: {answer.why}"
    )
    return Verdict(answer=Answer.APPROVAL, gate="protected", reason=reason)


def breaker(case: Case) -> Verdict | None:
    """Too many disruptive runs in a short time: the mistake may be ours. Only an operator resets the breaker."""
    state, settings = case.ctx.state, case.ctx.compiled.settings
    if not case.run.counted and state.tripped:
        reason = f"{settings.breaker_runs} nodes disrupted within {settings.breaker_within_s / 60:.0f} minutes: say `reset`"
        return Verdict(answer=Answer.HOLD, gate="breaker", reason=reason, retry_s=300)
    return None


def shared(case: Case) -> Verdict | None:
    """Law 6: when many nodes show the same symptom, no per-node action."""
    for place in (*case.ctx.compiled.topology.above(case.run.node),) if case.run.node else ():
        for symptom in case.ctx.index.active.get(place, {}).values():
            if _counts_one_of(case.ctx, symptom, case.incident):
                reason = f"{len(symptom.members)} nodes of {symptom.scope} show it: the cause is taken to be shared"
                return Verdict(answer=Answer.HOLD, gate="shared", reason=reason)
    return None


def _counts_one_of(ctx: Context, symptom: SymptomState, incident: Incident) -> bool:
    spec = ctx.compiled.symptoms.get(symptom.name)
    return (
        spec is not None
        and spec.detect == "spread"
        and any(ids.name_of(key) == spec.of for key in incident.symptoms)
    )


def settling(case: Case) -> Verdict | None:
    """Nothing disruptive before the incident is `hold_off_s` old: by then a shared fault shows on other nodes too."""
    left = case.incident.opened_at + case.ctx.compiled.settings.hold_off_s - case.ctx.now
    if left > 0:
        return Verdict(
            answer=Answer.HOLD,
            gate="settling",
            reason="waiting whether other nodes show it too",
            retry_s=left,
        )
    return None


def stale(case: Case) -> Verdict | None:
    """Law 13: nothing disruptive on old news. The node looks again first; without a fresh fact an approval is needed.

    The age is that of the fault's newest fact now, not when the incident opened. What the run itself has done since
    then took its time; a wait did not.
    """
    ctx, run, incident = case.ctx, case.run, case.incident
    why = old_news(ctx, run, incident)
    if not why or approvals.valid(ctx, run):
        return None
    newest = _newest(ctx, incident)
    recent = run.looked_at >= ctx.now - ctx.compiled.settings.stale_s
    looked = run.looked_at > newest and (recent or run.state is RunState.APPROVAL)
    if looks.needless(run) or looked or looks.given_up(ctx, run):
        seen = "the node has looked again and reports nothing new" if looked else run.unseen
        reason = f"{why}: {seen or 'a fresh fact'}; an approval is needed"
        return Verdict(answer=Answer.APPROVAL, gate="stale", reason=reason)
    due = looks.ask(ctx, run)
    return Verdict(
        answer=Answer.HOLD, gate="stale", reason=f"{why}: the node looks again", retry_s=due - ctx.now
    )


def old_news(ctx: Context, run: Run, incident: Incident) -> str:
    """Why the newest fact of the fault is old; empty: it is not, or an operator or a schedule led to the run."""
    limit = ctx.compiled.settings.stale_s
    if run.requested_by:
        return ""
    if incident.stale:
        return f"its facts were over {limit:.0f} s old when they arrived"
    if not incident.evidence:
        return ""
    newest = max(_newest(ctx, incident), run.moved_at)
    node = ctx.state.nodes.get(run.node)
    if node is not None and newest < node.booted_at - BOOT_JITTER_S:
        return f"{run.node} has started anew since its newest fact"
    limit += situations.waited_s(ctx, incident.symptoms)
    if ctx.now - newest > limit:
        return f"its newest fact is over {limit:.0f} s old"
    return ""


def _newest(ctx: Context, incident: Incident) -> float:
    """When the newest fact of the incident's active symptoms occurred; of its evidence, if none is active."""
    node = ctx.state.nodes.get(incident.node)
    if (
        node is not None
        and not node.alive
        and any(fact.kind == NODE_UNREACHABLE for fact in incident.evidence)
    ):
        return ctx.now  # the brain itself misses the node now
    active = [
        max(symptom.last, *symptom.members.values()) if symptom.members else symptom.last
        for key in incident.symptoms
        if (symptom := ctx.state.symptoms.get(key)) is not None and symptom.active
    ]
    return max(active or [fact.at for fact in incident.evidence] or [0.0])


def tries(case: Case) -> Verdict | None:
    """Law 8: a remedy that was tried `tries` times in the runbook's window is not tried again.

    A last resort, which stands in for such a remedy, only fences: it may always be tried.
    """
    if case.run.counted or case.run.requested_by:
        return None
    stands_in = case.ctx.compiled.runbooks.get(case.incident.runbook)
    if stands_in is not None and stands_in.last_resort == case.run.runbook.name:
        return None
    before = [
        at
        for at in case.ctx.state.tries.get(tries_key(case.run, case.incident), ())
        if at > case.ctx.now - case.run.runbook.tries_within_s
    ]
    if len(before) >= case.run.runbook.tries:
        hours = case.run.runbook.tries_within_s / 3600
        return Verdict(
            answer=Answer.STOP,
            gate="tries",
            reason=f"{case.run.runbook.name} was tried {len(before)} times here in {hours:.0f} h",
        )
    return None


def offender(case: Case) -> Verdict | None:
    """Law 8: a node that needs one remedy after the other, whatever each was for, goes to a person."""
    ctx, run = case.ctx, case.run
    if run.counted or run.requested_by or not run.node or not _heals(ctx, run):
        return None
    settings = ctx.compiled.settings
    for days, most in (
        (1, settings.remedies_per_day),
        (7, settings.remedies_per_week),
        (30, settings.remedies_per_month),
    ):
        since = ctx.now - days * DAY_S
        count = sum(at > since for at in ctx.state.remedied.get(run.node, ()))
        if count >= most:
            period = "a day" if days == 1 else f"{days} days"
            reason = f"{run.node} had {count} remedies within {period}: another one would hide what is wrong with it"
            return Verdict(answer=Answer.STOP, gate="offender", reason=reason)
    return None


def _heals(ctx: Context, run: Run) -> bool:
    """Whether the run's ladder has a rung that is to heal and disturbs the whole node, such as a reset or a reboot."""
    specs = [ctx.actions.get(rung.do) for rung in run.runbook.rungs]
    return any(
        spec is not None and spec.heals and spec.disrupts in (Disrupts.NODE, Disrupts.FABRIC)
        for spec in specs
    )


def related(case: Case) -> Verdict | None:
    """Law 6: when one fault after the other needs the same remedy, they belong together, though never many at once."""
    ctx, run = case.ctx, case.run
    if run.counted or not run.node or run.requested_by or approvals.valid(ctx, run):
        return None
    settings = ctx.compiled.settings
    since = ctx.now - settings.breaker_within_s
    nodes = list(
        dict.fromkeys(
            each.node
            for each in ctx.state.began
            if each.at > since and each.cause == case.incident.cause and each.node
        )
    )
    if run.node in nodes or (len(nodes) < settings.same_cause_nodes and not others_wait(ctx, case.incident)):
        return None
    listed = f" ({', '.join(nodes[:6])})" if nodes else ""
    waiting = ", and others wait" if len(nodes) < settings.same_cause_nodes else ""
    reason = (
        f"{case.incident.cause} was treated on {len(nodes)} nodes within {settings.breaker_within_s / 60:.0f} minutes"
        f"{listed}{waiting}: "
    )
    shared = _in_common(ctx, [*nodes, run.node]) if nodes else ""
    reason += f"these belong together{shared}; `gpuward approve` lets this one go on"
    return Verdict(answer=Answer.HOLD, gate=RELATED, reason=reason, retry_s=300)


def others_wait(ctx: Context, incident: Incident) -> bool:
    """Whether other nodes wait for this reason: they go on belonging together when the first remedies are long past."""
    return any(
        other.state in (RunState.HELD, RunState.APPROVAL)
        and other.why.endswith(f"(gate {RELATED})")
        and other.incident != incident.id
        and ctx.state.incidents[other.incident].cause == incident.cause
        for other in ctx.state.runs.values()
    )


def _in_common(ctx: Context, nodes: list[str]) -> str:
    """What all the nodes share and not the whole cell does, as a clause."""
    above = [ctx.compiled.topology.above(node) for node in nodes]
    shared = [place for place in above[0] if place != CELL and type_of(place) != "fabric"]
    shared = [place for place in shared if all(place in places for places in above)]
    return f", they share {' and '.join(shared)}" if shared else ""


def occupy(ctx: Context, run: Run) -> None:
    """Claims the node: until the run waits or ends, no other run disrupts it."""
    run.claimed = True
    ctx.index.claims[run.id] = run.node


def claim(ctx: Context, run: Run) -> None:
    """Claims the node for a disruptive rung; the first time the run counts for the breaker and the node's limits."""
    occupy(ctx, run)
    answer = ctx.state.jobs.get(run.node)
    run.jobs = list(answer.jobs) if answer is not None else []
    if run.requested_by == SCHEDULE or run.counted:
        return  # an inspection is no remedy, and every node gets one
    run.counted = True
    settings, state = ctx.compiled.settings, ctx.state
    if run.node and not run.requested_by and _heals(ctx, run):
        times = [at for at in state.remedied.get(run.node, ()) if at > ctx.now - 30 * DAY_S]
        state.remedied[run.node] = [*times, ctx.now][-settings.remedies_per_month :]
    incident = state.incidents[run.incident]
    since = ctx.now - settings.breaker_within_s
    disruption = Disruption(at=ctx.now, node=run.node or run.scope, cause=incident.cause)
    state.began = [each for each in state.began if each.at > since] + [disruption]
    nodes = list(dict.fromkeys(each.node for each in state.began))  # one node alone cannot trip it
    if len(nodes) >= settings.breaker_runs and not state.tripped:
        state.tripped = ctx.now
        why = f"disruptive runs on {len(nodes)} nodes within {settings.breaker_within_s / 60:.0f} minutes"
        ctx.note("breaker.tripped", f"{why}: no further one begins until a person says `reset`")
        escalation.urgent(ctx, incident, f"the breaker has tripped: {why}")


def tries_key(run: Run, incident: Incident) -> str:
    """Key of State.tries: one runbook for one cause at one scope is the same remedy for the same fault."""
    return ids.key(run.runbook.name, ids.key(incident.cause, run.scope))


def one_per_node(case: Case) -> Verdict | None:
    """Law 1: never two disruptive runs on one node."""
    for other, node in case.ctx.index.claims.items():
        if other != case.run.id and case.run.node and node == case.run.node:
            return Verdict(
                answer=Answer.HOLD, gate="one_per_node", reason=f"{other} works on {case.run.node}"
            )
    return None


def budget(case: Case) -> Verdict | None:
    """Law 1: never more runs at once than the budgets of cell, runbook, job, leaf, rack and pod.

    A run whose drain has waited for jobs for a while, and may for days, keeps its node and uses up no budget: it is asked
    for one again before its next rung.
    """
    at_work = (
        case.run.claimed and case.run.disrupted
    )  # else a budget may have been lowered since it was chosen
    if at_work and not _waits_for_jobs(case.ctx, case.run):
        return None
    settings, others = case.ctx.compiled.settings, _at_work(case)
    if len(others) >= settings.disruptive_runs:
        return _over("cell", len(others), settings.disruptive_runs)
    same = sum(1 for other in others if case.ctx.state.runs[other].runbook.name == case.run.runbook.name)
    if same >= settings.disruptive_runs_per_runbook:
        return _over(case.run.runbook.name, same, settings.disruptive_runs_per_runbook)
    over = _over_job(case)
    if over is not None:
        return over
    for place in case.ctx.compiled.topology.above(case.run.node) if case.run.node else ():
        if place != CELL and type_of(place) in WIDE and type_of(place) != "fabric":
            here = sum(1 for node in others.values() if place in case.ctx.compiled.topology.above(node))
            if here >= settings.disruptive_runs_per_leaf:
                return _over(place, here, settings.disruptive_runs_per_leaf)
    return None


def _at_work(case: Case) -> dict[str, str]:
    """The other runs that disrupt their nodes now -> node."""
    return {
        other: node
        for other, node in case.ctx.index.claims.items()
        if other != case.run.id and not _waits_for_jobs(case.ctx, case.ctx.state.runs[other])
    }


def _waits_for_jobs(ctx: Context, run: Run) -> bool:
    """Whether the run's newest step has long done no more than keep new jobs away and wait for the others."""
    if not run.steps or ctx.now - run.steps[-1].at < LONG_WAIT_S:
        return False
    spec = ctx.actions.get(run.steps[-1].action)
    return spec is not None and spec.drains and not spec.heals and not spec.silences


def _over_job(case: Case) -> Verdict | None:
    """At most `disruptive_runs_per_job` runs on nodes of one job. A job that the scheduler has not named is not counted."""
    answer = case.ctx.state.jobs.get(case.run.node)
    most = case.ctx.compiled.settings.disruptive_runs_per_job
    for job in answer.jobs if answer is not None else ():
        same = sum(1 for other in _at_work(case) if job in case.ctx.state.runs[other].jobs)
        if same >= most:
            return _over(f"job {job}", same, most)
    return None


def _over(what: str, have: int, most: int) -> Verdict:
    return Verdict(
        answer=Answer.HOLD, gate="budget", reason=f"{have} disruptive runs in {what}, at most {most} at once"
    )


GATES: tuple[Gate, ...] = (
    hold,
    shared,
    breaker,
    tries,
    offender,
    related,
    settling,
    mode,
    maintenance,
    one_per_node,
    budget,
    stale,
    protected,
)
