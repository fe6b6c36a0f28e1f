"""The JSON of the API: stable names for scripts, made from the engine's fields. Times are ISO 8601 UTC."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from agent.contract import subjects
from agent.contract.commands import Outcome
from brain.core.state import IncidentState, State

Json = dict[str, Any]


def iso(at: float) -> str | None:
    """Formats seconds since 1970 as `2026-01-31T12:00:00.123Z`; None for 0 (not yet)."""
    if not at:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def incident(raw: Mapping[str, Any]) -> Json:
    """Returns an incident."""
    pages = raw["pages"]
    return {
        "id": raw["id"],
        "state": raw["state"],
        "severity": raw["severity"],
        "cause": raw["cause"],
        "scope": raw["scope"],
        "node": raw["node"],
        "nodes": raw["nodes"],
        "opened_at": iso(raw["opened_at"]),
        "closed_at": iso(raw["closed_at"]),
        "closed_why": raw["closed_why"],
        "rule": raw["rule"],
        "because": raw["because"],
        "pack": raw["pack"],
        "runbook": raw["runbook"],
        "runs": raw["runs"],
        "symptoms": raw["symptoms"],
        "symptom_count": raw["symptom_count"],
        "evidence": [evidence(item) for item in raw["evidence"]],
        "explains": raw["explains"],
        "explained_by": raw["explained_by"],
        "stale": raw["stale"],
        "waits": raw.get("waits", "") if raw["state"] == IncidentState.SETTLING else "",
        "pages": {
            "sent": pages["sent"],
            "first_at": iso(pages["first_at"]),
            "acked_by": pages["acked_by"],
            "resolved": pages["resolved"],
            "undelivered": list(pages["waiting"]),
        },
    }


def evidence(raw: Mapping[str, Any]) -> Json:
    """Returns one event of the evidence of an incident."""
    return {key: raw[key] for key in ("id", "node", "component", "kind", "text")} | {"at": iso(raw["at"])}


def run(raw: Mapping[str, Any]) -> Json:
    """Returns a run with the rungs of its runbook and the results of its steps."""
    runbook = raw["runbook"]
    return {
        "id": raw["id"],
        "incident": raw["incident"],
        "runbook": runbook["name"],
        "summary": runbook["summary"],
        "pack": raw["pack"],
        "state": raw["state"],
        "why": raw["why"],
        "scope": raw["scope"],
        "node": raw["node"],
        "started_at": iso(raw["started_at"]),
        "ended_at": iso(raw["ended_at"]),
        "rung": raw["rung"] + 1,
        "rungs": [
            {"name": rung["name"], "do": rung["do"], "params": rung["params"]} for rung in runbook["rungs"]
        ],
        "approved_by": (raw["approved"] or {}).get("who", ""),
        "steps": [step(item) | {"evidence": bundle(raw, item)} for item in raw["steps"]],
    }


def step(raw: Mapping[str, Any]) -> Json:
    """Returns one attempt of one rung. `outcome` is empty while it is under way; `doing` is its newest progress."""
    keys = ("id", "rung", "action", "params", "outcome", "why", "verified", "doing")
    return {key: raw[key] for key in keys} | {"at": iso(raw["at"])}


def bundle(run: Mapping[str, Any], step: Mapping[str, Any]) -> str:
    """Returns the name of the evidence bundle that a step made; empty: none."""
    made = step["action"] == "evidence.collect" and step["outcome"] == Outcome.OK.value
    return subjects.bundle(run["node"], step["id"]) if made else ""


def note(raw: Mapping[str, Any]) -> Json:
    """Returns a note."""
    keys = ("id", "kind", "text", "incident", "run", "scope", "caused_by", "data")
    return {key: raw[key] for key in keys} | {"at": iso(raw["at"])}


def holds(state: State) -> list[Json]:
    """Returns the holds in force."""
    return [
        {
            "id": hold.id,
            "scope": hold.scope,
            "who": hold.who,
            "why": hold.why,
            "since": iso(hold.since),
            "until": iso(hold.until),
        }
        for hold in state.holds.values()
    ]


def modes(state: State) -> list[Json]:
    """Returns the modes in force, weakest first: those of the configuration, then those that operators have set."""
    settings = state.pack.settings.modes if state.pack else ()
    site = [
        {"runbook": one.runbook, "nodes": one.nodes, "mode": one.mode.value, "who": ""} for one in settings
    ]
    operators = [
        {"runbook": one.runbook, "nodes": one.nodes, "mode": one.mode, "who": one.who} for one in state.modes
    ]
    return site + operators
