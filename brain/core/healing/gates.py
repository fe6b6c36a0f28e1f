"""Gates: reasons not to act now. Each is a small function; the first that objects decides, and gives its reason.

Only disruptive rungs pass the gates: collecting evidence and paging are always allowed (except in observe mode).
"""

from agent.contract.actions.spec import Disrupts
from agent.contract.commands import Outcome
from brain.core import ids, stops
from brain.core.context import Context
from brain.core.effects import AskJobs
from brain.core.faults import at_once, closed_places, situations
from brain.core.healing import alone, approvals, drains, looks, lost_drains, plans, unheard
from brain.core.healing.budgets import budget, one_per_node
from brain.core.healing.limits import answers, breaker, offender, related, tries
from brain.core.healing.modes import mode_of, taken_back
from brain.core.healing.verdicts import RETRY_S, Case, Decision, Gate, Verdict
from brain.core.pack.spec import Mode, Rung
from brain.core.pack.topology import node_of
from brain.core.pack.vocabulary import NODE_UNREACHABLE
from brain.core.people import SCHEDULE
from brain.core.state import Incident, Run, RunState, StepRecord, SymptomState

# The times of facts that belong together differ by less than this; a fact of an earlier boot precedes the boot by more.
BOOT_JITTER_S = 1.0
# A change that only people can make wakes the run; the gate is asked again after this time all the same.
AGAIN_S = 600.0
ASKED_S = 10.0  # the scheduler is asked again what runs on a node; the next time when it has not answered for twice as long
GO = Verdict(answer=Decision.GO, gate="", reason="no gate objects")


def check(ctx: Context, run: Run, incident: Incident, rung: Rung) -> Verdict:
    """The first objection, or GO."""
    case = Case(ctx=ctx, run=run, incident=incident, rung=rung)
    for gate in GATES:
        verdict = gate(case)
        if verdict is not None:
            return verdict
    return GO


def hold(case: Case) -> Verdict | None:
    """Law 2: never under an operator's hold. A hold on a part of a node stops all that disturbs the node around it."""
    topology, run = case.ctx.compiled.topology, case.run
    for entry in stops.holds(case.ctx):
        within = run.node and node_of(entry.scope) == run.node
        if topology.meet(entry.scope, run.scope) or (within and _whole_node(case)):
            return Verdict(
                answer=Decision.HOLD,
                gate="hold",
                reason=stops.text(entry),
                retry_s=AGAIN_S,
            )
    return None


def _whole_node(case: Case) -> bool:
    return plans.disrupts(case.ctx, case.rung) in (Disrupts.NODE, Disrupts.FABRIC)


def mode(case: Case) -> Verdict | None:
    """The runbook's mode: `observe` holds, `approve` needs an approval."""
    may = alone.judge(case.ctx, case.run)
    now = mode_of(case.ctx, case.run.runbook.name, case.run.node, may.at_most)
    if now is Mode.OBSERVE:
        return Verdict(
            answer=Decision.HOLD,
            gate="mode",
            reason=f"{case.run.runbook.name} is in observe mode for this node",
            retry_s=AGAIN_S,
        )
    if now is Mode.APPROVE and not approvals.valid(case.ctx, case.run):
        started = case.run.requested_by not in ("", SCHEDULE)
        if started and case.run.runbook.at_most is not Mode.APPROVE:
            return None  # the operator who started the run has agreed by that, where the runbook does not ask for more
        auto = mode_of(case.ctx, case.run.runbook.name, case.run.node, Mode.AUTO) is Mode.AUTO
        if may.wait_s and auto:
            return Verdict(answer=Decision.HOLD, gate="mode", reason=may.kept, retry_s=may.wait_s)
        reason = _wanted(case, may.kept if auto else "")
        return Verdict(answer=Decision.APPROVAL, gate="mode", reason=reason)
    return None


def _wanted(case: Case, kept: str) -> str:
    """Why an approval is wanted, what `kept` the run from doing without one, and what became of the one that was given."""
    reason = f"{case.run.runbook.name} is in approve mode{taken_back(case.ctx, case.run.runbook.name)}"
    if kept:
        reason = f"{case.run.runbook.name} needs an approval ({kept})"
    given, void = case.run.approved, approvals.void(case.ctx, case.run)
    if given is None or not void:
        return reason
    approved = given.what.partition(":")[0]
    if approved != approvals.rung(case.run):  # that step had it; nobody took it back
        return f"{reason}; {given.who} has approved {approved} only"
    return f"{reason}; the approval of {given.who} is void: {void}"


def maintenance(case: Case, opened_after: float = 0.0) -> Verdict | None:
    """Law 2: in a maintenance window only with an approval. `opened_after`: windows that were open by then do not count."""
    for window in stops.windows(case.ctx):
        if (
            opened_after <= window.since
            and case.ctx.compiled.topology.contains(window.scope, case.run.scope)
            and not approvals.valid(case.ctx, case.run)
        ):
            return Verdict(
                answer=Decision.APPROVAL,
                gate="maintenance",
                reason=stops.text(window),
            )
    return None


def objection_since(ctx: Context, run: Run, rung: Rung, since: float) -> Verdict | None:
    """What people have said since a step began: a hold, observe mode, or a maintenance window that has opened."""
    case = Case(ctx=ctx, run=run, incident=ctx.state.incidents[run.incident], rung=rung)
    held, forbidden, window = hold(case), mode(case), maintenance(case, opened_after=since)
    if forbidden is not None and forbidden.answer is not Decision.HOLD:
        forbidden = None  # an approval was given for the whole step
    return held or forbidden or window


def protected(case: Case) -> Verdict | None:
    """Law 2: never on a node that runs a protected job, without an approval. Holds until the scheduler has answered."""
    ctx, node = case.ctx, case.run.node
    if not ctx.compiled.settings.ask_jobs or not node:
        return None
    answer = ctx.state.jobs.get(node)
    if answer is None:
        return _unanswered(case)
    case.run.jobs_asked_since = 0.0
    if answer.known and not answer.protected:
        return None
    if approvals.valid(ctx, case.run):
        return None
    reason = (
        f"protected job {answer.protected} runs there"
        if answer.known
        else f"it is not known what runs there: {answer.why}"
    )
    return Verdict(answer=Decision.APPROVAL, gate="protected", reason=reason)


def _unanswered(case: Case) -> Verdict | None:
    """The scheduler is asked, ever more seldom. One that says nothing for as long as nobody acknowledges a page does not know."""
    ctx, run, ask = case.ctx, case.run, AskJobs(node=case.run.node)
    if ask not in ctx.effects:
        ctx.effects.append(ask)
    run.jobs_asked_since = run.jobs_asked_since or ctx.now
    waited_s, waits = ctx.now - run.jobs_asked_since, ctx.compiled.settings.page_repeat_s
    if waited_s < waits[0]:
        reason, retry_s = "asking the scheduler what runs there", max(ASKED_S, waited_s)
        return Verdict(answer=Decision.HOLD, gate="protected", reason=reason, retry_s=retry_s)
    if approvals.valid(ctx, run):
        return None
    reason = "the scheduler has not said what runs there"
    retry_s = min(waited_s, waits[-1])
    return Verdict(answer=Decision.APPROVAL, gate="protected", reason=reason, retry_s=retry_s)


def kept_out(case: Case) -> Verdict | None:
    """Law 3: what others did to the service of a node stands: they have drained it, or have given it back since we did.

    They may be at work on it, or let jobs in: nothing is disturbed there without an approval.
    """
    run = case.run
    if run.requested_by not in ("", SCHEDULE):
        return None
    answer = case.ctx.state.jobs.get(run.node)
    if answer is not None and lost_drains.missed(case.ctx.state, run.node, answer.record):
        reason = f"{run.node} is another object in its scheduler than was drained, and is to be drained again"
        return Verdict(answer=Decision.HOLD, gate="kept_out", reason=reason, retry_s=ASKED_S)
    if approvals.valid(case.ctx, run):
        return None
    theirs = run.kept_out or _changed_since(case) or _of_others(case)
    if not theirs:
        return None
    return Verdict(
        answer=Decision.APPROVAL, gate="kept_out", reason=f"{theirs}: somebody may be at work on {run.node}"
    )


def _drains(ctx: Context, step: StepRecord) -> bool:
    spec = ctx.actions.get(step.action)
    return spec is not None and spec.drains


def _changed_since(case: Case) -> str:
    """What has happened to the run's drain since, by the scheduler's answer; empty: it stands, or nobody knows."""
    ctx, run = case.ctx, case.run
    answer = ctx.state.jobs.get(run.node)
    drained = [one for one in run.steps if one.outcome == Outcome.OK and _drains(ctx, one)]
    if answer is None or answer.ours is not False or not drained or answer.at <= drained[-1].at:
        return ""
    if run.node not in drains.owned(ctx, case.incident):
        return ""
    if answer.drained:
        return f"{run.node} has a drain of somebody else now ({answer.drained})"
    return f"somebody has given {run.node} back since it was drained, and jobs may start there"


def _of_others(case: Case) -> str:
    """Whose drain stands on the node of a run that does not drain it itself, by the scheduler's answer; empty: nobody else's."""
    answer = case.ctx.state.jobs.get(case.run.node)
    drains_it = case.ctx.actions[case.rung.do].drains  # then its result tells, and what follows asks
    if answer is None or answer.ours is not False or not answer.drained or drains_it:
        return ""
    return f"somebody else has drained {case.run.node} ({answer.drained})"


def shared(case: Case) -> Verdict | None:
    """Law 6: when many nodes show the same symptom, no per-node action."""
    ctx, node = case.ctx, case.run.node
    for place in (*ctx.compiled.topology.above(node),) if node else ():
        for symptom in ctx.index.active.get(place, {}).values():
            alone_in_s = at_once.alone_in_s(ctx, symptom, node)
            if (
                alone_in_s <= 0
                or not _counts_one_of(ctx, symptom, case.incident)
                or closed_places.counts_too_few(ctx, symptom, node)
            ):
                continue
            reason = (
                f"{len(symptom.members)} nodes of {symptom.scope} show it: the cause is taken to be shared"
            )
            lasts_s = ctx.now - (symptom.cause_at or symptom.since)
            again_s = min(
                AGAIN_S, max(RETRY_S, lasts_s / 20)
            )  # its end wakes the run, and is asked about all the same
            return Verdict(
                answer=Decision.HOLD, gate="shared", reason=reason, retry_s=min(again_s, alone_in_s)
            )
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
            answer=Decision.HOLD,
            gate="settling",
            reason="it is not known yet whether other nodes show it too",
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
    newest, node = _newest(ctx, incident), ctx.state.nodes.get(run.node)
    since = newest if node is None else max(newest, node.booted_at)
    recent = run.looked_at >= ctx.now - ctx.compiled.settings.stale_s
    # A fact that the look brought is newer than the question: the fault is there, and the gate asks again when that is old.
    looked = run.looked_since > since and (recent or run.state is RunState.APPROVAL)
    if looks.needless(run) or looked or looks.given_up(ctx, run):
        seen = "the node has looked again and reports nothing new" if looked else run.unseen
        reason = f"{why}: {seen or 'there is no fresh one'}; an approval is needed"
        return Verdict(answer=Decision.APPROVAL, gate="stale", reason=reason)
    # never as fast as the node answers, whatever its looks show
    due = run.looked_at + looks.AGAIN_S
    if due <= ctx.now:
        due = looks.ask(ctx, run)
    return Verdict(
        answer=Decision.HOLD, gate="stale", reason=f"{why}: the node looks again", retry_s=due - ctx.now
    )


def old_news(ctx: Context, run: Run, incident: Incident) -> str:
    """Why the newest fact of the fault is old; empty: it is not, or an operator or a schedule led to the run."""
    limit = ctx.compiled.settings.stale_s
    if run.requested_by:
        return ""
    if incident.stale and ctx.now - _newest(ctx, incident) > limit:
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


GATES: tuple[Gate, ...] = (
    hold,
    shared,
    breaker,
    tries,
    offender,
    answers,
    related,
    settling,
    unheard.heard,
    mode,
    maintenance,
    one_per_node,
    budget,
    protected,
    kept_out,
    stale,
)
