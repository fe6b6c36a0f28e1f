"""What people say: each word is an input on the log, with the person's name. One table of verbs (VERBS)."""

from collections.abc import Callable

from brain.core import approvals, gates, incidents, paging, requests, runs, symptoms
from brain.core.incidents import Happening
from brain.core.inputs import Said
from brain.core.spec import Mode
from brain.core.state import Hold, Incident, IncidentState, ModeSaid, Run, RunState
from brain.core.turn import Turn

RETURN = "return-node"  # the runbook that takes our drain off a node which a person says is healthy


def said(turn: Turn, word: Said) -> None:
    """Does what a person says, or notes why it cannot be done."""
    verb = VERBS.get(word.verb)
    if verb is None:
        _refused(turn, word, f"no such verb (have: {', '.join(VERBS)})")
    else:
        verb(turn, word)


def _hold(turn: Turn, word: Said) -> None:
    scope, why = str(word.args.get("scope", "")), str(word.args.get("why", ""))
    if not scope or not why:
        _refused(turn, word, "a hold needs a scope and a why")
        return
    for_s = _number(word.args.get("for_s"))
    until = turn.now + for_s if for_s > 0 else 0.0
    turn.state.holds[scope] = Hold(scope=scope, who=word.who, why=why, since=turn.now, until=until)
    if until:
        turn.set_timer(f"hold:{scope}", until)
    else:
        turn.cancel_timer(f"hold:{scope}")
    turn.note(
        "said.hold",
        f"{word.who} holds {scope}: {why}" + (f" for {for_s:.0f} s" if until else ""),
        scope=scope,
    )


def _release(turn: Turn, word: Said) -> None:
    scope = str(word.args.get("scope", ""))
    if turn.state.holds.pop(scope, None) is None:
        _refused(turn, word, f"there is no hold on {scope!r}")
        return
    turn.cancel_timer(f"hold:{scope}")
    turn.note("said.release", f"{word.who} releases {scope}", scope=scope)
    wake(turn)


def hold_ended(turn: Turn, scope: str) -> None:
    """A hold's time is over."""
    if turn.state.holds.pop(scope, None) is not None:
        turn.note("hold.ended", f"the hold on {scope} ended by itself", scope=scope)
        wake(turn)


def wake(turn: Turn) -> None:
    """Asks the gates again for every run that waits."""
    for run in list(turn.state.runs.values()):
        if run.state is RunState.HELD:
            runs.proceed(turn, run)


def _approve(turn: Turn, word: Said) -> None:
    run = _run(turn, word)
    if run is None or run.state not in (RunState.APPROVAL, RunState.HELD):
        _refused(turn, word, "no run of that id waits for an approval")
        return
    given = approvals.give(turn, run, word.who)
    turn.note(
        "said.approve",
        f"{word.who} approves {given.what} ({run.runbook.name}) for {turn.book.settings.approval_s / 60:.0f} minutes",
        incident=run.incident,
        run=run.id,
        scope=run.scope,
    )
    runs.proceed(turn, run)


def _deny(turn: Turn, word: Said) -> None:
    run = _run(turn, word)
    if run is None or run.state in runs.OVER:
        _refused(turn, word, "no run of that id is under way")
        return
    runs.cancel(turn, run, f"{word.who} denied it: {word.args.get('why', '') or 'no reason given'}")


def _ack(turn: Turn, word: Said) -> None:
    incident = _incident(turn, word)
    bundle = turn.state.bundles.get(str(word.args.get("id", "")))
    if bundle is not None:
        paging.acknowledge_bundle(turn, bundle, word.who)
    elif incident is None:
        _refused(turn, word, "no such open incident or bundle")
    else:
        paging.acknowledge(turn, incident, word.who)


def _close(turn: Turn, word: Said) -> None:
    incident = _incident(turn, word)
    if incident is None:
        _refused(turn, word, "no such open incident")
    else:
        incidents.happen(
            turn, incident, Happening.CLOSED, f"{word.who}: {word.args.get('why', '') or 'closed'}"
        )


def _mode(turn: Turn, word: Said) -> None:
    runbook, mode, nodes = (
        str(word.args.get(name, default)) for name, default in (("runbook", ""), ("mode", ""), ("nodes", "*"))
    )
    if mode not in [known.value for known in Mode] or not runbook:
        _refused(turn, word, "a mode needs a runbook and one of observe, approve, auto")
        return
    turn.state.modes = [
        entry for entry in turn.state.modes if (entry.runbook, entry.nodes) != (runbook, nodes)
    ]
    turn.state.modes.append(ModeSaid(runbook=runbook, nodes=nodes, mode=mode, who=word.who))
    turn.note("said.mode", f"{word.who} sets {runbook} to {mode} on nodes {nodes}")
    for incident in list(turn.state.incidents.values()):
        _begin_what_was_observed(turn, incident)
    for run in list(turn.state.runs.values()):
        if run.state in (RunState.HELD, RunState.APPROVAL):
            runs.proceed(turn, run)


def _begin_what_was_observed(turn: Turn, incident: Incident) -> None:
    """A runbook that was only planned may be allowed now."""
    last = turn.state.runs.get(incident.runs[-1]) if incident.runs else None
    if incident.state is IncidentState.PERSON and last is not None and last.state is RunState.OBSERVED:
        runbook = turn.book.runbooks.get(incident.runbook)
        if runbook and gates.mode_of(turn, runbook.name, incident.node, runbook.at_most) is not Mode.OBSERVE:
            incidents.happen(turn, incident, Happening.RUN_BEGAN, f"runbook {runbook.name} may act now")
            runs.start(turn, incident)


def _return(turn: Turn, word: Said) -> None:
    node = str(word.args.get("node", ""))
    if node not in turn.state.nodes:
        _refused(turn, word, f"no such node: {node!r}")
        return
    turn.note("said.return", f"{word.who} says that {node} is healthy", scope=f"node/{node}")
    for symptom in list(turn.index.active.get(node, {}).values()):
        turn.changed.extend(symptoms.end(turn, symptom, f"{word.who} says that the node is healthy"))
    if RETURN in turn.book.runbooks and (
        why := requests.request(turn, RETURN, f"node/{node}", word.who, "return")
    ):
        _refused(turn, word, why)


def _start(turn: Turn, word: Said) -> None:
    runbook, node, fabric, why = (
        str(word.args.get(name, "")) for name in ("runbook", "node", "fabric", "why")
    )
    scope = f"fabric/{fabric}" if fabric else f"node/{node}"
    turn.note("said.start", f"{word.who} starts {runbook} on {node or scope}: {why}", scope=scope)
    if refusal := requests.request(turn, runbook, scope, word.who, why or "no reason given"):
        _refused(turn, word, refusal)


def _reset(turn: Turn, word: Said) -> None:
    if not turn.state.tripped:
        _refused(turn, word, "the breaker has not tripped")
        return
    turn.state.tripped, turn.state.began = 0.0, []
    turn.note("said.reset", f"{word.who} resets the breaker")
    wake(turn)


VERBS: dict[str, Callable[[Turn, Said], None]] = {
    "hold": _hold,
    "release": _release,
    "approve": _approve,
    "deny": _deny,
    "ack": _ack,
    "close": _close,
    "mode": _mode,
    "return": _return,
    "start": _start,
    "reset": _reset,
}


def _refused(turn: Turn, word: Said, why: str) -> None:
    turn.note("said.refused", f"{word.who}: {word.verb} {dict(word.args)}: {why}")


def _incident(turn: Turn, word: Said) -> Incident | None:
    wanted = str(word.args.get("id", ""))
    incident = turn.state.incidents.get(wanted.partition(".r")[0])
    return incident if incident is not None and incident.state not in incidents.OVER else None


def _run(turn: Turn, word: Said) -> Run | None:
    wanted = str(word.args.get("id", ""))
    if wanted in turn.state.runs:
        return turn.state.runs[wanted]
    incident = turn.state.incidents.get(wanted)
    return turn.state.runs.get(incident.runs[-1]) if incident is not None and incident.runs else None


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0
