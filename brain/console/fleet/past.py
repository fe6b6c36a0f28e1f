"""The fleet at a past time, as the history tells it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agent.contract.commands import Outcome
from brain.console.brain_view import History
from brain.console.fleet.facts import Facts, OpenIncident
from brain.core.pack.actions import ACTIONS
from brain.core.pack.vocabulary import NODE_UNREACHABLE
from brain.core.state import IncidentState, RunState

MOST = 5000  # incidents, the newest
_STATES = tuple(f"incident.{state.value}" for state in IncidentState)
_RUNS = tuple(f"run.{state.value}" for state in RunState)
_ASKS = f"run.{RunState.APPROVAL.value}"
_KEPT = "drain.kept"
Json = Mapping[str, Any]


def at(today: Facts, history: History, when: float, pause: Callable[[], None]) -> Facts:
    """Returns the facts of a time (seconds since 1970). Nodes, places and what nodes told are those of `today`."""
    incidents = []
    drained = set()
    for raw in history.incidents_at(when, MOST):
        pause()
        state = history.last_kind(raw["id"], when, _STATES).partition(".")[2] or IncidentState.OPEN.value
        nodes = (raw["node"],) if raw["node"] else tuple(raw["affected"])
        incidents.append(
            OpenIncident(
                id=raw["id"],
                severity=raw["severity"],
                state=state,
                cause=raw["cause"],
                scope=raw["scope"],
                nodes=nodes,
                asks=history.last_kind(raw["id"], when, _RUNS) == _ASKS,
                silence=state != IncidentState.RECOVERED
                and any(fact["kind"] == NODE_UNREACHABLE for fact in raw["evidence"]),
            )
        )
        if raw["node"] and (_drained(history, raw, when) or history.last_kind(raw["id"], when, (_KEPT,))):
            drained.add(raw["node"])
    return replace(
        today,
        at=when,
        # which were heard then, only incidents tell
        nodes=dict.fromkeys(today.nodes, True),
        incidents=incidents,
        drained=frozenset(drained),
        held=history.holds_at(when),
        agents={},
        jobs={},
    )


def _drained(history: History, incident: Json, when: float) -> bool:
    """Did its steps keep the node out of service then? A drain has an owner that is open (law 14)."""
    out = False
    for run in history.runs_of(incident["id"]):
        for step in run["steps"]:
            spec = ACTIONS.get(step["action"])
            if spec is None or step["at"] > when or step["outcome"] != Outcome.OK:
                continue
            out = (out or spec.drains) and not spec.returns
    return out
