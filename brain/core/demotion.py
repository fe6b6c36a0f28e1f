"""A runbook that harms is taken back to approve mode, and an incident says so until a person has set its mode."""

from brain.core import ids, incidents
from brain.core.context import Context
from brain.core.healing import harm
from brain.core.incidents import IncidentTrigger
from brain.core.pack.spec import Mode, Paging, Priority
from brain.core.pack.topology import CELL
from brain.core.paging import escalation
from brain.core.people import do
from brain.core.state import GPUWARD, Incident, IncidentState, ModeOverride, Run

HARMS = "remedy-harms"  # in place of a rule's name, in the incident of a runbook that was taken back
_RESOLVE_DELAY_S = 1.0


def run_ended(ctx: Context, run: Run) -> None:
    """What became of its node may speak against its runbook."""
    if name := harm.ended(ctx, run):
        _weigh(ctx, name)


def incident_opened(ctx: Context, incident: Incident) -> None:
    """A new fault on a node may speak against what was done to it just before."""
    if name := harm.opened(ctx, incident):
        _weigh(ctx, name)


def _weigh(ctx: Context, runbook: str) -> None:
    """Never a promotion: only a person sets a mode that lets a runbook do more."""
    why = harm.verdict(ctx, runbook)
    if not why:
        return
    kept = [one for one in ctx.state.modes if not (one.why and one.runbook == runbook)]
    taken_back = ModeOverride(
        runbook=runbook, nodes="*", mode=Mode.APPROVE, who=GPUWARD, why=why, since=ctx.now
    )
    ctx.state.modes = [*kept, taken_back]
    text = f"{GPUWARD} sets {runbook} to approve: {why}"
    ctx.note("mode.demoted", text, data={"runbook": runbook})
    because = f"{text}. A person must look why: `gpuward mode {runbook} auto` lets it act by itself again"
    because_zh = f"{GPUWARD} 把 {runbook} 改为 approve：{why}。须由人查明原因：`gpuward mode {runbook} auto` 可让它重新自行执行"
    before = ctx.state.incidents.get(ctx.index.by_match.get(ids.key(HARMS, runbook), ""))
    if before is None:
        escalation.open_page(ctx, _open(ctx, runbook, because, because_zh), because)
    else:  # a person has let it act on some nodes, and it has harmed these too
        before.because, before.because_zh = because, because_zh
        ctx.show(before)
        escalation.page(ctx, before, "update", because)


def _open(ctx: Context, runbook: str, because: str, because_zh: str) -> Incident:
    incident = Incident(
        id=ids.hashed(ids.INCIDENT, ctx.cause, HARMS, runbook),
        cause=HARMS,
        state=IncidentState.OPEN,
        severity=Priority.P3,
        scope=CELL,
        node="",
        rule=HARMS,
        because=because,
        because_zh=because_zh,
        runbook="",
        pack=ctx.compiled.pack.version,
        opened_at=ctx.now,
        hold_off_until=ctx.now,
        resolve_delay_s=_RESOLVE_DELAY_S,
        page=Paging.OPEN,
        # In place of a rule's match, until a person has set the mode.
        matching_rules={ids.key(HARMS, runbook): HARMS},
    )
    ctx.state.incidents[incident.id] = incident
    ctx.index.add_incident(incident)
    ctx.note(
        "incident.opened", because, incident=incident.id, scope=CELL, data={"cause": HARMS, "rule": HARMS}
    )
    ctx.show(incident)
    return incident


def mode_said(ctx: Context, runbook: str, nodes: str, who: str) -> None:
    """A person has set the mode of runbooks on nodes (globs): the incident of each that is not taken back any more is over."""
    harm.forget(ctx, runbook, nodes)
    for incident in list(ctx.index.by_cause.get(HARMS, {}).get("", {}).values()):
        about = [ids.split(match)[1] for match in incident.matching_rules]
        if not any(harm.is_demoted(ctx, name) for name in about):
            why = f"{do(who, 'sets')} the mode of {', '.join(about)}"
            incidents.transition(ctx, incident, IncidentTrigger.CLOSED_BY_OPERATOR, why)
