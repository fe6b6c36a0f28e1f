"""Every drill, with the rules and runbooks that gpuward comes with, in simulated time."""

import functools

import pytest

from brain.adapters import pack as packs
from brain.core.actions import ACTIONS
from brain.core.inputs import NodeState, Said
from brain.core.spec import Mode
from simulations.clockwork import Clockwork
from simulations.faults import FAULTS
from tests.simulations.stories import NODES, REQUESTS, ROOT, SICK, STORIES, done, played, world

once = functools.cache(played)  # most tests look at the same play


@pytest.mark.parametrize("fault", list(STORIES))
def test_every_drill_tells_its_story(fault: str) -> None:
    """One incident that people hear of, with the right cause and end, and no step but those of its runbook."""
    cause, end, actions = STORIES[fault]
    timeline = once(fault).timeline
    told = [
        one
        for one in timeline.incidents.values()
        if one.state.value != "explained" and (one.pages.sent or one.runs)
    ]
    assert [(one.cause, one.state.value) for one in told] == [(cause, end)]
    assert done(timeline) == actions
    assert FAULTS[fault].heals == (end == "closed")


def test_every_drill_has_a_story() -> None:
    """A new fault needs one; `repair` is none."""
    assert set(STORIES) == {name for name, fault in FAULTS.items() if fault.breaks}


@pytest.mark.parametrize("fault", [name for name, story in STORIES.items() if "scheduler.resume" in story[2]])
def test_what_was_healed_is_really_well_and_back_in_service(fault: str) -> None:
    """The simulated machine itself has nothing left, and the scheduler gives it jobs again."""
    machine = once(fault).machines[SICK]
    assert machine.healthy()
    assert machine.drained == ""


def test_a_node_whose_gpu_is_dead_is_drained_and_off_and_nobody_wakes_it() -> None:
    """Its silence is our own work: no incident of its own."""
    made = once("gpu-dead")
    machine = made.machines[SICK]
    assert machine.off
    assert machine.drained.startswith("gpuward")
    assert [one.cause for one in made.timeline.incidents.values() if one.state != "settling"] == ["gpu-lost"]


def test_in_observe_mode_nothing_is_done() -> None:
    """Twelve faults on twelve nodes at once, then the others: machines keep them, what would have been done is noted."""
    single = [name for name, fault in FAULTS.items() if fault.breaks and fault.nodes == "one"]
    for faults in (single[:12], single[12:24], single[24:]):
        made = world(Mode.OBSERVE)
        for fault, node in zip(faults, list(NODES)[: len(faults)], strict=True):
            made.inject(fault, node, at_s=30)
        timeline = made.run(900)
        assert len({run.node for run in timeline.runs.values()}) == len(faults)
        assert not set(done(timeline)) & set(ACTIONS)


def requested(runbook: str) -> Clockwork:
    """A person asks for it on a node that is well."""
    made = world()
    made.timeline.feed(NodeState(id="here", node=SICK, alive=True), made.start + 1)
    made.run(30)
    pack = packs.load(ROOT / "rules", ROOT / "runbooks")
    (book,) = [book for book in pack.runbooks if book.name == runbook]
    where = {"fabric": "default"} if book.scope == "fabric" else {"node": SICK}
    word = Said(id="start", who="ann", verb="start", args={"runbook": runbook, **where})
    made.timeline.feed(word, made.start + 30)
    made.run(120)
    return made


@pytest.mark.parametrize("runbook", list(REQUESTS))
def test_what_people_may_start_is_done_and_leaves_the_node_as_it_was(runbook: str) -> None:
    """One closed incident, nobody paged."""
    made = requested(runbook)
    assert [(one.state.value, one.pages.sent) for one in made.timeline.incidents.values()] == [("closed", 0)]
    assert done(made.timeline) == REQUESTS[runbook]
    assert made.machines[SICK].healthy()


def test_every_runbook_stands_in_a_drill() -> None:
    """Law of coverage: no remedy is let loose that was never rehearsed with the rules that lead to it."""
    rehearsed = {run.runbook.name for fault in STORIES for run in once(fault).timeline.runs.values()} | set(
        REQUESTS
    )
    pack = packs.load(ROOT / "rules", ROOT / "runbooks")
    assert {runbook.name for runbook in pack.runbooks} <= rehearsed


def test_every_action_that_a_runbook_takes_has_been_taken() -> None:
    """And every rung was taken at least once in some drill, or a gentler one always helped before it."""
    pack = packs.load(ROOT / "rules", ROOT / "runbooks")
    wanted = {rung.do for book in pack.runbooks for rung in (*book.rungs, *book.way_back)}
    taken = {action for fault in STORIES for action in done(once(fault).timeline)}
    taken |= {action for actions in REQUESTS.values() for action in actions}
    assert wanted - taken == set()
