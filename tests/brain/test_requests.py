"""Runs without a fault, started by operators and schedules; and the gates for jobs, maintenance windows and the breaker."""

from dataclasses import replace
from typing import Any

import pytest

from agent.contract.commands import Outcome
from brain.core.effects import AskJobs, Effect, Perform
from brain.core.inputs import Input, JobsAnswer, OperatorCommand, PackLoaded
from brain.core.pack.spec import Mode, Pack, Place, Runbook, Rung, Window
from brain.core.state import IncidentState, RunState
from tests.brain.test_return_to_service import World
from tests.brain.world import Story, pack

INSPECT = Runbook(
    name="inspect",
    summary="look at an idle node",
    rungs=(
        Rung(name="drain", do="scheduler.drain", params={"then": "undo"}, on_failure="stop"),
        Rung(name="diagnose", do="gpu.diagnose", params={"level": 2}, on_failure="stop"),
    ),
    return_to_service=(Rung(name="resume", do="scheduler.resume"),),
    request=True,
)
RETURN = Runbook(
    name="return-node",
    summary="take our drain off",
    rungs=(Rung(name="resume", do="scheduler.resume"),),
    request=True,
)


def with_books(*books: Runbook, mode: Mode = Mode.AUTO, **settings: Any) -> Pack:
    """The small pack and these runbooks."""
    plain = pack(mode, **settings)
    return replace(plain, runbooks=(*plain.runbooks, *books))


def known(story: Story, *nodes: str) -> None:
    """The nodes send their first event."""
    for node in nodes:
        story.event(0.5, "agent.started", "node", node)
    story.run(0.6)


def test_an_operator_starts_a_runbook_and_the_node_returns_to_service_after_it() -> None:
    """All steps done: return to service, success, and a closed incident that names who asked."""
    story = World(with_books(INSPECT))
    known(story, "n1")
    story.say(1, "start", runbook="inspect", node="n1", why="new cable")
    story.run(30)
    assert [action for _, action in story.actions()] == [
        "scheduler.drain",
        "gpu.diagnose",
        "scheduler.resume",
    ]
    (incident,) = story.incidents("request-inspect")
    assert incident.state == "closed"
    assert incident.because == "ann asked for it: new cable"


def test_an_inspection_that_finds_something_leaves_the_node_out_of_service() -> None:
    """The diagnosis fails: no resume, and people are paged."""
    story = World(with_books(INSPECT), {"gpu.diagnose": Outcome.FAILED})
    known(story, "n1")
    story.say(1, "start", runbook="inspect", node="n1")
    story.run(30)
    assert "scheduler.resume" not in [action for _, action in story.actions()]
    assert story.run_state is RunState.EXHAUSTED
    assert story.time.pages


@pytest.mark.parametrize("closed", ["by a person", "by the next one"])
def test_what_an_inspection_found_waits_for_a_person(closed: str) -> None:
    """It had no symptoms that could be gone: until somebody closes it, or the same inspection ends well, it asks for a person."""
    answers = {"fabric.inspect": Outcome.FAILED}
    story = World(with_books(replace(LOOK, every_s=0)), answers)
    known(story, "n1")
    story.say(1, "start", runbook="look", fabric="default")
    story.run(3600)
    (first,) = story.incidents()
    assert first.state is IncidentState.NEEDS_HUMAN
    answers.clear()
    if closed == "by a person":
        story.say(3600, "close", id=first.id)
    else:
        story.say(3600, "start", runbook="look", fabric="default")
    story.run(3700)
    assert [one.state for one in story.incidents()] == ["closed"] * (1 if closed == "by a person" else 2)
    assert not story.engine.state.incidents
    if closed == "by the next one":
        assert story.incidents()[1].closed_why == "all its steps are done"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"runbook": "nope", "node": "n1"}, "cannot be started by request (have: inspect)"),
        ({"runbook": "bounce", "node": "n1"}, "cannot be started by request"),
        ({"runbook": "inspect", "node": "n9"}, "no such node: 'n9'"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(args: dict[str, str], says: str) -> None:
    """The refusal lists what there is."""
    story = World(with_books(INSPECT))
    known(story, "n1")
    story.say(1, "start", **args)
    story.run(5)
    assert any(says in note for note in story.notes("operator.refused"))
    assert not story.incidents()


@pytest.mark.parametrize("who", ["", "schedule"])
def test_a_command_needs_the_operators_name(who: str) -> None:
    """Without one a request would pass for a fault's run, or for the schedule's; and nobody could ask who it was."""
    story = World(with_books(INSPECT))
    known(story, "n1")
    args = {"runbook": "inspect", "node": "n1"}
    story.time.feed(OperatorCommand(id="nobody", who=who, verb="start", args=args), 1)
    story.run(30)
    assert "needs the operator's name" in story.notes("operator.refused")[0]
    assert not story.incidents()


def test_in_approve_mode_a_request_is_its_own_approval_and_in_observe_mode_it_is_only_planned() -> None:
    """Observe mode performs nothing, whoever asks."""
    for mode, done in ((Mode.APPROVE, 3), (Mode.OBSERVE, 0)):
        story = World(with_books(INSPECT, mode=mode))
        known(story, "n1")
        story.say(1, "start", runbook="inspect", node="n1")
        story.run(30)
        assert len(story.actions()) == done


def test_a_schedule_inspects_one_node_after_the_other_and_skips_those_with_incidents() -> None:
    """Weekly on three nodes; one of them has an incident."""
    week = 7 * 86400.0
    story = World(with_books(replace(INSPECT, every_s=week), page_repeat_s=(1e9,)))
    known(story, "n1", "n2", "n3")
    story.event(1, "node.unreachable", "node", "n2")
    story.run(3000)
    nodes = [node for node, action in story.actions() if action == "gpu.diagnose"]
    assert nodes == ["n1", "n3"]
    story.run(week + 2 * 86400)
    nodes = [node for node, action in story.actions() if action == "gpu.diagnose"]
    assert nodes == ["n1", "n3", "n2", "n1", "n3", "n2"], "n2 once its incident is forgotten"
    story.time.feed(PackLoaded(id="p2", pack=pack()), story.time.now + 1)
    story.run(story.time.now + 2)
    assert not [name for name in story.engine.state.timers if name.startswith("schedule:")]


def test_return_takes_our_drain_off() -> None:
    """An operator declares the node healthy: its symptoms end, and the site's return runbook runs."""
    story = World(with_books(RETURN))
    known(story, "n1")
    story.say(1, "return", node="n1")
    story.run(20)
    assert story.actions() == [("n1", "scheduler.resume")]


def jobs_world(told: JobsAnswer, **settings: Any) -> World:
    """A world whose scheduler answers `told`."""

    class Asked(World):
        def _answer(self, effect: Effect, now: float) -> "list[tuple[float, Input]]":
            if isinstance(effect, AskJobs):
                self.effects.append(effect)
                return [(now + 0.2, replace(told, id=f"j:{effect.node}:{now}", node=effect.node))]
            return list(super()._answer(effect, now))

    return Asked(pack(ask_jobs=True, **settings))


ANSWER = JobsAnswer(id="", node="", known=True, jobs=("41",))


def test_a_node_with_a_protected_job_is_left_alone_until_an_operator_approves() -> None:
    """Law 2."""
    story = jobs_world(replace(ANSWER, protected="41 (account demo)"))
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(30)
    assert story.actions() == []
    assert story.run_state is RunState.APPROVAL
    assert "protected job 41 (account demo)" in list(story.time.runs.values())[-1].why
    story.say(31, "approve", id=story.incidents("link-down")[0].id)
    story.run(60)
    assert story.actions() == [("n1", "link.bounce")]


def test_when_the_scheduler_does_not_answer_an_operator_decides() -> None:
    """Not to know the jobs is not to know that there are none."""
    story = jobs_world(replace(ANSWER, known=False, why="slurmctld is down"))
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(30)
    assert story.run_state is RunState.APPROVAL
    assert "slurmctld is down" in list(story.time.runs.values())[-1].why


def test_one_job_is_disturbed_at_one_place_at_a_time() -> None:
    """Two nodes of job 41: the second waits until the first is done. The scheduler's answer is forgotten after a minute."""
    story = jobs_world(ANSWER)
    story.heals = False
    story.event(1, "link.state", "link/eth1", node="n1", up=False)
    story.event(1, "link.state", "link/eth1", node="n2", up=False)
    story.run(8)
    assert [node for node, _ in story.actions()] == ["n1"]
    held = [run for run in story.time.runs.values() if run.node == "n2"][-1]
    assert "1 disruptive run in job 41" in held.why
    story.run(200)
    assert {node for node, _ in story.actions()} == {"n1", "n2"}
    assert story.engine.state.jobs == {}


def test_in_a_maintenance_window_nothing_disruptive_begins_without_approval() -> None:
    """Law 2. Other nodes are not affected, and with an approval it begins."""
    story = World(pack(maintenance=(Window(scope="node/n1", since=0, until=50, why="new firmware"),)))
    story.event(1, "link.state", "link/eth1", up=False)
    story.event(1, "link.state", "link/eth1", node="n2", up=False)
    story.run(40)
    assert story.actions() == [("n2", "link.bounce")]
    assert "new firmware" in [run for run in story.time.runs.values() if run.node == "n1"][-1].why
    story.say(41, "approve", id=next(i for i in story.incidents("link-down") if i.node == "n1").id)
    story.run(45)
    assert ("n1", "link.bounce") in story.actions()


def test_the_breaker_trips_after_too_many_runs_and_only_an_operator_resets_it() -> None:
    """Three runs in an hour are allowed here; the fourth waits until the reset."""
    story = World(pack(breaker_runs=3, disruptive_runs=10, disruptive_runs_per_runbook=10))
    for number in range(1, 6):
        story.event(number * 20, "link.state", "link/eth1", node=f"n{number}", up=False)
    story.run(2000)
    assert [node for node, _ in story.actions()] == ["n1", "n2", "n3"]
    assert any("breaker has tripped" in page.text for page in story.time.pages)
    story.say(2001, "reset")
    story.run(2100)
    assert [node for node, _ in story.actions()] == ["n1", "n2", "n3", "n4", "n5"]


def test_performing_needs_no_scheduler_where_none_is_configured() -> None:
    """ask_jobs is off by default: no scheduler is queried."""
    story = World(pack())
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(20)
    assert not [effect for effect in story.effects if isinstance(effect, AskJobs)]
    assert [effect for effect in story.effects if isinstance(effect, Perform)]


LOOK = Runbook(
    name="look",
    summary="look over a fabric",
    scope="fabric",
    rungs=(Rung(name="all links", do="fabric.inspect", params={"fabric": "$scope"}, on_failure="stop"),),
    request=True,
    every_s=30 * 86400.0,
)


def test_a_fabric_is_inspected_once_a_month_however_many_nodes_it_has() -> None:
    """Two fabrics, four nodes: two runs, each with its fabric's name; a month later two more."""
    story = World(replace(with_books(LOOK), places={name: Place(fabric="b") for name in ("n3", "n4")}))
    known(story, "n1", "n2", "n3", "n4")
    story.run(86400)
    assert [perform.step.params for perform in story.performed] == [
        {"fabric": "fabric/b"},
        {"fabric": "fabric/default"},
    ]
    assert {incident.node for incident in story.incidents()} == {""}
    story.run(31 * 86400)
    assert len(story.performed) == 4


def test_a_finding_is_paged_and_operators_may_start_the_inspection_too() -> None:
    """By the fabric's name; on a node it is refused."""
    story = World(with_books(replace(LOOK, every_s=0)), {"fabric.inspect": Outcome.FAILED})
    known(story, "n1")
    story.say(1, "start", runbook="look", node="n1")
    story.say(2, "start", runbook="look", fabric="z")
    story.say(3, "start", runbook="look", fabric="default", why="new cables")
    story.run(60)
    refused = story.notes("operator.refused")
    assert any("is started on a fabric, not on 'node/n1'" in note for note in refused)
    assert any("no such fabric: 'z'" in note for note in refused)
    assert len(story.performed) == 1
    assert story.time.pages
