"""From fault to healed for every drill: real rules, runbooks, gates and verifications, simulated machines, virtual time.

Most of the time is what a verification waits for (minutes without an error on a port, the boot of a node). `latency`
measures the time from a fault to the first command on real processes, `healing` remedies with real counterparts.
"""

from brain.core.state import RunState
from tests.benchmarks.figures import Figure
from tests.simulations.stories import DRILL_AT_S, STORIES, played


def run() -> list[Figure]:
    """One figure for each drill that steps heal: seconds from the fault, and the steps."""
    figures = []
    for drill, (cause, end, actions) in STORIES.items():
        if end != "closed" or not actions:
            continue
        made = played(drill)
        began = made.start + DRILL_AT_S
        (incident,) = [one for one in made.timeline.incidents.values() if one.cause == cause]
        runs = [made.timeline.runs[name] for name in incident.runs]
        if not runs or runs[-1].state is not RunState.SUCCEEDED:
            continue  # it ended by itself, or went to a person
        first = min((step.at for run in runs for step in run.steps), default=incident.opened_at)
        ended = max((run.ended_at for run in runs), default=incident.closed_at)
        figures.append(
            Figure(
                what=f"{drill} ({cause})",
                value=f"first step after {first - began:.0f} s, healed and verified after {ended - began:.0f} s",
                beside=", ".join(actions),
            )
        )
    return figures
