"""The shipped runbooks on simulated machines: a part that is quiet after its reset, and not well."""

import pytest

from brain.core.inputs import NodeState
from simulations.changes import FaultBegins, after
from simulations.faults import Fault
from tests.simulations.stories import DRILL_AT_S, FAULTY, done, world

WEAK = Fault(name="weak", component="gpu/0000:1b:00", fixes=())  # nothing reports it, and only people mend it


@pytest.mark.parametrize("drill", ["gpu-needs-reset", "gpu-missing", "driver-hung", "nvlink-down"])
def test_a_gpu_that_is_weak_after_its_remedy_does_not_return(drill: str) -> None:
    """Its symptoms are gone, and the tests find it: the node stays drained, and people are paged."""
    made = world()
    made.inject(drill, FAULTY, at_s=DRILL_AT_S)
    made.machines[FAULTY].apply([after(0, FaultBegins(fault=WEAK))], made.start + DRILL_AT_S)
    timeline = made.run(3600)
    assert "gpu.links_check" in done(timeline)
    assert "scheduler.resume" not in done(timeline)
    assert made.machines[FAULTY].state.drain_reason
    assert timeline.pages
    assert {
        step.action for run in timeline.runs.values() for step in run.steps if step.outcome == "failed"
    } >= {"gpu.links_check"}


def test_repaired_nodes_are_compared_with_what_inspections_measured() -> None:
    """Figures of all nodes that were tested; the way back of one adds its own."""
    made = world()
    for number in range(1, 8):
        node = f"sim-{number:02}"
        made.timeline.feed(NodeState(id=f"here:{node}", node=node, alive=True), made.start + number * 60)
        made.command("start", at_s=number * 60 + 1, runbook="accept-node", node=node)
        made.run(number * 60 + 59)
    made.inject("gpu-needs-reset", "sim-09", at_s=900)
    timeline = made.run(2400)
    assert done(timeline).count("scheduler.resume") == 8
    notes = [note.text for note in timeline.notes if note.kind == "step.figures"]
    assert "all_reduce.bus_gb_per_s 370 (median of 7 peers 370)" in notes
