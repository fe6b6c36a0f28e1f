"""Steps: what the trail says of each answer and each sign of life, and what is seen of it."""

import pytest

from brain.core.effects import Note, Perform
from brain.core.inputs import Leader, StepProgress
from brain.core.pack.spec import Verify
from tests.brain.core.climb import QUIET, SYMPTOM, Climb, rung

NEXT = rung("next", "gpu.persistence")


def said(it: Climb, kind: str) -> list[Note]:
    """The notes of a kind; each names the incident, the run and where it is."""
    notes = [note for note in it.time.notes if note.kind == kind]
    assert {(note.incident, note.run, note.scope) for note in notes} <= {
        (it.incident.id, it.climber.id, "link/n1/eth1")
    }
    return notes


@pytest.mark.parametrize("outcome", ["ok", "failed", "refused", "unreachable", "unknown"])
def test_an_answer_in_the_trail(outcome: str) -> None:
    """Which step ended, how, and why; the run's record of the step says the same."""
    it = Climb(rung("r", verify=QUIET), NEXT)
    it.answer(outcome)
    (note,) = said(it, "step.result")
    assert note.text == f"r: {outcome}: so it is"
    assert note.data == {"step": f"{it.climber.id}.s1.a1", "outcome": outcome}
    record = it.climber.steps[0]
    assert (record.outcome, record.why) == (outcome, "so it is")


def test_an_answer_to_a_step_that_was_cancelled() -> None:
    """It is noted, and the run is over for the reason for which it was cancelled."""
    it = Climb(rung("r"), NEXT)
    it.say(4, "deny", id=it.climber.id, why="not now")
    it.run(5)
    it.answer("failed")
    assert [note.text for note in said(it, "step.result")] == ["r: failed: so it is"]
    assert it.state.value == "cancelled"
    assert it.climber.why == "ann denied it: not now"
    assert it.steps == ["s1.a1"]


def test_progress_in_the_trail() -> None:
    """Each new text once; the run that people see says what its step does."""
    it = Climb(rung("r"), NEXT)
    for number, text in enumerate(["3 jobs left", "3 jobs left", "", "2 jobs left"]):
        it.time.feed(
            StepProgress(id=f"g{number}", step=it.performed[0].step.id, elapsed_s=1, text=text), it.time.now
        )
        it.wait(1)
        assert it.climber.steps[0].doing == (text or "3 jobs left")
    assert [note.text for note in said(it, "step.progress")] == ["3 jobs left", "2 jobs left"]


def test_a_silent_step_in_the_trail() -> None:
    """Asked again each 45 s under its own id, until its deadline: then nobody knows what became of it."""
    it = Climb(rung("r", timeout_s=70), NEXT)
    it.wait(46)
    assert [note.text for note in said(it, "step.asked_again")] == [
        "no sign of life of r for 45 s: asked again under the same id"
    ]
    assert it.steps == ["s1.a1", "s1.a1"]
    it.wait(50)
    assert [note.text for note in said(it, "step.result")] == ["r: unknown: no answer within its deadline"]
    assert it.steps == ["s1.a1", "s1.a1", "s2.a1"]


def test_a_step_with_signs_of_life_is_not_asked_again() -> None:
    """Its patience begins anew with each of them."""
    it = Climb(rung("r", timeout_s=200), NEXT)
    for number in range(5):
        it.wait(30)
        it.time.feed(
            StepProgress(id=f"g{number}", step=it.performed[0].step.id, elapsed_s=1, text=""), it.time.now
        )
    it.wait(44)
    assert it.steps == ["s1.a1"]
    assert it.notes("step.asked_again") == []


def test_a_change_of_leaders_in_the_trail() -> None:
    """A safe step is asked again, and the trail says so; of another one nobody knows whether it was done."""
    it = Climb(rung("r"), NEXT)
    it.time.feed(Leader(id="l2", epoch=2, brain="b2"), it.time.now)
    it.wait(0)
    assert "r: asked again by the new leader under the same id" in [
        note.text for note in said(it, "step.asked_again")
    ]
    other = Climb(rung("r", "nic.reset", verify=QUIET), NEXT)
    other.time.feed(Leader(id="l2", epoch=2, brain="b2"), other.time.now)
    other.wait(0)
    assert [note.text for note in said(other, "step.result")] == [
        "r: unknown: the leader changed before the result was known"
    ]
    assert len([effect for effect in other.effects if isinstance(effect, Perform)]) == 1


def test_how_long_a_verification_waits() -> None:
    """For its quiet, or until its deadline: the timer is set to just that, and looks again."""
    it = Climb(rung("r", verify=Verify(within_s=60, for_s=10)), NEXT)
    it.answer("ok")
    timer = f"run:{it.climber.id}"
    assert it.engine.state.timers[timer] == 63
    it.wait(20)
    it.link(up=True)
    assert it.engine.state.timers[timer] == 33
    it.wait(5)
    it.link(up=False)
    assert it.engine.state.timers[timer] == 63


def test_a_verification_that_fails_in_the_trail() -> None:
    """Which rung did not help, and what is still there."""
    it = Climb(rung("r", verify=QUIET), NEXT)
    it.answer("ok")
    it.wait(60.1)
    assert [note.text for note in said(it, "run.not_verified")] == [f"r did not help: {SYMPTOM} still there"]


@pytest.mark.parametrize(
    ("reset", "steps"),
    [
        pytest.param(("*",), ["s1.a1", "s2.a1"], id="it was set aside, so it is a new fact: at once"),
        pytest.param((), ["s1.a1"], id="it was never gone: it has the whole minute"),
    ],
)
def test_a_fault_that_is_seen_again_during_its_verification(reset: tuple[str, ...], steps: list[str]) -> None:
    """A fact of now that the step did not help needs no further waiting."""
    it = Climb(rung("r", verify=Verify(within_s=60, for_s=10, reset_on_act=reset)), NEXT)
    it.answer("ok")
    it.wait(1)
    it.link(up=False)
    assert it.steps == steps


@pytest.mark.parametrize(
    ("on_failure", "why"),
    [
        ("stop", "r failed: so it is. The runbook stops there: a person must take it from here"),
        ("quit", "r was not to be done now, so nothing else is"),
    ],
)
def test_why_a_run_ends_with_a_step(on_failure: str, why: str) -> None:
    """In the words that people read."""
    it = Climb(rung("r", on_failure=on_failure), NEXT)
    it.answer("failed")
    assert it.climber.why == why
    assert it.incident.state.value == ("needs_human" if on_failure == "stop" else "recovered")


def test_a_way_back_that_fails() -> None:
    """The rung has worked, and the node is not back in service: a person must bring it back, whatever the rung says."""
    back = rung("resume", "scheduler.resume", retries=1, on_failure="quit")
    it = Climb(rung("r", verify=QUIET), return_to_service=(back,))
    it.answer("ok")
    it.link(up=True)
    it.wait(10.1)
    it.answer("failed")
    assert it.steps == ["s1.a1", "b1.a1", "b1.a2"]
    it.answer("failed")
    assert it.state.value == "exhausted"
    assert it.climber.why == (
        "r worked: the symptoms have been gone for 10 s, but resume failed: so it is: "
        "a person must bring it back into service"
    )
