"""Makes the items of the page of whoever is on call from the engine's memory. Each is made in one go, many of them in slices."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from agent.contract.counted import counted, span
from agent.contract.messages import clip
from agent.shared.words import either
from brain.console import shapes
from brain.console.api.chain_shapes import ChainShape
from brain.console.api.needs_shapes import NeedKind, NeedShape, VerbShape, WantedApprovalShape
from brain.console.fleet.facts import OVER
from brain.console.needs.verbs import Allowed
from brain.console.pack.show import disrupts, repeat
from brain.core import recurrence
from brain.core.healing import approvals, limits, plans, shown
from brain.core.pack.spec import Priority, Scalar
from brain.core.people import do
from brain.core.state import AlertGroup, Hold, Incident, IncidentState, Run, RunState, State

HOLD_ENDS_S = 3600.0
HOLD_STANDS_S = 86400.0
_KINDS = list(NeedKind)
_SHOWN = 20  # nodes that an item names
_TEXT = 400


def order(item: NeedShape) -> tuple[str, int, str, str]:
    """The most urgent first: by severity, by why it needs a person, by age."""
    kind = _KINDS.index(item.kinds[0]) if item.kinds else len(_KINDS)
    return item.severity.value, kind, item.since or "", item.id


def drained_by(state: State) -> dict[str, list[str]]:
    """Returns incident -> the nodes that it keeps out of service."""
    found: dict[str, list[str]] = {}
    for node, owners in state.drains.items():
        for incident in owners:
            found.setdefault(incident, []).append(node)
    return found


def incident(one: Incident, state: State, drained: Sequence[str], allowed: Allowed) -> NeedShape | None:
    """Returns an incident's item; None: it is over."""
    if one.state in OVER:
        return None
    run = _newest(one, state)
    asking = run if run is not None and run.state is RunState.APPROVAL else None
    kinds = list(_kinds(one, asking, drained))
    return NeedShape(
        kinds=kinds,
        id=one.id,
        severity=one.severity,
        state=one.state.value,
        cause=one.cause,
        scope=one.scope,
        node=one.node,
        since=shapes.iso(one.opened_at),
        until=shapes.iso(_until(one, state)),
        text=clip(_sentence(one, run, kinds, drained), _TEXT),
        run=run.id if run else "",
        acked_by=one.pages.acked_by,
        out_of_service=list(drained[:_SHOWN]),
        approval=wanted_approval(run, state) if run is not None else None,
        verbs=verbs(one, run, drained, allowed),
    )


def verbs(one: Incident, run: Run | None, drained: Sequence[str], allowed: Allowed) -> list[VerbShape]:
    """What somebody may say about an incident that is open. `run`: its newest; `drained`: nodes that it keeps out of service."""
    found: list[tuple[str, dict[str, Scalar]]] = []
    if run is not None and _takes_approval(run):
        found.append(
            ("approve", {"id": run.id, "rung": approvals.rung(run), "seen": shown.mark(allowed.state, run)})
        )
    if run is not None and not run.ended_at:
        found.append(("deny", {"id": run.id}))
    if not one.pages.acked_by:
        found.append(("ack", {"id": one.id}))
    found.append(("hold", {"scope": one.scope}))
    found += [("return", {"node": node}) for node in drained[:1] if len(drained) == 1]
    found.append(("close", {"id": one.id}))
    return allowed.of(*found)


def of_chain(chain: ChainShape, allowed: Allowed) -> list[VerbShape]:
    """What somebody may say about the incident of a chain; about one that is over they may only write something down."""
    if chain.incident is None:
        return []
    state, noted = allowed.state, allowed.of(("note", {"id": chain.incident.id}))
    one = state.incidents.get(chain.incident.id)
    if one is None or one.state in OVER:
        return noted
    return [*verbs(one, _newest(one, state), chain.out_of_service, allowed), *noted]


def _newest(one: Incident, state: State) -> Run | None:
    return next((state.runs[id_] for id_ in reversed(one.runs) if id_ in state.runs), None)


def _takes_approval(run: Run) -> bool:
    return run.state is RunState.APPROVAL or limits.waits_for_people(run)


def _kinds(one: Incident, asking: Run | None, drained: Sequence[str]) -> Iterator[NeedKind]:
    if asking is not None:
        yield NeedKind.APPROVAL
    left = one.state is IncidentState.NEEDS_HUMAN
    if left:
        yield NeedKind.NO_REMEDY
    if one.pages.sent and not one.pages.acked_by and not one.pages.resolved:
        yield NeedKind.PAGE
    if left and drained:
        yield NeedKind.DRAINED


def _until(one: Incident, state: State) -> float:
    if one.state is IncidentState.SETTLING:
        return one.hold_off_until
    if one.state is IncidentState.RECOVERED and one.clear_since:
        return one.clear_since + recurrence.resolve_delay_s(state, one)
    return 0.0


def _sentence(one: Incident, run: Run | None, kinds: Sequence[NeedKind], drained: Sequence[str]) -> str:
    what = f"{one.cause} at {one.scope}"
    out = f"; {counted(len(drained), 'node')} out of service" if drained else ""
    if NeedKind.APPROVAL in kinds and run is not None:
        return f"{run.runbook.name} wants to do {approvals.what(run)}: {run.why}{out}"
    if NeedKind.NO_REMEDY in kinds:
        why = run.why if run is not None else "no runbook leads on"
        return f"{what} needs a person: {why}{out}"
    if NeedKind.PAGE in kinds:
        return f"Nobody has acknowledged {counted(one.pages.sent, 'page')} about {what}{out}"
    match one.state:
        case IncidentState.HEALING if run is not None:
            return f"{run.runbook.name} heals {what}: {_doing(run)}{out}"
        case IncidentState.SETTLING:
            return f"{what} settles: {one.waits or 'a wider cause may explain it'}{out}"
        case IncidentState.RECOVERED:
            return f"{what} is gone ({one.clear_why}); it closes if it stays away{out}"
    return f"{what} is open: {either(one.because, one.because_zh)}{out}"


def _doing(run: Run) -> str:
    name = approvals.rung(run)
    newest = run.steps[-1].doing if run.steps and not run.steps[-1].outcome else ""
    return ", ".join(part for part in (name, run.state.value, newest or run.why) if part)


def wanted_approval(run: Run, state: State) -> WantedApprovalShape | None:
    """Returns exactly what an approval of a run would be for; None: it waits for none, or nothing is left of it."""
    rungs = plans.rungs(run)
    if not _takes_approval(run) or run.rung >= len(rungs):
        return None
    rung = rungs[run.rung]
    return WantedApprovalShape(
        run=run.id,
        runbook=run.runbook.name,
        rung=rung.name,
        what=approvals.what(run),
        seen=shown.mark(state, run),
        disrupts=disrupts(rung, returning=bool(run.worked)),
        repeat=repeat(rung),
        why=run.why,
        valid_s=state.pack.settings.approval_s if state.pack else 0.0,
        jobs=_jobs_there(run, state),
    )


def _jobs_there(run: Run, state: State) -> list[str] | None:
    """What runs on a run's node, by the newest answer of its scheduler, for whatever sake it was asked; None: there is none."""
    found = []
    answer, incident = state.jobs.get(run.node), state.incidents.get(run.incident)
    if answer is not None and answer.known:
        found.append((answer.at, list(answer.jobs)))
    told = incident.hit.get(run.node) if incident is not None else None
    if told is not None and told.at and told.scheduler != "":
        found.append((told.at, [one.job.id for one in told.jobs if not one.gone_at]))
    return max(found)[1] if found else None


def hold(one: Hold, now: float, allowed: Allowed) -> NeedShape | None:
    """Returns the item of a hold that ends within an hour, or that has no end and has stood for a day; None: it needs nobody."""
    if one.until:
        kind, needs = NeedKind.HOLD_ENDS, now <= one.until <= now + HOLD_ENDS_S
        text = (
            f"{do(one.who, 'holds')} {one.scope}: {one.why}; that ends by itself at "
            f"{datetime.fromtimestamp(one.until, UTC):%m-%d %H:%MZ}"
        )
    else:
        kind, needs = NeedKind.HOLD_STANDS, now - one.since >= HOLD_STANDS_S
        text = (
            f"{do(one.who, 'holds')} {one.scope}: {one.why}; that has no end, and has stood for "
            f"{span(now - one.since)}: release it when it has served"
        )
    if not needs:
        return None
    return _other(
        kind,
        id_=one.id,
        scope=one.scope,
        since=one.since,
        until=one.until,
        text=text,
        verbs=[("hold", {"scope": one.scope}), ("release", {"scope": one.id})],
        allowed=allowed,
    )


def breaker(since: float, allowed: Allowed) -> NeedShape:
    """Returns the item of the breaker, which has tripped."""
    return _other(
        NeedKind.BREAKER,
        id_="breaker",
        scope="cell",
        since=since,
        until=0.0,
        text="The breaker has tripped: nothing disruptive begins before somebody resets it",
        verbs=[("reset", {})],
        allowed=allowed,
        severity=Priority.P1,
    )


def group(one: AlertGroup, allowed: Allowed) -> NeedShape | None:
    """Returns the item of an alert group that nobody has acknowledged; None: it needs nobody."""
    pages = one.pages
    if not pages.sent or pages.acked_by or pages.resolved or one.seen >= len(one.listed):
        return None
    return _other(
        NeedKind.PAGE,
        id_=one.id,
        scope="cell",
        since=one.opened_at,
        until=0.0,
        text=f"Nobody has acknowledged the page about {counted(len(one.listed), 'incident')} on "
        f"{counted(len(one.affected), 'node')} to {one.to}",
        verbs=[("ack", {"id": one.id})],
        allowed=allowed,
        severity=one.severity,
    )


def _other(
    kind: NeedKind,
    *,
    id_: str,
    scope: str,
    since: float,
    until: float,
    text: str,
    verbs: Sequence[tuple[str, dict[str, Scalar]]],
    allowed: Allowed,
    severity: Priority = Priority.P3,
) -> NeedShape:
    """The item of what is no incident."""
    return NeedShape(
        kinds=[kind],
        id=id_,
        severity=severity,
        state="",
        cause="",
        scope=scope,
        node="",
        since=shapes.iso(since),
        until=shapes.iso(until),
        text=clip(text, _TEXT),
        run="",
        acked_by="",
        out_of_service=[],
        approval=None,
        verbs=allowed.of(*verbs),
    )
