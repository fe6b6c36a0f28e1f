"""What became of a fault against which a runbook would have acted, or has asked to: what people did, and how it ended. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agent.contract.actions.spec import ActionSpec, Disrupts
from agent.contract.commands import Outcome
from agent.contract.counted import span
from brain.core.pack.actions import ACTIONS
from brain.core.state import IncidentState, RunState

Json = Mapping[str, Any]
How = Literal["same", "people", "itself", "explained", "open"]
OURS_S = (
    3600.0  # a node that starts anew so soon after a step of ours that takes it away does so because of it
)
_SAID = {
    "operator.start": "started a runbook",
    "operator.return": "gave the node back",
    "run.cancelled": "said no",
    "incident.closed": "closed it",
    "operator.hold": "set a hold",
}
_KEPT_OUT = "kept_out"  # the gate that saw a drain of somebody else


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCase:
    """One fault and the first run that was planned for it."""

    run: Json
    incident: Json
    # the first rung of the plan that disrupts something and is to heal, else that disrupts something; empty: none
    rung: str
    stopped: Sequence[str]
    how: How
    did: str
    after_s: float | None
    # people agreed to a run of it, and whether that healed it
    approved: bool
    healed: bool


def planned(run: Json) -> bool:
    """Whether the run is one that the mode kept from acting by itself, and that a fault led to."""
    return not run["requested_by"] and (
        run["state"] == RunState.OBSERVED or bool(run["wanted"]) or bool(run["approved"])
    )


def case(
    run: Json,
    runs: Sequence[Json],
    incident: Json,
    boots: Iterable[float],
    notes: Sequence[Json],
    stopped: Sequence[str],
    now: float,
) -> PlannedCase:
    """Judges one. `runs`: all of the incident. `boots`: when its node started anew, not because of us. `notes`: what people said
    about it or its node; both between the beginning of the run and the end of the incident.
    """
    began = run["started_at"]
    approved = [one for one in runs if one["approved"]]
    rungs = list(_disruptive(run))
    heals = any(spec.heals for _, spec in rungs)
    ended = _ended_at(incident)
    acts = sorted(_acts(notes, approved, boots if heals else (), began))
    same = [act for act in acts if act[1] in ("agreed", "the node started anew", _SAID["operator.start"])]
    drained = _KEPT_OUT in stopped
    how: How
    if incident["state"] == IncidentState.EXPLAINED:
        how = "explained"
    elif same or (drained and any(spec.drains for _, spec in rungs)):
        how = "same"
    elif acts or drained or incident["vouched_by"] or incident["pages"]["acked_by"]:
        how = "people"
    else:
        how = "open" if ended is None else "itself"
    first = (same or acts)[:1]
    did = [f"{what} after {span(max(0.0, at - began))}" for at, what in first]
    if drained:
        did.append("somebody else had drained the node")
    if not did and incident["pages"]["acked_by"]:
        did.append(f"{incident['pages']['acked_by']} acknowledged it")
    at = first[0][0] if first else ended
    healing = [spec for spec in rungs if spec[1].heals]
    return PlannedCase(
        run=run,
        incident=incident,
        rung=next((name for name, _ in (*healing, *rungs)), ""),
        stopped=[gate for gate in stopped if gate != _KEPT_OUT],
        how=how,
        did="; ".join(did),
        after_s=None if at is None else round(max(0.0, min(at, now) - began), 3),
        approved=bool(approved),
        healed=any(one["state"] == RunState.SUCCEEDED for one in approved),
    )


def _ended_at(incident: Json) -> float | None:
    """When the fault went, or its incident was closed; None: it is there."""
    if incident["state"] in (IncidentState.RECOVERED, IncidentState.CLOSED):
        return float(incident["clear_since"] or incident["closed_at"])
    return float(incident["closed_at"]) if incident["closed_at"] else None


def _acts(
    notes: Iterable[Json], approved: Iterable[Json], boots: Iterable[float], began: float
) -> Iterator[tuple[float, str]]:
    for note in notes:
        if note["kind"] in _SAID:
            yield note["at"], _SAID[note["kind"]]
        elif note["kind"] == "operator.approve":
            yield note["at"], "agreed"
    for run in approved:
        yield max(began, run["started_at"]), "agreed"
    for at in boots:
        yield at, "the node started anew"


def _disruptive(run: Json) -> Iterator[tuple[str, ActionSpec]]:
    """The rungs of the plan that disrupt something; of a run that was not planned step by step, those of the whole ladder."""
    asked = {int(step.rpartition(".s")[2].partition(".")[0]) for step in run["asked"] if ".s" in step}
    for number, rung in enumerate(run["runbook"]["rungs"], 1):
        spec = ACTIONS.get(rung["do"])
        if spec is None or (asked and number not in asked):
            continue
        if spec.disrupts is not Disrupts.NOTHING or rung["disrupts"] not in (None, Disrupts.NOTHING):
            yield rung["name"], spec


def by_us(boot: float, runs: Iterable[Json]) -> bool:
    """Whether a node that started anew did so because of one of these runs."""
    for run in runs:
        for step in run["steps"]:
            spec = ACTIONS.get(step["action"])
            away = spec is not None and spec.takes_node_away
            done = step["outcome"] not in (Outcome.REFUSED, Outcome.UNREACHABLE, "withdrawn")
            if away and done and step["at"] <= boot <= step["at"] + OURS_S:
                return True
    return False
