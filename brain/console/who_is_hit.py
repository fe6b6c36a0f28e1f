"""Who is hit by an incident, for the API: put together from what the history keeps of it."""

from typing import Any

from pydantic import TypeAdapter

from brain.console import shapes, speech
from brain.console.api.hit_shapes import HitJobShape, HitShape
from brain.console.api.incident_shapes import IncidentShape
from brain.core import hit_words
from brain.core.state import HitNode, RunState, State

_HIT: TypeAdapter[dict[str, HitNode]] = TypeAdapter(dict[str, HitNode])


def told(raw: dict[str, Any], state: State) -> HitShape:
    """Returns who is hit by an incident of the history; an earlier version wrote nothing of that."""
    kept = raw.get("hit") or {}
    asks = state.pack is not None and state.pack.settings.ask_who_is_hit
    now = hit_words.standing(_HIT.validate_python(kept), asks=asks)
    return HitShape(
        known=now.known.value,
        why=speech.told(now.why),
        since=shapes.iso(now.since),
        at=shapes.iso(now.at),
        asked=now.asked,
        answered=now.answered,
        left_out=max(0, raw["nodes"] - now.asked) if now.asked else 0,
        jobs=[_job(line) for line in now.jobs],
        more_jobs=now.unlisted,
    )


def whole(raw: dict[str, Any], state: State) -> IncidentShape:
    """Returns an incident with who is hit by it."""
    return shapes.incident(raw, _asks(raw, state)).model_copy(update={"hit": told(raw, state)})


def _asks(raw: dict[str, Any], state: State) -> str:
    """Its run that waits for an approval; empty: none."""
    runs = (state.runs.get(id_) for id_ in raw["runs"])
    return next((run.id for run in runs if run is not None and run.state is RunState.APPROVAL), "")


def _job(line: hit_words.HitLine) -> HitJobShape:
    job = line.job
    return HitJobShape(
        id=job.id,
        name=job.name,
        user=job.user,
        nodes=job.nodes,
        here=len(line.on),
        on=list(line.on),
        gpus=line.gpus,
        since=shapes.iso(line.since),
        gone_at=shapes.iso(line.gone_at),
        text=speech.told(hit_words.sentence(line)),
    )
