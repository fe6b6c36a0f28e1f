"""What people are told of an incident, and how it reads. Pure.

A page must be enough to decide in bed: what, where, since when, on what evidence, what was tried, what is
proposed, and the commands to type.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from agent.contract.messages import clip
from brain.core.effects import SendPage
from brain.core.spec import Rule, Rung, Scalar, Text
from brain.core.state import Evidence, Incident, IncidentState, Run, RunState, StepRecord

MAX_EVIDENCE_LINES = 6
MAX_LINE = 300  # characters of one evidence line
_PLANNED = (RunState.OBSERVED, RunState.HELD, RunState.APPROVAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to type, and what it does."""

    line: str
    does: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMessage:
    """One page. `dedup_key` is the same for all pages of one incident, so that a receiver shows one alert."""

    id: str
    dedup_key: str
    what: str  # open | repeat | update | resolve
    group: str  # channel group that it is for
    title: str
    severity: str  # P0 .. P3
    cause: str
    scope: str
    node: str  # empty for a scope wider than a node
    nodes: int  # how many show it
    state: str
    why_now: str
    because: str
    since: str  # when the fact came about, by the log's clock; ISO 8601 UTC
    evidence: tuple[str, ...]
    evidence_ids: tuple[str, ...]
    tried: tuple[str, ...]
    proposed: tuple[str, ...]
    commands: tuple[Command, ...]
    knowledge: dict[str, dict[str, str]]  # cause, todo -> en, zh; empty when the rule is not known
    links: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dict; `status` is what alert receivers want: trigger or resolve."""
        return {"status": "resolve" if self.what == "resolve" else "trigger"} | asdict(self)

    def to_json(self) -> bytes:
        """The body that a webhook gets: UTF-8, keys in a fixed order."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":")).encode()

    def to_text(self) -> str:
        """For people, without markup; ends with a line break."""
        where = self.scope + (f" ({self.nodes} nodes)" if self.nodes > 1 else "")
        lines = [
            self.title,
            f"  why now    {self.why_now}",
            f"  where      {where}",
            f"  since      {self.since}",
        ]
        if self.what != "resolve":
            lines += [f"  because    {self.because}"]
            lines += _block("evidence", self.evidence)
        lines += _block("tried", self.tried)
        if self.what != "resolve":
            lines += _block("proposed", self.proposed)
            for key, label in (("cause", "cause"), ("todo", "what to do")):
                lines += _block(label, list(self.knowledge.get(key, {}).values()))
            lines += _block("see", self.links)
        lines += _block("type", [f"{command.line}    # {command.does}" for command in self.commands])
        return "\n".join(lines) + "\n"


def compose(page: SendPage, *, rule: Rule | None = None, runs: Sequence[Run] = ()) -> PageMessage:
    """The message of a page. `rule` is the incident's (None: not known), `runs` its runs, in order."""
    incident = page.incident
    evidence = _newest_of_each(incident.evidence)
    knowledge = rule.knowledge if rule else None
    return PageMessage(
        id=page.id,
        dedup_key=incident.id,
        what=page.what,
        group=page.to,
        title=_title(page),
        severity=incident.severity,
        cause=incident.cause,
        scope=incident.scope,
        node=incident.node,
        nodes=incident.nodes,
        state=incident.state.value,
        why_now=page.text,
        because=incident.because,
        since=_iso(min([item.at for item in incident.evidence] + [incident.opened_at])),
        evidence=tuple(_evidence_line(item) for item in evidence),
        evidence_ids=tuple(item.id for item in evidence),
        tried=tuple(_step_line(run, step) for run in runs for step in run.steps),
        proposed=tuple(line for run in runs for line in _proposed(run)) or _by_people(incident, runs),
        commands=tuple(_commands(page, runs)),
        knowledge={"cause": _both(knowledge.cause), "todo": _both(knowledge.todo)} if knowledge else {},
        links=knowledge.links if knowledge else (),
    )


def _title(page: SendPage) -> str:
    incident = page.incident
    label = {"open": "", "repeat": "STILL OPEN: ", "update": "UPDATE: ", "resolve": "RESOLVED: "}[page.what]
    return f"[{incident.severity}] {label}{incident.cause.replace('_', ' ')} on {incident.scope}"


def _newest_of_each(items: Sequence[Evidence]) -> list[Evidence]:
    """The first fact, then the newest of each kind and component, in order of time; bounded."""
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
    params = {
        name: run.params.get(str(value)[1:], value) if str(value).startswith("$") else value
        for name, value in rung.params.items()
    }
    disrupts = f", disrupts {rung.disrupts.value}" if rung.disrupts else ""
    return clip(f"{rung.name}: {rung.do}{_params(params)}{disrupts}", MAX_LINE)


def _by_people(incident: Incident, runs: Sequence[Run]) -> tuple[str, ...]:
    if incident.state is IncidentState.PERSON:
        if any(run.state is RunState.EXHAUSTED for run in runs):
            return (f"{incident.runbook} has nothing left to try: a person must mend it",)
        return ("gpuward will not do more by itself: a person must mend it",)
    return ()


def _commands(page: SendPage, runs: Sequence[Run]) -> list[Command]:
    incident = page.incident
    rows = [Command(line=f"gpuward explain {incident.id}", does="the whole chain, back to the kernel line")]
    if page.what == "resolve":
        return rows
    rows += [Command(line=f"gpuward ack {incident.id}", does="I look at it: stop repeating the page")]
    rows += [
        Command(line=f"gpuward approve {run.id}", does=f"let {run.runbook.name} do its next rung")
        for run in runs
        if run.state is RunState.APPROVAL
    ]
    scope = f"node/{incident.node}" if incident.node else incident.scope
    rows += [
        Command(line=f"gpuward hold {shlex.quote(scope)} --why '...'", does="gpuward must not act there")
    ]
    return rows


def _params(params: dict[str, Scalar]) -> str:
    return f"({', '.join(f'{name}={value}' for name, value in params.items())})" if params else ""


def _both(text: Text) -> dict[str, str]:
    return {"en": text.en, "zh": text.zh}


def _block(label: str, items: Sequence[str]) -> list[str]:
    return [f"  {label if index == 0 else '':<10} {item}" for index, item in enumerate(items)]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
