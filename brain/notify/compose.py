"""From a page of the engine to the message that people get. Pure."""

import shlex
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from agent.contract.counted import counted
from agent.contract.messages import clip
from brain.core.effects import PageSubject, SendPage
from brain.core.healing import plans, told
from brain.core.pack.compiled import rule_named
from brain.core.pack.spec import Knowledge, Rule, Rung, Scalar, Text
from brain.core.state import Evidence, GroupedAlert, IncidentState, Run, RunState, State, StepRecord
from brain.notify.message import LABELS, PageMessage, ShellCommand

MAX_EVIDENCE_LINES = 6
MAX_LISTED = 40  # incidents that the page of an alert group lists; the others are counted
MAX_OF_NODE = 5  # incidents of one node that are listed before any others
MAX_LINE = 300  # characters of one evidence line
_PLANNED = (RunState.OBSERVED, RunState.HELD, RunState.APPROVAL)


def compose_from(state: State, page: SendPage) -> PageMessage:
    """Composes the message of a page, with the rule and the runs as the engine has them now."""
    subject = page.subject
    rule = rule_named(state.pack, subject.rule)
    return compose(page, rule=rule, runs=[state.runs[run] for run in subject.runs if run in state.runs])


def compose(
    page: SendPage,
    *,
    rule: Rule | None = None,
    runs: Sequence[Run] = (),
    knowledge: Knowledge | None = None,
) -> PageMessage:
    """Composes the message of a page. `rule` opened its incident (None: unknown); `runs` are the incident's, in order.
    `knowledge`: where no rule has it.
    """
    about = page.subject
    evidence = _newest_of_each(about.evidence)
    knowledge = rule.knowledge if rule else knowledge
    subject = f"{about.cause.replace('_', ' ')} on {about.scope}"
    if about.listed:
        subject = counted(len(about.listed), "incident") + (f" on {about.scope}" if about.node else "")
    message = PageMessage(
        id=page.id,
        dedup_key=about.id,
        what=page.what,
        group=page.to,
        title=f"[{about.severity}] {_label(page)}{subject}",
        subject=f"[{about.severity}] {subject}",
        severity=about.severity,
        cause=about.cause,
        scope=about.scope,
        node=about.node,
        nodes=about.nodes,
        state=about.state.value,
        why_now=page.text,
        because=about.because,
        since=_iso(about.since),
        evidence=tuple(_evidence_line(item) for item in evidence),
        evidence_ids=tuple(item.id for item in evidence),
        tried=tuple(_step_line(run, step) for run in runs for step in run.steps),
        proposed=tuple(line for run in runs for line in _proposed(run)) or _by_people(about, runs),
        commands=tuple(_commands(page, runs)),
        knowledge={"cause": _both(knowledge.cause), "todo": _both(knowledge.todo)} if knowledge else {},
        links=knowledge.links if knowledge else (),
        acked_by=about.acked_by,
        severities=about.severities_before,
        incidents=_listed(about.listed),
    )
    return message.inert()


def _label(page: SendPage) -> str:
    """What kind of page it is; an update that says that gpuward does nothing more is more than that."""
    gave_up = page.what == "update" and page.subject.state is IncidentState.NEEDS_HUMAN
    return "GAVE UP: " if gave_up else LABELS[page.what]


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
        mark = "over, " if line.over else "acknowledged, " if line.acked else ""
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


def _evidence_line(item: Evidence) -> str:
    return clip(f"{_iso(item.at)} {item.node} {item.component} {item.kind}: {_one_line(item.text)}", MAX_LINE)


def _step_line(run: Run, step: StepRecord) -> str:
    ended = step.outcome or "under way"
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


def _by_people(about: PageSubject, runs: Sequence[Run]) -> tuple[str, ...]:
    if about.state is IncidentState.NEEDS_HUMAN:
        if any(run.state is RunState.EXHAUSTED for run in runs):
            return (f"{about.runbook} has nothing left to try: a person must fix it",)
        return ("gpuward will not do more by itself: a person must fix it",)
    return ()


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
        ShellCommand(line=f"gpuward approve {run.id}", does=f"let {run.runbook.name} do its next rung")
        for run in runs
        if run.state is RunState.APPROVAL
    ]
    scope = f"node/{about.node}" if about.node else about.scope
    where = "all" if scope in ("", "cell") else shlex.quote(scope)
    return [
        *rows,
        ShellCommand(line=f"gpuward hold {where} --why '...'", does="gpuward must not act there"),
        *look,
    ]


def _params(params: dict[str, Scalar]) -> str:
    return f"({', '.join(f'{name}={value}' for name, value in params.items())})" if params else ""


def _both(text: Text) -> dict[str, str]:
    return {"en": text.en, "zh": text.zh}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
