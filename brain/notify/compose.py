"""From a page of the engine to the message that people get. Pure."""

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from agent.contract.commands import Outcome
from agent.contract.counted import counted
from agent.contract.messages import clip
from brain.chat_words import Button
from brain.core import ids
from brain.core.effects import PageSubject, SendPage
from brain.core.healing import advice, approvals, plans, shown, told
from brain.core.incidents import RETURN_RUNBOOK
from brain.core.operators.requests import REQUEST
from brain.core.operators.scopes import ALL
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.shared import rule_named
from brain.core.pack.spec import Knowledge, Rule, Rung, Scalar, Text
from brain.core.pack.topology import CELL
from brain.core.state import Evidence, GroupedAlert, IncidentState, Run, RunState, State, StepRecord
from brain.hold_words import to_hold
from brain.notify.message import LABELS, TAKEN_OVER, UNTOLD, PageMessage, ShellCommand

MAX_EVIDENCE_LINES = 6
MAX_LISTED = 40  # incidents that the page of an alert group lists; the others are counted
MAX_OF_NODE = 5  # incidents of one node that are listed before any others
MAX_LINE = 300  # characters of one evidence line
_PLANNED = (RunState.OBSERVED, RunState.HELD, RunState.APPROVAL)


def compose_from(state: State, page: SendPage) -> PageMessage:
    """Composes the message of a page, with the rule and the runs as the engine has them now."""
    subject = page.subject
    rule = rule_named(state.pack, subject.rule)
    rule = advice.fitted(rule, state, state.incidents.get(subject.id)) if rule is not None else None
    runs = [state.runs[run] for run in subject.runs if run in state.runs]
    seen = {run.id: shown.mark(state, run) for run in runs}
    return compose(page, rule=rule, runs=runs, ill=_ill(state, subject, rule), seen=seen)


def _ill(state: State, subject: PageSubject, rule: Rule | None) -> Collection[str] | None:
    """The nodes that show a shared cause now; None: it is none, or it is over."""
    keys = (
        [ids.key(name, subject.scope) for name in symptoms_in(rule.when)] if rule and not subject.node else []
    )
    found = [state.symptoms[key] for key in keys if key in state.symptoms]
    return {node: True for one in found for node in one.members} if any(one.active for one in found) else None


def compose(
    page: SendPage,
    *,
    rule: Rule | None = None,
    runs: Sequence[Run] = (),
    knowledge: Knowledge | None = None,
    ill: Collection[str] | None = None,
    seen: Mapping[str, str] | None = None,
) -> PageMessage:
    """Composes the message of a page. `rule` opened its incident (None: unknown); `runs` are the incident's, in order.
    `knowledge`: where no rule has it. `ill`: the nodes that show a shared cause now, None where there is none.
    `seen`: of a run's id, how things stand (shown.mark).
    """
    about = page.subject
    evidence = _newest_of_each(about.evidence)
    knowledge = rule.knowledge if rule else knowledge or _of_request(about, runs)
    if _waits_only(about, runs):
        knowledge = None  # what to do about the fault
    subject = f"{about.cause.replace('_', ' ')} on {about.scope}"
    if about.listed:
        subject = counted(len(about.listed), "incident") + (f" on {about.scope}" if about.node else "")
    message = PageMessage(
        id=page.id,
        dedup_key=about.key or about.id,
        about=about.id,
        what=page.what,
        group=page.to,
        title=f"[{about.severity}] {_label(page, runs)}{subject}",
        subject=f"[{about.severity}] {subject}",
        severity=about.severity,
        cause=about.cause,
        scope=about.scope,
        node=about.node,
        nodes=about.nodes,
        state=about.state.value,
        why_now=f"no channel took its page while it lasted; {page.text}" if _untold(page) else page.text,
        because=about.because,
        because_zh=about.because_zh,
        since=_iso(about.since),
        evidence=tuple(_evidence_line(item, ill) for item in evidence),
        evidence_ids=tuple(item.id for item in evidence),
        tried=tuple(_step_line(run, step) for run in runs for step in run.steps),
        proposed=tuple(line for run in runs for line in _proposed(run)) or _by_people(about, runs),
        commands=tuple(_commands(page, runs)),
        knowledge={"cause": _both(knowledge.cause), "todo": _both(knowledge.todo)} if knowledge else {},
        links=knowledge.links if knowledge else (),
        acked_by=about.acked_by,
        severities=about.severities_before,
        before=about.before,
        common=about.common,
        stops=about.stops,
        hit=clip(_one_line(about.hit), MAX_LINE),
        incidents=_listed(about.listed),
        untold=_untold(page),
        buttons=tuple(_buttons(page, runs, seen or {})),
        tickets=dict(about.tickets),
        tickets_before=dict(about.tickets_before),
        time=about.time,
        again=page.again,
    )
    return message.inert()


def _label(page: SendPage, runs: Sequence[Run]) -> str:
    """What kind of page it is; an update that says that gpuward does nothing more is more than that, if it has done anything.

    What another incident explains has ended as an alert, and is not well.
    """
    about = page.subject
    if page.what == "resolve" and about.state is IncidentState.EXPLAINED:
        return TAKEN_OVER
    if _untold(page):
        return UNTOLD
    over = page.what == "update" and about.state is IncidentState.NEEDS_HUMAN and about.rule != REQUEST
    over = over and not _waits_only(about, runs)
    return "GAVE UP: " if over and any(map(told.tried, runs)) else LABELS[page.what]


def _untold(page: SendPage) -> bool:
    """Whether the page tells the end of what no channel has told the beginning of: people read of both at once."""
    over = page.what == "resolve" and page.subject.state is not IncidentState.EXPLAINED
    return over and not page.alerted


def _listed(lines: Sequence[GroupedAlert]) -> tuple[str, ...]:
    """The incidents of an alert group: the open ones first, each part by severity; of each node a few before any others."""
    by_urgency = sorted(
        lines, key=lambda line: (line.over, line.acked, line.severity, line.since, line.incident)
    )
    seen: Counter[str] = Counter()
    first: list[GroupedAlert] = []
    rest: list[GroupedAlert] = []
    for line in by_urgency:
        source = line.node or line.scope
        (first if seen[source] < MAX_OF_NODE else rest).append(line)
        seen[source] += 1
    ordered = first + rest
    rows = []
    for line in ordered[:MAX_LISTED]:
        over = "taken over, " if line.explained else "over, " if line.over else ""
        mark = over or ("acknowledged, " if line.acked else "")
        about = f"[{line.severity}] {line.incident} {mark}{line.cause.replace('_', ' ')} on {line.scope}"
        fact = f" | {_one_line(line.evidence)}" if line.evidence and not line.over else ""
        rows.append(clip(f"{about}: {_one_line(line.text)}{fact}", MAX_LINE))
    more = len(ordered) - len(rows)
    return (*rows, f"... and {more} more: gpuward incidents") if more > 0 else tuple(rows)


def _newest_of_each(items: Sequence[Evidence]) -> list[Evidence]:
    """The first fact, then the newest ones of each kind and component, in order of time; bounded."""
    newest = {(item.kind, item.component, item.node): item for item in items}
    if items:
        newest.setdefault(("", "", ""), items[0])
    ordered = sorted(newest.values(), key=lambda item: (item.at, item.id))
    unique = list({item.id: item for item in ordered}.values())
    return unique[:1] + unique[1:][-(MAX_EVIDENCE_LINES - 1) :]


def _evidence_line(item: Evidence, ill: Collection[str] | None) -> str:
    well = " (well again)" if ill is not None and item.node not in ill else ""
    where = f"{item.node}{well} {item.component} {item.kind}"
    return clip(f"{_iso(item.at)} {where}: {_one_line(item.text)}", MAX_LINE)


def _step_line(run: Run, step: StepRecord) -> str:
    ended = step.outcome or ": ".join(filter(None, ("under way", _one_line(step.doing))))
    proof = {None: "", True: "; verified: it helped", False: "; verified: it did not help"}[step.verified]
    why = f" ({_one_line(step.why)})" if step.why else ""
    what = f"{run.runbook.name}: {step.rung}: {step.action}{_params(step.params)}"
    return clip(f"{_iso(step.at)} {what} -> {ended}{why}{proof}", MAX_LINE)


def _proposed(run: Run) -> list[str]:
    """What a run would do next, when it may not do it by itself."""
    if run.state not in _PLANNED:
        return []
    head = {
        RunState.OBSERVED: " would run, if its mode allowed it",
        RunState.HELD: "",
        RunState.APPROVAL: " needs an approval",
    }[run.state]
    why = f": {_one_line(run.why)}" if run.why else ""
    rungs = run.runbook.rungs if run.state is RunState.OBSERVED else run.runbook.rungs[run.rung :]
    return [f"{run.runbook.name} ({run.id}){head}{why}"] + [f"  {_rung_line(rung, run)}" for rung in rungs]


def _rung_line(rung: Rung, run: Run) -> str:
    params = {name: told.foretell(value) for name, value in plans.params(run, rung).items()}
    disrupts = f", disrupts {rung.disrupts.value}" if rung.disrupts else ""
    return clip(f"{rung.name}: {rung.do}{_params(params)}{disrupts}", MAX_LINE)


def _waits_only(about: PageSubject, runs: Sequence[Run]) -> bool:
    """Whether the fault is over, no test has found another one, and only the node's return is left."""
    left = about.gone and bool(about.node) and about.state is IncidentState.NEEDS_HUMAN
    return left and not any(run.worked for run in runs[-1:])


def _by_people(about: PageSubject, runs: Sequence[Run]) -> tuple[str, ...]:
    if _waits_only(about, runs):
        return (f"nothing: the fault is over, and {about.node} stays out of service until you give it back",)
    if about.state is IncidentState.NEEDS_HUMAN:
        if any(run.state is RunState.EXHAUSTED and not told.only_tells(run) for run in runs):
            return (f"{about.runbook} has nothing left to try: a person must fix it",)
        return ("gpuward will not do more by itself: a person must fix it",)
    return ()


def _of_request(about: PageSubject, runs: Sequence[Run]) -> Knowledge | None:
    """What a run that a person or a schedule asked for has come to, and how its incident ends. None: there is none."""
    if about.rule != REQUEST or about.state is not IncidentState.NEEDS_HUMAN or not runs:
        return None
    run, where = runs[-1], about.node or about.scope
    ill = [step for step in run.steps if step.outcome != Outcome.OK.value or step.verified is False]
    back = f" If it is out of service, gpuward return {where} gives it back." if about.node else ""
    zh_back = f"若节点仍停用，gpuward return {where} 可将其恢复。" if about.node else ""
    if not ill:  # it was held up, denied, or left to another incident
        why = _one_line(run.why)
        return Knowledge(
            cause=Text(
                en=f"{run.runbook.name} found nothing wrong. It ended so: {why}.",
                zh=f"{run.runbook.name} 未发现问题，其结束原因：{why}。",
            ),
            todo=Text(
                en=f"See to what kept it from ending well. This ends when {run.runbook.name} is done there again and ends well, "
                f"or is closed by a person.{back}",
                zh=f"先处理使其未能成功的原因。再次执行 {run.runbook.name} 并成功，或由人工关闭后，本故障结束。{zh_back}",
            ),
        )
    what = f"{ill[-1].rung} ({ill[-1].action}): {ill[-1].outcome}: {_one_line(ill[-1].why)}"
    return Knowledge(
        cause=Text(
            en=f"No fault was reported for it: {run.runbook.name} came upon it. {what}.",
            zh=f"这不是上报的故障，而是 {run.runbook.name} 检查时发现的：{what}。",
        ),
        todo=Text(
            en=f"Repair what it found. This ends when {run.runbook.name} is done there again and ends well, or is closed by a "
            f"person.{back}",
            zh=f"修复所发现的问题。再次执行 {run.runbook.name} 并成功，或由人工关闭后，本故障结束。{zh_back}",
        ),
    )


def _ends(about: PageSubject, runs: Sequence[Run]) -> list[ShellCommand]:
    """What ends the incident of a run that was asked for."""
    if _of_request(about, runs) is None:
        return []
    runbook, option = runs[-1].runbook.name, "node" if about.node else "fabric"
    where = shlex.quote(about.node or about.scope.partition("/")[2])
    again = ShellCommand(
        line=f"gpuward start {runbook} --{option} {where}", does="do it again: if it ends well, this is over"
    )
    rows = [again] if runbook != RETURN_RUNBOOK else []
    if about.node:
        rows.append(_return(about.node))
    return [*rows, ShellCommand(line=f"gpuward close {about.id}", does="it is no fault")]


def _return(node: str) -> ShellCommand:
    return ShellCommand(line=f"gpuward return {shlex.quote(node)}", does="the node is healthy: give it back")


def _commands(page: SendPage, runs: Sequence[Run]) -> list[ShellCommand]:
    about = page.subject
    look = [ShellCommand(line=f"gpuward explain {about.id}", does="the whole chain, back to the kernel line")]
    if about.listed:
        look = [
            ShellCommand(line="gpuward incidents", does="all that is open"),
            ShellCommand(line="gpuward explain INC", does="the whole chain of one of them"),
        ]
    if page.what in ("ack", "resolve"):
        return look
    does = "I look at all of them" if about.listed else "I look at it"
    rows = [ShellCommand(line=f"gpuward ack {about.id}", does=f"{does}: stop repeating the page")]
    rows += [
        ShellCommand(
            line=f"gpuward approve {run.id} --rung {shlex.quote(approvals.rung(run))}",
            does=f"let {run.runbook.name} do its next rung",
        )
        for run in runs
        if run.state is RunState.APPROVAL
    ]
    rows += _ends(about, runs)
    if _waits_only(about, runs):
        rows.append(_return(about.node))
    where = to_hold(about.node, about.scope)
    return [
        *rows,
        ShellCommand(line=f"gpuward hold {where} --why '...'", does="gpuward must not act there"),
        *look,
    ]


def _buttons(page: SendPage, runs: Sequence[Run], seen: Mapping[str, str]) -> Iterator[Button]:
    """The commands that a card offers: what it asks for, each for exactly what the page says."""
    about = page.subject
    if page.what == "resolve":
        return
    if page.what != "ack":
        yield Button(verb="ack", args={"id": about.id})
    if about.listed:
        return
    for run in runs:
        if run.state is RunState.APPROVAL and (rung := approvals.rung(run)):
            mark = {"seen": seen[run.id]} if seen.get(run.id) else {}
            yield Button(verb="approve", args={"id": run.id, "rung": rung, **mark})
            yield Button(verb="deny", args={"id": run.id})
    where = f"node/{about.node}" if about.node else about.scope
    yield Button(verb="hold", args={"scope": ALL if where in ("", CELL) else where})


def _params(params: dict[str, Scalar]) -> str:
    return f"({', '.join(f'{name}={value}' for name, value in params.items())})" if params else ""


def _both(text: Text) -> dict[str, str]:
    return {"en": text.en, "zh": text.zh}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
