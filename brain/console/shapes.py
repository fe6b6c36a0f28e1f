"""Makes the models of the API from the engine's fields. Times are ISO 8601 UTC."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from agent.contract import subjects
from agent.contract.commands import Outcome
from brain.console.api.incident_shapes import (
    EpisodeShape,
    EvidenceShape,
    IncidentPagesShape,
    IncidentShape,
    NoteShape,
    RungShape,
    RunShape,
    StepShape,
)
from brain.console.api.status_shapes import HoldShape, ModeShape
from brain.console.speech import told, told_note
from brain.core.state import Hold, IncidentState, RunState, State

Json = dict[str, Any]
# Of a run in another state its deadline is an old one
_UNTIL_THEN = (RunState.PERFORMING, RunState.VERIFYING)


def iso(at: float) -> str | None:
    """Formats seconds since 1970 as `2026-01-31T12:00:00.123Z`; None for 0 (not yet)."""
    if not at:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def incident(raw: Mapping[str, Any], asks: str) -> IncidentShape:
    """Returns an incident. `asks`: its run that waits for an approval; empty: none."""
    pages = raw["pages"]
    return IncidentShape(
        id=raw["id"],
        state=raw["state"],
        severity=raw["severity"],
        cause=raw["cause"],
        scope=raw["scope"],
        node=raw["node"],
        nodes=raw["nodes"],
        opened_at=iso(raw["opened_at"]),
        closed_at=iso(raw["closed_at"]),
        closed_why=told(raw["closed_why"]),
        times=raw.get("times", 1),
        episodes=[
            EpisodeShape(
                opened_at=iso(one["opened_at"]),
                closed_at=iso(one["closed_at"]),
                why=told(one["why"]),
                nodes=one["nodes"],
            )
            for one in raw.get("episodes", ())
        ],
        rule=raw["rule"],
        because=raw["because"],
        because_zh=raw.get("because_zh", ""),
        pack=raw["pack"],
        runbook=raw["runbook"],
        runs=raw["runs"],
        symptoms=raw["symptoms"],
        symptom_count=raw["symptom_count"],
        evidence=[evidence(item) for item in raw["evidence"]],
        explains=raw["explains"],
        explained_by=raw["explained_by"],
        stale=raw["stale"],
        asks=asks,
        waits=told(raw.get("waits", "")) if raw["state"] == IncidentState.SETTLING else "",
        pages=IncidentPagesShape(
            sent=pages["sent"],
            first_at=iso(pages["first_at"]),
            acked_by=pages["acked_by"],
            resolved=pages["resolved"],
            undelivered=list(pages["waiting"]),
            alert=pages.get("key", "") or raw["id"],
            passed_to=pages.get("passed_to", ""),
            tickets=pages.get("tickets", {}),
        ),
    )


def evidence(raw: Mapping[str, Any]) -> EvidenceShape:
    """Returns one event of the evidence of an incident."""
    return EvidenceShape(
        id=raw["id"],
        node=raw["node"],
        component=raw["component"],
        kind=raw["kind"],
        text=raw["text"],
        at=iso(raw["at"]),
    )


def run(raw: Mapping[str, Any]) -> RunShape:
    """Returns a run with the rungs of its runbook and the results of its steps."""
    return RunShape(**run_fields(raw))


def run_fields(raw: Mapping[str, Any]) -> Json:
    """Returns the fields of a run."""
    runbook = raw["runbook"]
    return {
        "id": raw["id"],
        "incident": raw["incident"],
        "runbook": runbook["name"],
        "summary": told(runbook["summary"]),
        "pack": raw["pack"],
        "state": raw["state"],
        "why": told(raw["why"]),
        "scope": raw["scope"],
        "node": raw["node"],
        "started_at": iso(raw["started_at"]),
        "ended_at": iso(raw["ended_at"]),
        "rung": raw["rung"] + 1,
        "rungs": [
            RungShape(name=rung["name"], do=rung["do"], params=rung["params"]) for rung in runbook["rungs"]
        ],
        "approved_by": (raw["approved"] or {}).get("who", ""),
        "until": iso(raw["deadline"]) if raw["state"] in _UNTIL_THEN else None,
        "steps": [step(raw, item) for item in raw["steps"]],
    }


def step(run: Mapping[str, Any], raw: Mapping[str, Any]) -> StepShape:
    """Returns one attempt of one rung."""
    return StepShape(
        id=raw["id"],
        rung=raw["rung"],
        action=raw["action"],
        params={
            name: told(one) if name == "text" and isinstance(one, str) else one
            for name, one in raw["params"].items()
        },
        outcome=raw["outcome"],
        why=told(raw["why"]),
        verified=raw["verified"],
        doing=told(raw["doing"]),
        at=iso(raw["at"]),
        evidence=bundle(run, raw),
    )


def bundle(run: Mapping[str, Any], step: Mapping[str, Any]) -> str:
    """Returns the name of the evidence bundle that a step made; empty: none."""
    made = step["action"] == "evidence.collect" and step["outcome"] == Outcome.OK.value
    return subjects.bundle(run["node"], step["id"]) if made else ""


def note(raw: Mapping[str, Any]) -> NoteShape:
    """Returns a note."""
    return NoteShape(
        id=raw["id"],
        kind=raw["kind"],
        text=told_note(raw["kind"], raw["text"]),
        incident=raw["incident"],
        run=raw["run"],
        scope=raw["scope"],
        caused_by=raw["caused_by"],
        who=str(raw["data"].get("who", "")),
        data=raw["data"],
        at=iso(raw["at"]),
    )


def holds(state: State) -> list[HoldShape]:
    """Returns the holds in force."""
    return [hold(one) for one in state.holds.values()]


def hold(raw: Hold) -> HoldShape:
    """Returns a hold in force."""
    return HoldShape(
        id=raw.id,
        scope=raw.scope,
        who=raw.who,
        why=raw.why,
        since=iso(raw.since),
        until=iso(raw.until),
    )


def modes(state: State) -> list[ModeShape]:
    """Returns the modes in force, weakest first: those of the configuration, then those that operators and gpuward have set."""
    settings = state.pack.settings.modes if state.pack else ()
    site = [
        ModeShape(runbook=one.runbook, nodes=one.nodes, mode=one.mode.value, who="", why="")
        for one in settings
    ]
    operators = [
        ModeShape(runbook=one.runbook, nodes=one.nodes, mode=one.mode, who=one.who, why=told(one.why))
        for one in state.modes
    ]
    return site + operators
