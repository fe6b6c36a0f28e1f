"""Fault → healed, measured: the shipped rules and runbooks, unchanged, over real counterparts.

    whole.wait_for(...)                       # the node is well and the brain knows it
    began = time.time(); break_it()
    healing = healed(whole, "mtu-drift", component="link/va", began=began, within_s=60)
    assert healing.actions == ("mtu.set",)

Every healing that a test saw is written as a line of JSON to the file that GPUWARD_HEALINGS names, for
`python -m tests.benchmarks healing`.
"""

import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.e2e.stack import Stack

OVER = ("succeeded", "exhausted", "cancelled", "observed")  # brain/core/healing/runs.py
AUTO = '[[modes]]\nmode = "auto"\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Healing:
    """One fault and its remedy; all times in seconds after the fault."""

    counterpart: str  # what was really there, e.g. "systemd in a container"
    cause: str
    actions: tuple[
        str, ...
    ]  # the steps that were taken, in order; those that the node or the site refused left out
    opened_s: float  # the incident
    first_step_s: float
    remedied_s: float  # the last step of the ladder began and its result came: the remedy is done
    verified_s: (
        float  # the run has succeeded, return to service included: what its verifications waited for is in it
    )


def healed(
    whole: Stack,
    cause: str,
    *,
    component: str,
    counterpart: str,
    began: float,
    within_s: float,
    ends: str = "succeeded",
) -> Healing:
    """Waits until the last run of the incident of this cause at this component has ended; fails unless it worked.

    `began`: the wall clock (time.time()) at the fault; an incident that was opened before it is another one. `ends`:
    `exhausted` where the right end is a person's.
    """
    path = component.partition("/")[2]

    def over() -> dict[str, Any]:
        for one in whole.incidents(cause, over=True):
            if one["runs"] and _at(one["opened_at"]) >= began - 0.001 and one["scope"].endswith(path):
                told: dict[str, Any] = whole.get(f"/api/v1/explain/{one['id']}")
                if told and told["runs"][-1]["state"] in OVER:
                    return told
        return {}

    told = whole.wait_for(over, f"{cause} at {component} is healed", within_s=within_s)
    incident, run = told["incident"], told["runs"][-1]
    assert run["state"] == ends, json.dumps(told["runs"], indent=1)[:6000]
    taken = [step for one in told["runs"] for step in one["steps"] if step["outcome"] not in ("refused", "")]
    results = [note["at"] for one in told["runs"] for note in _ladder(one) if note["kind"] == "step.result"]
    healing = Healing(
        counterpart=counterpart,
        cause=cause,
        actions=tuple(step["action"] for step in taken),
        opened_s=_at(incident["opened_at"]) - began,
        first_step_s=min(_at(step["at"]) for step in taken) - began,
        remedied_s=max(map(_at, results)) - began,
        verified_s=_at(run["ended_at"]) - began,
    )
    _keep(healing)
    return healing


def _ladder(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The run's notes until its return to service begins."""
    return itertools.takewhile(lambda note: note["kind"] != "run.returning", run["notes"])


def _at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _keep(healing: Healing) -> None:
    path = os.environ.get("GPUWARD_HEALINGS")
    if path:
        with Path(path).open("a") as sink:
            sink.write(json.dumps(asdict(healing)) + "\n")
