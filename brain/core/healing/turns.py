"""Whose turn it is, of the runs that a gate holds, when something has changed that may let them go on."""

from collections import Counter

from brain.core.context import Context
from brain.core.healing import limits, runs
from brain.core.state import Run, RunState


def wake_held(ctx: Context) -> None:
    """Judges the held runs anew, one after the other: what one takes the next does not get."""
    for run in _held(ctx):
        if run.state is RunState.HELD and run.id in ctx.state.runs:
            runs.proceed(ctx, run)


def _held(ctx: Context) -> list[Run]:
    """The runs held by a gate, in the order in which they may try again: most severe first, then oldest first.

    Those of nodes that were disturbed less often lately come before: many faults of one node are no longer queue.
    """
    held = [run for run in ctx.state.runs.values() if run.state is RunState.HELD]
    lately = Counter(each.node for each in limits.began_lately(ctx))
    return sorted(
        held,
        key=lambda run: (ctx.state.incidents[run.incident].severity, lately[run.node], run.started_at),
    )
