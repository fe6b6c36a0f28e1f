"""One run as spans: itself, and below it the waits for gates and people, the steps, and their verification."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.contract.commands import Outcome
from agent.contract.messages import clip
from brain.core.pack.spec import PAGE
from brain.core.state import RunState
from brain.traces.ids import span_id
from brain.traces.spans import MAX_EVENTS, MAX_TEXT, Span, SpanEvent, SpanKind, on, said

Json = Mapping[str, Any]
OVER = tuple(
    state.value for state in (RunState.SUCCEEDED, RunState.EXHAUSTED, RunState.OBSERVED, RunState.CANCELLED)
)
ENDS = tuple(f"run.{state}" for state in OVER)  # notes
_STATES = {f"run.{state.value}": state for state in RunState}
_OF_STEP = (RunState.INTENT, RunState.PERFORMING, RunState.CANCELLING)
_AFTER_VERIFYING = ("run.not_verified", "run.returning")
_STOPPED_IN_TIME = "withdrawn"  # by a gate, before it left


def run_spans(incident: str, run: Json, notes: Sequence[Json], root: str) -> Iterator[Span]:
    """What has ended of a run. `notes`: its own, in order."""
    yield from _waits(incident, run, notes)
    for step in run["steps"]:
        if step["action"] != PAGE:  # pages have spans of their own
            yield from _step(incident, run, step, notes)
    if run["state"] in OVER:
        yield _run(incident, run, notes, root)


def _run(incident: str, run: Json, notes: Sequence[Json], root: str) -> Span:
    exhausted = run["state"] == RunState.EXHAUSTED.value
    told = (*_STATES, "run.started", "step.result", "step.progress")
    over = next((place for place, note in enumerate(notes) if note["kind"] in ENDS), len(notes))
    other = [note for note in notes[:over] if note["kind"] not in told]  # a plan may still come later
    return Span(
        id=span_id(incident, "run", run["id"]),
        parent=root,
        name=f"run {run['runbook']['name']}",
        start=run["started_at"],
        end=run["ended_at"],
        attributes=on(run["node"])
        | said(
            run_id=run["id"],
            runbook=run["runbook"]["name"],
            rules_version=run["pack"],
            scope=run["scope"],
            run_state=run["state"],
            run_requested_by=run["requested_by"],
            why=run["why"],
        )
        | _error(run["state"] if exhausted else ""),
        events=tuple(
            SpanEvent(at=note["at"], name=note["kind"], attributes=said(why=note["text"]))
            for note in other[:MAX_EVENTS]
        ),
        error=run["state"] if exhausted else "",
        message=clip(run["why"], MAX_TEXT) if exhausted else "",
    )


def _waits(incident: str, run: Json, notes: Sequence[Json]) -> Iterator[Span]:
    """The states in which a run waits: each ends with whatever comes next."""
    for place, note in enumerate(notes):
        state = _STATES.get(note["kind"])
        if state not in (RunState.HELD, RunState.APPROVAL, RunState.VERIFYING):
            continue
        verifying = state is RunState.VERIFYING
        ends = (*_STATES, *_AFTER_VERIFYING) if verifying else tuple(_STATES)
        after = next((one for one in notes[place + 1 :] if one["kind"] in ends), None)
        if after is None:
            continue
        gate = str(note["data"].get("gate", ""))
        error = "not_verified" if after["kind"] == "run.not_verified" else ""
        name = f"gate {gate}".strip() if state is RunState.HELD else "verify" if verifying else "approval"
        step = next((one for one in reversed(run["steps"]) if one["at"] <= note["at"]), None)
        yield Span(
            id=span_id(incident, "wait", note["id"]),
            parent=span_id(incident, "run", run["id"]),
            name=name,
            start=note["at"],
            end=after["at"],
            attributes=on(run["node"])
            | said(
                run_id=run["id"],
                gate=gate,
                step_id=step["id"] if verifying and step else "",
                step_rung=step["rung"] if verifying and step else "",
                why=after["text"] if verifying else note["text"],
            )
            | _error(error),
            error=error,
            message=clip(after["text"], MAX_TEXT) if error else "",
        )


def _step(incident: str, run: Json, step: Json, notes: Sequence[Json]) -> Iterator[Span]:
    """A step that has ended: with its result, or else with what its run did next (a gate stopped it, it was given up)."""
    result = next(
        (n for n in notes if n["kind"] == "step.result" and n["data"].get("step") == step["id"]), None
    )
    end = result["at"] if result else _left_at(run, step, notes)
    if not step["outcome"] or end is None:
        return
    bad = step["outcome"] not in (Outcome.OK.value, _STOPPED_IN_TIME)
    yield Span(
        id=span_id(incident, "step", step["id"]),
        parent=span_id(incident, "run", run["id"]),
        name=f"step {step['action']}",
        start=step["at"],
        end=end,
        kind=SpanKind.CLIENT,
        attributes=on(run["node"])
        | said(
            run_id=run["id"],
            step_id=step["id"],
            step_action=step["action"],
            step_rung=step["rung"],
            step_outcome=step["outcome"],
            why=step["why"],
        )
        | _error(step["outcome"] if bad else ""),
        error=step["outcome"] if bad else "",
        message=clip(step["why"], MAX_TEXT) if bad else "",
    )


def _left_at(run: Json, step: Json, notes: Sequence[Json]) -> float | None:
    """When a run went on from a step that has no result."""
    begun = [
        place for place, note in enumerate(notes) if note["kind"] == "run.intent" and note["at"] <= step["at"]
    ]
    for note in notes[begun[-1] + 1 :] if begun else ():
        if note["kind"] in _STATES and _STATES[note["kind"]] not in _OF_STEP:
            return float(note["at"])
    return float(run["ended_at"]) if run["state"] in OVER else None


def _error(kind: str) -> dict[str, Any]:
    return {"error.type": kind} if kind else {}
