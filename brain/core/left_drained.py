"""The incident of a node that is left drained, by another incident, which is over, or by a person's `forget`: it ends when the
node is given back (law 14).
"""

from brain.core import ids, incidents
from brain.core.context import Context
from brain.core.healing import drains, runs
from brain.core.healing.drains import LEFT
from brain.core.incidents import IncidentTrigger
from brain.core.pack.spec import Paging, Priority, Text
from brain.core.paging import escalation
from brain.core.state import Incident, IncidentState, OwnedDrain


def open_left(ctx: Context, node: str, former: Incident) -> Incident:
    """Opens the incident of a node that an incident, which is over, has left drained (law 14)."""
    why = (
        Text(en=f"is over: {former.closed_why}", zh=f"已结束：{former.closed_why}")
        if former.closed_why
        else Text(
            en=f"is at {former.scope} and explains nothing here any more",
            zh=f"现位于 {former.scope}，不再解释这里的情况",
        )
    )
    return _open(
        ctx,
        node,
        former.id,
        Text(
            en=f"was drained for {former.cause} ({former.id}), which {why.en}",
            zh=f"曾因 {former.cause}（{former.id}）被排空，而该故障{why.zh}",
        ),
    )


def open_heard_again(ctx: Context, node: str) -> Incident:
    """Opens the incident of a node that was forgotten while we had drained it, and is there all the same (law 14)."""
    marks = ctx.state.left_behind.pop(node)
    why = Text(
        en="was forgotten while gpuward had drained it, and is heard again",
        zh="在被 gpuward 排空期间遭到遗忘，如今又有了消息",
    )
    incident = _open(ctx, node, marks[0], why)
    ctx.state.drains.setdefault(node, {})[incident.id] = OwnedDrain(since=ctx.now, marks=marks)
    return incident


def _open(ctx: Context, node: str, former: str, why: Text) -> Incident:
    scope = f"node/{node}"
    incident = Incident(
        id=ids.hashed(ids.INCIDENT, ctx.cause, LEFT, scope, former),
        cause=LEFT,
        state=IncidentState.OPEN,
        severity=Priority.P2,
        scope=scope,
        node=node,
        rule=LEFT,
        because=f"{node} {why.en}. It stays out of service until it is given back: gpuward return {node}",
        because_zh=f"{node} {why.zh}。归还之前它一直停用：gpuward return {node}",
        runbook=incidents.RETURN_RUNBOOK,
        pack=ctx.compiled.pack.version,
        opened_at=ctx.now,
        hold_off_until=ctx.now,
        resolve_delay_s=1.0,
        page=Paging.FAILURE,
        matching_rules={ids.key(LEFT, ids.key(former, scope)): LEFT},
    )
    ctx.state.incidents[incident.id] = incident
    ctx.index.add_incident(incident)
    ctx.note("incident.opened", incident.because, incident=incident.id, scope=scope)
    ctx.show(incident)
    return incident


def end_left(ctx: Context, incident: Incident) -> None:
    """The node is no longer kept out of service: what `open_left` put in place of a rule's match is over."""
    for match in [match for match, rule in incident.matching_rules.items() if rule == LEFT]:
        ctx.index.by_match.pop(match, None)
        del incident.matching_rules[match]


def left(ctx: Context, node: str, former: Incident, by_operator: bool) -> None:
    """An incident is over that had drained a node: another one keeps the drain, and brings the node back if it may.

    Unless the drain is that of a fault which it explained, and which has its own incident again.
    """
    if former.id not in ctx.state.drains.get(node, {}):
        return
    heir = open_left(ctx, node, former)
    drains.hand_over(ctx, node, former.id, heir.id)
    if by_operator or heir.runbook not in ctx.compiled.runbooks:
        escalation.open_page(ctx, heir, heir.because)
    else:
        incidents.transition(ctx, heir, IncidentTrigger.RUN_STARTED, f"runbook {heir.runbook}")
        runs.start(ctx, heir)


def heard_again(ctx: Context, node: str) -> None:
    """A node that was forgotten while it was drained is heard again: it is out of service, and a person is told."""
    incident = open_heard_again(ctx, node)
    escalation.open_page(ctx, incident, incident.because)
