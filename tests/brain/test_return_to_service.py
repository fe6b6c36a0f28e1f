"""Stories about runs on a small ladder: return to service, void approvals, cancelled steps, steps without progress."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from agent.contract.commands import Outcome
from brain.core.effects import AskPlan, CancelStep, Effect, Perform
from brain.core.inputs import Input, Leader, StepPlan, StepProgress, StepResult
from brain.core.pack.spec import Mode, Pack, Place, Runbook, Rung, Symptom, Verify
from brain.core.state import RunState, SymptomState
from tests.brain.world import Story, pack, rule

LADDER = Runbook(
    name="bounce",
    summary="drain, bounce, reboot, and back",
    rungs=(
        Rung(name="drain", do="scheduler.drain"),
        Rung(
            name="bounce",
            do="link.bounce",
            params={"link": "$component"},
            verify=Verify(within_s=10, for_s=3),
        ),
        Rung(name="reboot", do="node.reboot", verify=Verify(within_s=60, for_s=3)),
    ),
    return_to_service=(Rung(name="resume", do="scheduler.resume", retries=1),),
)


def ladder(mode: Mode = Mode.AUTO, **changes: Any) -> Pack:
    """The small pack with the three-rung ladder for links."""
    plain = pack(mode)
    books = tuple(book for book in plain.runbooks if book.name != "bounce")
    return replace(plain, runbooks=(*books, replace(LADDER, **changes)))


class World(Story):
    """`answers` maps an action to its outcome; every other action succeeds."""

    def __init__(self, given: Pack, answers: dict[str, Outcome] | None = None, *, heals: bool = True) -> None:
        self.answers = answers or {}
        self.effects: list[Effect] = []
        super().__init__(given, heals=heals)

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        self.effects.append(effect)
        if isinstance(effect, Perform) and (outcome := self.answers.get(effect.step.action)) is not None:
            self.performed.append(effect)
            step = effect.step
            if outcome is not Outcome.UNKNOWN:  # UNKNOWN: the step never answers
                yield (
                    now + 1,
                    StepResult(id=f"r:{step.id}:{now}", step=step.id, outcome=outcome, why="told so"),
                )
        elif isinstance(effect, AskPlan):
            yield (
                now + 0.1,
                StepPlan(id=f"w:{effect.step.id}", step=effect.step.id, ok=True, lines=("would do it",)),
            )
        else:
            yield from super()._answer(effect, now)

    @property
    def run_state(self) -> RunState:
        """Of the newest run."""
        return list(self.time.runs.values())[-1].state


def test_a_healed_node_is_returned_only_after_the_verification() -> None:
    """Drain, bounce, verification for 3 s, resume, in this order; then the incident closes."""
    story = World(ladder())
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(60)
    assert [action for _, action in story.actions()] == ["scheduler.drain", "link.bounce", "scheduler.resume"]
    assert story.run_state is RunState.SUCCEEDED
    assert story.incidents("link-down")[0].state == "closed"
    story.run(90_000)
    assert story.engine.state.fault_free()


def test_a_node_that_was_not_healed_is_not_returned() -> None:
    """No rung helps: the drain stays, people are paged."""
    story = World(ladder(), heals=False)
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(200)
    assert [action for _, action in story.actions()] == ["scheduler.drain", "link.bounce", "node.reboot"]
    assert story.run_state is RunState.EXHAUSTED
    assert story.time.pages


def test_a_fault_that_goes_away_before_anything_was_done_needs_no_return_to_service() -> None:
    """Nothing was disrupted, so nothing is done afterwards."""
    story = World(ladder())
    story.say(0.5, "hold", scope="node/n1", why="looking")
    story.event(1, "link.state", "link/eth1", up=False)
    story.event(5, "link.state", "link/eth1", up=True)
    story.run(100)
    assert story.actions() == []


def test_a_fault_that_recurs_during_the_return_to_service_goes_up_the_ladder() -> None:
    """The resume fails once; before its second attempt the link is down again: the next rung begins."""
    story = World(ladder(), {"scheduler.resume": Outcome.FAILED})
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(8.2)
    story.event(8.5, "link.state", "link/eth1", up=False)
    story.run(30)
    actions = [action for _, action in story.actions()]
    assert actions[:3] == ["scheduler.drain", "link.bounce", "scheduler.resume"]
    assert "node.reboot" in actions


def test_a_return_to_service_that_fails_needs_people() -> None:
    """The node is healed but still out of service: people are paged."""
    story = World(ladder(), {"scheduler.resume": Outcome.FAILED})
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(60)
    assert [action for _, action in story.actions()].count("scheduler.resume") == 2
    run = list(story.time.runs.values())[-1]
    assert run.state is RunState.EXHAUSTED
    assert "bring it back into service" in run.why
    assert story.time.pages


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("symptom", "has come up since"),
        ("time", "its time is over"),
        ("none", ""),
    ],
)
def test_changed_circumstances_void_an_approval(change: str, says: str) -> None:
    """Approved under a hold: when the hold is released, circumstances may have changed."""
    given = pack(Mode.APPROVE, approval_s=100)
    story = World(replace(given, runbooks=ladder().runbooks))
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(10)
    assert story.run_state is RunState.APPROVAL
    assert story.notes("step.plan") == ["would do it"], "the plan comes from whoever would perform the step"
    story.say(11, "hold", scope="node/n1", why="wait a moment")
    (incident,) = story.incidents("link-down")
    story.say(12, "approve", id=incident.id)
    story.run(13)
    if change == "symptom":
        # The flapping symptom joins no link-down incident by itself; a second match of the rule would bring it.
        other = "link_flaps@link/n1/eth1"
        story.engine.state.symptoms[other] = SymptomState(
            name="link_flaps", scope="link/n1/eth1", active=True
        )
        story.engine.state.incidents[incident.id].symptoms.append(other)
    story.say(120 if change == "time" else 30, "release", scope="node/n1")
    story.run(140)
    if says:
        assert story.run_state is RunState.APPROVAL
        assert any(says in note for note in story.notes("run.approval")), story.notes("run.approval")
        assert story.actions() == []
    else:
        assert story.actions()[0] == ("n1", "scheduler.drain")


def test_a_denied_step_is_cancelled_and_keeps_its_node_until_it_has_ended() -> None:
    """The drain never answers; while it is being cancelled, no other run may begin on the node."""
    story = World(ladder(), {"scheduler.drain": Outcome.UNKNOWN})
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(10)
    (incident,) = story.incidents("link-down")
    story.say(11, "deny", id=incident.id, why="not now")
    story.event(12, "ib.errors", "port/mlx5_0.1", counter="symbol_error", delta=500, spec_s=15_000.0)
    story.run(40)
    (stop,) = [effect for effect in story.effects if isinstance(effect, CancelStep)]
    assert stop.why == "ann denied it: not now"
    assert story.engine.state.runs[stop.step.run].state is RunState.CANCELLING
    assert "link.bounce" not in [action for _, action in story.actions()], "the node is not free yet"
    result = StepResult(id="r:late", step=stop.step.id, outcome=Outcome.FAILED, why="cancelled")
    story.time.feed(result, 41)
    story.run(60)
    assert story.engine.state.runs[stop.step.run].state is RunState.CANCELLED
    assert ("n1", "link.bounce") in story.actions()


def test_a_step_without_progress_is_sent_again_under_its_own_id_if_that_is_safe() -> None:
    """Progress reports prevent it; after 45 s without one the step is sent again. One of class `never` is not."""
    story = World(ladder(), {"scheduler.drain": Outcome.UNKNOWN})
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(5)
    (first,) = story.performed
    for at in range(10, 60, 10):
        story.time.feed(StepProgress(id=f"g{at}", step=first.step.id, elapsed_s=at, text="3 jobs left"), at)
    story.run(90)
    assert len(story.performed) == 1
    assert story.notes("step.progress") == ["3 jobs left"], "the same text is noted once"
    story.run(100)
    assert [perform.step.id for perform in story.performed] == [first.step.id] * 2

    never = World(ladder(), {"node.reboot": Outcome.UNKNOWN}, heals=False)
    never.event(1, "link.state", "link/eth1", up=False)
    never.run(1000)
    assert [action for _, action in never.actions()].count("node.reboot") == 1


def test_a_new_leader_cancels_a_step_again() -> None:
    """The brain that should have cancelled it may have died first."""
    story = World(ladder(), {"scheduler.drain": Outcome.UNKNOWN})
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(10)
    (incident,) = story.incidents("link-down")
    story.say(11, "close", id=incident.id)
    story.time.feed(Leader(id="l2", epoch=2, brain="b2"), 12)
    story.run(13)
    assert len([effect for effect in story.effects if isinstance(effect, CancelStep)]) == 2
    story.run(8000)
    assert not story.engine.state.runs, "it is given up at its deadline, even if it never answers"


def test_in_observe_mode_every_rung_has_a_plan() -> None:
    """Plans are requested, nothing is performed."""
    story = World(ladder(Mode.OBSERVE))
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(10)
    assert len(story.notes("step.plan")) == 3
    assert story.actions() == []


def test_a_shared_cause_that_is_over_keeps_no_node_and_explains_nothing() -> None:
    """It took over the drain of one node. That node, and all others of the leaf, have faults of their own again."""
    places = {f"n{number}": Place(leaf="l1") for number in range(8)}
    plain = ladder()
    widely = Symptom(
        name="widely", scope="leaf", summary="on many", detect="spread", of="link_down", at_least=4, ttl_s=600
    )
    shared = rule("switch", "leaf", {"symptom": "widely"}, runbook="tell", inhibits=("link-down",))
    tell = Runbook(name="tell", summary="tell", rungs=(Rung(name="tell", do="page"),))
    given = replace(
        plain,
        symptoms=(*plain.symptoms, widely),
        rules=(*plain.rules, shared),
        runbooks=(*plain.runbooks, tell),
        places=places,
    )
    story = World(given, heals=False)
    story.event(1, "link.state", "link/eth1", up=False)
    for number in (2, 3, 4, 5):
        story.event(10, "link.state", "link/eth1", f"n{number}", up=False)
    story.run(20)
    (switch,) = story.incidents("switch")
    assert (switch.state, list(story.engine.state.drains["n1"])) == ("needs_human", [switch.id])
    for number in (2, 3, 4, 5):
        story.event(100, "link.state", "link/eth1", f"n{number}", up=True)
    story.run(700)
    assert story.incidents("switch")[0].state == "closed"
    own = story.incidents("link-down")[-1]
    assert (own.node, own.state) == ("n1", "needs_human"), "the next rung did not help either"
    assert switch.id not in story.engine.state.drains["n1"], "it has another owner"
    story.event(710, "link.state", "link/eth1", "n6", up=False)
    story.run(720)
    assert story.incidents("link-down")[-1].node == "n6"


def test_what_a_remedied_fault_explained_and_is_there_still() -> None:
    """It has an incident of its own before its node is given back: who wants the node out of service keeps it."""
    plain = ladder()
    kept = tuple(one for one in plain.rules if one.name != "gpu-lost-by-job")
    host = rule("host-bad", "node", {"symptom": "device_removed"}, runbook="host", inhibits=("link-down",))
    restart = Rung(
        name="restart", do="service.restart", params={"unit": "host"}, verify=Verify(within_s=9, for_s=3)
    )
    book = replace(LADDER, name="host", rungs=(LADDER.rungs[0], restart))
    story = World(replace(plain, rules=(*kept, host), runbooks=(*plain.runbooks, book)))
    story.event(1, "job.cuda_error", name="CUDA_ERROR_DEVICE_REMOVED")
    story.event(5, "link.state", "link/eth1", up=False)
    story.run(6)
    assert story.incidents("link-down") == [], "explained"
    story.run(100)
    assert [action for _, action in story.actions()] == [
        "scheduler.drain", "service.restart", "scheduler.drain", "link.bounce", "scheduler.resume"
    ]  # fmt: skip
    assert [one.state for one in story.incidents()] == ["closed", "closed"]
