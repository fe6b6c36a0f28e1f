"""What the scheduler says that runs on a node: asked for by a gate, good for a moment, forgotten then."""

from brain.core import runs
from brain.core.inputs import JobsTold
from brain.core.state import NodeJobs, RunState
from brain.core.turn import Turn

FRESH_S = 60.0


def told(turn: Turn, given: JobsTold) -> None:
    """The scheduler's answer; whoever waits for it asks its gates again."""
    turn.state.jobs[given.node] = NodeJobs(
        at=turn.now, known=given.known, jobs=list(given.jobs), protected=given.protected, why=given.why
    )
    turn.set_timer(f"jobs:{given.node}", turn.now + FRESH_S)
    for run in list(turn.state.runs.values()):
        if run.node == given.node and run.state in (RunState.HELD, RunState.APPROVAL):
            runs.proceed(turn, run)
