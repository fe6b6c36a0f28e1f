"""Fault → healed for every drill: real rules, runbooks, gates and verifications, simulated machines and time.

What a remedy takes is mostly what its verification waits for (a port must stay quiet for minutes, a node must boot).
The way from the fault to the first command is measured for real by `latency`; remedies over real
counterparts are measured by `healing`.
"""

from brain.core.state import RunState
from tests.benchmarks.figures import Figure
from tests.simulations.stories import STORIES, played

FAULT_AT_S = 30.0  # as in tests/simulations/stories.py


def run() -> list[Figure]:
    """One figure for each drill that is healed by steps: seconds from the fault, and what was done."""
    figures = []
    for fault, (cause, end, actions) in STORIES.items():
        if end != "closed" or not actions:
            continue
        made = played(fault)
        began = made.start + FAULT_AT_S
        (incident,) = [one for one in made.timeline.incidents.values() if one.cause == cause]
        runs = [made.timeline.runs[name] for name in incident.runs]
        if not runs or runs[-1].state is not RunState.SUCCEEDED:
            continue  # it ended by itself, or people were told
        first = min((step.at for run in runs for step in run.steps), default=incident.opened_at)
        ended = max((run.ended_at for run in runs), default=incident.closed_at)
        figures.append(
            Figure(
                what=f"{fault} ({cause})",
                value=f"first step after {first - began:.0f} s, healed and verified after {ended - began:.0f} s",
                beside=", ".join(actions),
            )
        )
    return figures
