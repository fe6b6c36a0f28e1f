"""Operator commands: each is an input on the log, with the operator's name. VERBS is the table of them."""

import math
from collections.abc import Callable, Mapping

from agent.contract.counted import span
from brain.core import demotion, ids, incidents, stops
from brain.core.context import Context
from brain.core.healing import approvals, drains, modes, run_states, runs, shown, steps
from brain.core.healing.drains import LEFT
from brain.core.incidents import RETURN_RUNBOOK, IncidentTrigger
from brain.core.inputs import OperatorCommand
from brain.core.operators import forgetting, requests, scopes
from brain.core.pack.spec import Mode
from brain.core.paging import alerts, escalation
from brain.core.people import SCHEDULE, do
from brain.core.said import Sentence, said
from brain.core.state import AlertGroup, Hold, Incident, IncidentState, ModeOverride, Run, RunState


def handle(ctx: Context, command: OperatorCommand) -> None:
    """Carries out a command, or notes why it is refused."""
    carry_out = VERBS.get(command.verb) or BRAINS.get(command.verb)
    if command.who in ("", SCHEDULE):
        _refused(ctx, command, said("a command needs the operator's name"))
    elif carry_out is None:
        _refused(ctx, command, f"no such verb (have: {', '.join(VERBS)})")
    else:
        carry_out(ctx, command)


def _hold(ctx: Context, command: OperatorCommand) -> None:
    scope, why = str(command.args.get("scope", "")), str(command.args.get("why", ""))
    if not scope or not why:
        _refused(ctx, command, said("a hold needs a scope and a why"))
        return
    if unknown := scopes.mistake(scope, ctx.state.nodes, ctx.compiled.pack.places):
        _refused(ctx, command, unknown)
        return
    for_s = _number(command.args.get("for_s"))
    if for_s < 0:
        _refused(ctx, command, said("a hold cannot last {s} s", s=f"{for_s:g}"))
        return
    until = ctx.now + for_s if for_s else 0.0
    hold = Hold(
        id=ids.hashed(ids.HOLD, command.id, scope),
        scope=scope,
        who=command.who,
        why=why,
        since=ctx.now,
        until=until,
    )
    ctx.state.holds[hold.id] = hold
    if until:
        ctx.set_timer(f"hold:{hold.id}", until)
    text = f"{do(hold.who, 'holds')} {scope}: {why}; until it is released ({hold.id})"
    if until:
        text = f"{do(hold.who, 'holds')} {scope}: {why}; that ends by itself in {span(for_s)} ({hold.id})"
    ctx.note("operator.hold", text, scope=scope)
    for run in list(ctx.state.runs.values()):
        steps.reconsider(ctx, run)


def _release(ctx: Context, command: OperatorCommand) -> None:
    """Ends one hold, named by its id, or by its scope if no other hold is on that."""
    named = str(command.args.get("id", "") or command.args.get("scope", ""))
    found = [hold for hold in ctx.state.holds.values() if named in (hold.id, hold.scope)]
    if not found:
        _refused(ctx, command, said("there is no hold on {name}", name=repr(named)))
        return
    if len(found) > 1:
        each = "; ".join(f"{hold.id} of {hold.who}: {hold.why}" for hold in found)
        _refused(
            ctx,
            command,
            said(
                "{n} holds are on {name}, name one by its id: {each}",
                n=len(found),
                name=repr(named),
                each=each,
            ),
        )
        return
    hold = found[0]
    del ctx.state.holds[hold.id]
    ctx.cancel_timer(f"hold:{hold.id}")
    ctx.note("operator.release", f"{do(command.who, 'releases')} {hold.scope} ({hold.id})", scope=hold.scope)
    wake(ctx)


def hold_ended(ctx: Context, hold_id: str) -> None:
    """A hold's timer fired: the hold ends."""
    hold = ctx.state.holds.pop(hold_id, None)
    if hold is not None:
        ctx.note(
            "hold.ended",
            f"the hold of {hold.who} on {hold.scope} ended by itself ({hold.id})",
            scope=hold.scope,
        )
        wake(ctx)


def wake(ctx: Context) -> None:
    """Asks the gates again for every run that a gate holds."""
    for run in list(ctx.state.runs.values()):
        if run.state is RunState.HELD:
            runs.proceed(ctx, run)


def _approve(ctx: Context, command: OperatorCommand) -> None:
    run = _run(ctx, command)
    if run is None or run.state not in (RunState.APPROVAL, RunState.HELD):
        _refused(ctx, command, _waits_for_none(ctx, command, run))
        return
    rung, seen = (str(command.args.get(name, "")) for name in ("rung", "seen"))
    if objection := shown.objection(ctx, run, rung=rung, seen=seen):
        _refused(ctx, command, objection)
        return
    given = approvals.give(ctx, run, command.who)
    escalation.answered(ctx.state.incidents[run.incident])
    minutes = ctx.compiled.settings.approval_s / 60
    text = f"{do(command.who, 'approves')} {given.what} ({run.runbook.name}) for {minutes:.0f} minutes"
    if held := stops.holds_on(ctx, ctx.state.incidents[run.incident].scope):
        text += f"; nothing begins while {'; '.join(held)}"
    ctx.note(
        "operator.approve",
        text,
        incident=run.incident,
        run=run.id,
        scope=run.scope,
    )
    runs.proceed(ctx, run)


def _waits_for_none(ctx: Context, command: OperatorCommand, run: Run | None) -> str:
    """Why nothing can be approved now, and when it can."""
    if run is not None:
        return said("{id} waits for no approval: it is {state}", id=run.id, state=run.state)
    incident = _incident(ctx, command)
    if incident is None:
        return said("no run of that id waits for an approval")
    if incident.state is IncidentState.SETTLING and incident.runbook:
        left_s = max(1.0, incident.hold_off_until - ctx.now)
        return said(
            "{id} settles for {s} s more: then its run begins, and asks for an approval if it needs one",
            id=incident.id,
            s=f"{left_s:.0f}",
        )
    if incident.runs:
        return said("no run of that id waits for an approval")
    if incident.runbook:
        return said("{id} has no run: it is {state}", id=incident.id, state=incident.state)
    return said("{id} has no run: there is no runbook for it", id=incident.id)


def _deny(ctx: Context, command: OperatorCommand) -> None:
    run = _run(ctx, command)
    if run is None or run.state in run_states.OVER:
        _refused(ctx, command, said("no run of that id is under way"))
        return
    runs.cancel(ctx, run, f"{command.who} denied it: {command.args.get('why', '') or 'no reason given'}")


def _ack(ctx: Context, command: OperatorCommand) -> None:
    wanted, who = str(command.args.get("id", "")), command.who
    incident = alerts.holder(ctx.state, wanted.partition(".r")[0])
    about = ctx.state.alert_groups.get(wanted) or incident
    if about is None or (about is incident and about.state in incidents.OVER):
        _refused(ctx, command, said("no such open incident or alert group"))
    elif (others := alerts.taken_by(ctx.state, about)) and who not in others:
        # Of two who say it at once the first one on the log has it: two who both believe that they have it are none.
        text = said("{who} took it before: nobody is called again", who=" and ".join(others))
        _refused(ctx, command, text)
    elif isinstance(about, AlertGroup):
        escalation.acknowledge_group(ctx, about, who)
    else:
        escalation.acknowledge(ctx, about, who)


def _note(ctx: Context, command: OperatorCommand) -> None:
    """What somebody writes down about an incident, for the others: it decides nothing. Also about one that is over, which the
    engine may have forgotten.
    """
    wanted, text = str(command.args.get("id", "")).partition(".r")[0], str(command.args.get("text", ""))
    if not wanted.startswith(f"{ids.INCIDENT}-") or not text:
        _refused(ctx, command, said("a note needs an incident and a text"))
        return
    incident = alerts.holder(ctx.state, wanted)
    ctx.note(
        "operator.note",
        f"{command.who}: {text}",
        incident=incident.id if incident is not None else wanted,
        scope=incident.scope if incident is not None else "",
    )


def _close(ctx: Context, command: OperatorCommand) -> None:
    incident = _incident(ctx, command)
    heir = alerts.holder(ctx.state, str(command.args.get("id", "")))
    if incident is None and heir is not None and heir.state not in incidents.OVER:
        text = f"it is over: {heir.cause} at {heir.scope} explains it, and has its alert ({heir.id})"
        _refused(ctx, command, text)
    elif incident is None:
        _refused(ctx, command, said("no such open incident"))
    elif incident.cause == LEFT and drains.owned(ctx, incident):
        _refused(
            ctx, command, f"{incident.node} is still drained: `gpuward return {incident.node}` gives it back"
        )
    else:
        why = command.args.get("why", "")
        text = f"{command.who}: {why}" if why else f"{command.who}: closed"
        incidents.transition(ctx, incident, IncidentTrigger.CLOSED_BY_OPERATOR, text)


def _mode(ctx: Context, command: OperatorCommand) -> None:
    runbook, mode, nodes = (
        str(command.args.get(name, default))
        for name, default in (("runbook", ""), ("mode", ""), ("nodes", "*"))
    )
    if mode not in [known.value for known in Mode] or not runbook:
        _refused(ctx, command, "a mode needs a runbook and one of observe, approve, auto")
        return
    ctx.state.modes = [
        entry
        for entry in ctx.state.modes
        if (entry.runbook, entry.nodes) != (runbook, nodes)
        and not (entry.why and nodes == "*" and modes.fits(runbook, entry.runbook))
    ]
    ctx.state.modes.append(ModeOverride(runbook=runbook, nodes=nodes, mode=Mode(mode), who=command.who))
    known = (*ctx.state.nodes, *ctx.compiled.pack.places, "")
    nobody = "" if any(modes.fits(nodes, name) for name in known) else ", which fits no node known now"
    ctx.note("operator.mode", f"{do(command.who, 'sets')} {runbook} to {mode} on nodes {nodes}{nobody}")
    demotion.mode_said(ctx, runbook, nodes, command.who)
    for incident in list(ctx.state.incidents.values()):
        _begin_what_was_observed(ctx, incident)
    for run in list(ctx.state.runs.values()):
        if run.state in (RunState.HELD, RunState.APPROVAL):
            runs.proceed(ctx, run)
        else:
            steps.reconsider(ctx, run)


def _begin_what_was_observed(ctx: Context, incident: Incident) -> None:
    """Starts the incident's runbook if its last run was only planned and the mode now allows more."""
    last = ctx.state.runs.get(incident.runs[-1]) if incident.runs else None
    if incident.state is IncidentState.NEEDS_HUMAN and last is not None and last.state is RunState.OBSERVED:
        runbook = ctx.compiled.runbooks.get(incident.runbook)
        if runbook and modes.mode_of(ctx, runbook.name, incident.node, runbook.at_most) is not Mode.OBSERVE:
            incidents.transition(
                ctx, incident, IncidentTrigger.RUN_STARTED, f"runbook {runbook.name} may act now"
            )
            runs.start(ctx, incident)


def _return(ctx: Context, command: OperatorCommand) -> None:
    """Starts the runbook that returns the node to service, and ends its symptoms, unless the node reports them anew.

    Without such a runbook nothing is asked of the node: they end.
    """
    node = str(command.args.get("node", ""))
    if node not in ctx.state.nodes:
        _refused(ctx, command, said("no such {kind}: {name}", kind="node", name=repr(node)))
        return
    ctx.note("operator.return", f"{do(command.who, 'says')} that {node} is healthy", scope=f"node/{node}")
    if RETURN_RUNBOOK not in ctx.compiled.runbooks:
        ctx.vouched.append((node, command.who, math.inf, None))
    elif why := requests.request(ctx, RETURN_RUNBOOK, f"node/{node}", command.who, "return", vouched=True):
        _refused(ctx, command, why)


def _forget(ctx: Context, command: OperatorCommand) -> None:
    """A node is gone for good. `revoked`: a brain says so of one that its operator has turned out, so that each brain of the
    cell takes nothing from it any more (`at`: when that was); else it must be silent.
    """
    node, why = str(command.args.get("node", "")), str(command.args.get("why", ""))
    found = ctx.state.nodes.get(node)
    if command.args.get("revoked"):
        forgetting.shut_out(ctx, node, _number(command.args.get("at")) or ctx.now)
    if found is None and command.args.get("revoked"):
        text = f"{command.who} has revoked {node}: nothing that it says is taken"
        ctx.note("node.shut_out", text, scope=f"node/{node}")
    elif found is None:
        _refused(ctx, command, said("no such {kind}: {name}", kind="node", name=repr(node)))
    elif found.alive and not command.args.get("revoked"):
        _refused(
            ctx,
            command,
            f"{node} is heard: stop its agent first, or take its key away (`gpuward cell revoke {node}`)",
        )
    else:
        text = (
            f"{command.who} has revoked it"
            if command.args.get("revoked")
            else f"{do(command.who, 'says')} that it is gone"
        )
        forgetting.forget(ctx, node, f"{text}: {why}" if why else text)


def _admit(ctx: Context, command: OperatorCommand) -> None:
    """A brain says of a node that was turned out that it has been let in again."""
    node = str(command.args.get("node", ""))
    if ctx.state.shut_out.pop(node, None) is None:
        _refused(ctx, command, f"{node!r} was not turned out")
    else:
        ctx.note("node.admitted", f"{node} is let in again ({command.who})", scope=f"node/{node}")


def _void(ctx: Context, command: OperatorCommand) -> None:
    """A brain says of a token, to join by or a person's, that it was taken away (`at`: when that was)."""
    token = str(command.args.get("token", ""))
    forgetting.void_token(ctx, token, _number(command.args.get("at")) or ctx.now)
    ctx.note("token.void", f"{command.who} has taken away token {token}: nobody gets in by it", scope="cell")


def _start(ctx: Context, command: OperatorCommand) -> None:
    runbook, node, fabric, why = (
        str(command.args.get(name, "")) for name in ("runbook", "node", "fabric", "why")
    )
    scope = f"fabric/{fabric}" if fabric else f"node/{node}"
    why = why or "no reason given"
    ctx.note(
        "operator.start", f"{do(command.who, 'asks')} for {runbook} on {node or scope}: {why}", scope=scope
    )
    if refusal := requests.request(ctx, runbook, scope, command.who, why):
        _refused(ctx, command, refusal)


def _reset(ctx: Context, command: OperatorCommand) -> None:
    if not ctx.state.tripped:
        _refused(ctx, command, said("the breaker has not tripped"))
        return
    ctx.state.tripped, ctx.state.began = 0.0, []
    ctx.note("operator.reset", f"{do(command.who, 'resets')} the breaker")
    wake(ctx)


VERBS: dict[str, Callable[[Context, OperatorCommand], None]] = {
    "hold": _hold,
    "release": _release,
    "approve": _approve,
    "deny": _deny,
    "ack": _ack,
    "note": _note,
    "close": _close,
    "mode": _mode,
    "return": _return,
    "forget": _forget,
    "start": _start,
    "reset": _reset,
}
# What only the brains themselves say.
BRAINS: Mapping[str, Callable[[Context, OperatorCommand], None]] = {
    "admit": _admit,
    "void": _void,
}


def _refused(ctx: Context, command: OperatorCommand, why: str) -> None:
    read = {
        name: value for name, value in command.args.items() if name != "seen"
    }  # which is a mark for machines
    given = " ".join([command.verb, *(f"{name}={value!s:.100}" for name, value in read.items())])
    parts = {"said": why.noted()} if isinstance(why, Sentence) else {}
    ctx.note("operator.refused", f"{command.who}: {given}: {why}", data=parts)


def _incident(ctx: Context, command: OperatorCommand) -> Incident | None:
    """The incident that `id` names, by its own id or a run's; None: there is none, or it is over."""
    wanted = str(command.args.get("id", ""))
    incident = ctx.state.incidents.get(wanted.partition(".r")[0])
    return incident if incident is not None and incident.state not in incidents.OVER else None


def _run(ctx: Context, command: OperatorCommand) -> Run | None:
    """The run that `id` names, or the last run of the incident that it names."""
    wanted = str(command.args.get("id", ""))
    if wanted in ctx.state.runs:
        return ctx.state.runs[wanted]
    incident = ctx.state.incidents.get(wanted)
    return ctx.state.runs.get(incident.runs[-1]) if incident is not None and incident.runs else None


def _number(value: object) -> float:
    """0 for what is not a number."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0
