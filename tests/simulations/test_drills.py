"""Every drill, with the rules and runbooks that gpuward ships, in virtual time."""

import functools

import pytest

from brain.core.inputs import NodeState
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Mode
from brain.core.state import RunState
from simulations.drills import DRILLS
from simulations.virtual_time import Simulator
from tests.shipped import shipped_pack
from tests.simulations.stories import (
    FAULTY,
    NODES,
    ON_APPROVAL,
    REQUESTS,
    STORIES,
    done,
    happened,
    played,
    world,
)

once = functools.cache(played)  # most tests look at the same play


@pytest.mark.parametrize("drill", list(STORIES))
def test_every_drill_tells_its_story(drill: str) -> None:
    """One incident that people see, with the right cause and end, and no steps but those of its runbook."""
    assert happened(once(drill).timeline) == [STORIES[drill]]
    assert DRILLS[drill].heals == (STORIES[drill][1] == "closed")


@pytest.mark.parametrize("drill", [name for name, row in STORIES.items() if "scheduler.resume" in row[2]])
def test_what_was_healed_is_healthy_and_back_in_service(drill: str) -> None:
    """No fault is left on the simulated machine itself, and the scheduler gives it jobs again."""
    machine = once(drill).machines[FAULTY]
    assert machine.healthy()
    assert machine.state.drain_reason == ""


def test_a_node_whose_gpu_is_dead_is_drained_and_stays_off() -> None:
    """That it is unreachable is our own doing: no incident of its own."""
    made = once("gpu-dead")
    state = made.machines[FAULTY].state
    assert state.off
    assert state.drain_reason.startswith("gpuward")
    assert [one.cause for one in made.timeline.incidents.values() if one.state != "settling"] == ["gpu-lost"]


TICKETS = {
    "dcgm-blind",
    "dcgm-power-unreadable",
    "dcgm-processor-hot",
    "dcgm-unknown",
    "dirty-fibre",
    "gpu-pages-near",
    "npu-heartbeat",
    "npu-unknown-fault",
}  # people do what is to be done, and no runbook


def test_in_observe_mode_nothing_is_done() -> None:
    """All drills of single nodes, as many at a time as there are nodes: each has a run, and no run performs an action."""
    single = [name for name, drill in DRILLS.items() if drill.breaks and drill.nodes == "one"]
    for first in range(0, len(single), len(NODES)):
        drills = single[first : first + len(NODES)]
        made = world(Mode.OBSERVE)
        apart = enumerate(zip(drills, list(NODES)[: len(drills)], strict=True))
        for number, (drill, node) in apart:  # at once, two nodes of one leaf would wait for each other
            made.inject(drill, node, at_s=30 + 300 * number)
        timeline = made.run(300 * len(drills) + 900)
        assert len({run.node for run in timeline.runs.values()}) == len(set(drills) - TICKETS)
        assert not set(done(timeline)) & set(ACTIONS)


def requested(name: str) -> Simulator:
    """An operator starts a runbook on a healthy node."""
    made = world()
    made.timeline.feed(NodeState(id="here", node=FAULTY, alive=True), made.start + 1)
    made.run(30)
    pack = shipped_pack()
    (runbook,) = [runbook for runbook in pack.runbooks if runbook.name == name]
    where = {"fabric": "default"} if runbook.scope == "fabric" else {"node": FAULTY}
    made.command("start", at_s=30, runbook=name, **where)
    made.run(120)
    return made


@pytest.mark.parametrize("runbook", list(REQUESTS))
def test_what_people_may_start_is_done_and_leaves_the_node_as_it_was(runbook: str) -> None:
    """One closed incident, no page."""
    made = requested(runbook)
    assert [(one.state.value, one.pages.sent) for one in made.timeline.incidents.values()] == [("closed", 0)]
    assert done(made.timeline) == REQUESTS[runbook]
    assert made.machines[FAULTY].healthy()


@pytest.mark.parametrize("runbook", list(ON_APPROVAL))
def test_what_endangers_hardware_is_switched_off_by_an_approval_only(runbook: str) -> None:
    """In automatic mode, too: it waits for it however long; then the node is drained and off."""
    made = requested(runbook)
    timeline = made.run(900)
    assert not made.machines[FAULTY].state.off
    (run,) = timeline.runs.values()
    assert (run.state, done(timeline)) == (RunState.APPROVAL, [])
    made.command("approve", at_s=900, id=run.id)
    assert done(made.run(1500)) == ON_APPROVAL[runbook]
    assert made.machines[FAULTY].state.off
    assert made.machines[FAULTY].state.drain_reason.startswith("gpuward")


def test_every_runbook_is_rehearsed_by_a_drill() -> None:
    """Law of coverage: no runbook is shipped that was never rehearsed with the rules that lead to it."""
    rehearsed = {run.runbook.name for drill in STORIES for run in once(drill).timeline.runs.values()}
    pack = shipped_pack()
    left = [
        runbook.name for runbook in pack.runbooks if runbook.name not in rehearsed | {*REQUESTS, *ON_APPROVAL}
    ]
    rules = {name: [rule.name for rule in pack.rules if rule.runbook == name] for name in left}
    lines = [
        f"runbooks/{name}.yaml is not rehearsed. In simulations/drills/<area>.py add to DRILLS a drill whose symptoms make "
        f"one of its rules match: {', '.join(rules[name]) or 'none leads to it'}"
        for name in left
    ]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def test_every_action_of_a_runbook_is_rehearsed() -> None:
    """Every action of every rung is taken in some drill or request."""
    pack = shipped_pack()
    wanted = {rung.do for runbook in pack.runbooks for rung in (*runbook.rungs, *runbook.return_to_service)}
    taken = {action for drill in STORIES for action in done(once(drill).timeline)}
    taken |= {action for actions in (*REQUESTS.values(), *ON_APPROVAL.values()) for action in actions}
    assert wanted - taken == set()
