"""Steps: what proves that a rung has worked, and what a verification sets aside."""

from dataclasses import replace

import pytest

from agent.contract.commands import Outcome
from brain.core.healing import steps
from brain.core.inputs import StepResult
from brain.core.pack.spec import Match, Rung, Symptom, Verify
from brain.core.state import RunState
from tests.brain.core.cell import GPU, NOW, Cell
from tests.brain.core.climb import QUIET, SYMPTOM, Climb, rung
from tests.brain.core.givens import runbook, sick
from tests.brain.core.standing import NEVER, NEXT, PROBE, SAFE, standing


def test_a_rung_has_worked_when_its_symptoms_have_been_gone_for_long_enough() -> None:
    """Ten seconds of quiet, counted from the moment when the link came up; not a second less."""
    it = Climb(rung("r", SAFE, verify=QUIET), NEXT)
    it.answer("ok")
    it.wait(20)
    it.link(up=True)
    it.wait(9.9)
    assert (it.state, it.climber.steps[-1].verified) == (RunState.VERIFYING, None)
    it.wait(0.2)
    assert (it.state, it.climber.steps[-1].verified) == (RunState.SUCCEEDED, True)
    assert it.climber.why == "r worked: the symptoms have been gone for 10 s"


def test_quiet_that_is_broken_begins_anew() -> None:
    """Five seconds up, down again, up: ten full seconds from there on."""
    it = Climb(rung("r", SAFE, verify=QUIET), NEXT)
    it.answer("ok")
    it.link(up=True)
    it.wait(5)
    it.link(up=False)
    it.wait(1)
    it.link(up=True)
    it.wait(9)
    assert it.state is RunState.VERIFYING
    it.wait(1.1)
    assert it.state.value == "succeeded"


def test_quiet_before_a_rung_is_no_merit_of_it() -> None:
    """The first attempt's five seconds of quiet do not count for the second's ten."""
    it = Climb(rung("r", SAFE, verify=Verify(within_s=8, for_s=10), retries=1), NEXT)
    it.answer("ok")
    it.link(up=True)
    it.wait(5)
    it.link(up=False)
    it.wait(5)
    assert it.steps == ["s1.a1", "s1.a2"]
    it.link(up=True)
    it.answer("ok")
    it.wait(9)
    assert it.state is RunState.VERIFYING
    it.wait(1.1)
    assert it.state.value == "succeeded"


def test_quiet_before_the_fault_came_back_is_no_merit_of_the_next_rung() -> None:
    """The first rung had its ten seconds; on the way back the link falls again: the second rung needs ten of its own."""
    it = Climb(
        rung("a", SAFE, verify=QUIET),
        rung("b", PROBE, verify=QUIET),
        return_to_service=(rung("back", "scheduler.resume", retries=1),),
    )
    it.answer("ok")
    it.link(up=True)
    it.wait(10.1)
    it.link(up=False)
    it.answer("failed")
    assert it.steps == ["s1.a1", "b1.a1", "s2.a1"]
    it.link(up=True)
    it.answer("ok")
    it.wait(9.8)
    assert it.state is RunState.VERIFYING


def test_a_rung_that_did_not_help_in_time() -> None:
    """After a minute with the link down it has failed, the trail says what is still there, the next rung's turn."""
    it = Climb(rung("r", SAFE, verify=QUIET), NEXT)
    it.answer("ok")
    it.wait(59.9)
    assert it.steps == ["s1.a1"]
    it.wait(0.2)
    assert it.steps == ["s1.a1", "s2.a1"]
    assert it.climber.steps[0].verified is False
    assert it.notes("run.not_verified") == [f"r did not help: {SYMPTOM} still there"]


def test_a_failed_inspection_of_never_class_is_not_repeated() -> None:
    """Law 4: a reboot that did not help is not done a second time, whatever its retries say; a bounce is."""
    for do, steps_after in ((SAFE, ["s1.a1", "s1.a2"]), (NEVER, ["s1.a1", "s2.a1"])):
        it = Climb(rung("r", do, verify=QUIET, retries=1), NEXT)
        it.answer("ok")
        it.wait(61)
        assert it.steps == steps_after


def test_the_first_symptoms_that_are_left_are_named() -> None:
    """Three of them: the line is for a phone."""
    cell = Cell(
        runbook(rungs=(Rung(name="reset", do="gpu.reset", verify=QUIET),)),
        standing(RunState.VERIFYING, deadline=NOW),
        *(sick(f"gpu/n1/{number}") for number in range(5)),
    )
    cell.incident.symptoms = [f"off_bus@gpu/n1/{number}" for number in range(5)]
    ctx = cell.ctx()
    steps.check(ctx, cell.run)
    (note,) = [effect for effect in ctx.effects if getattr(effect, "kind", "") == "run.not_verified"]
    assert getattr(note, "text", "") == (
        "reset did not help: off_bus@gpu/n1/0, off_bus@gpu/n1/1, off_bus@gpu/n1/2 still there"
    )


def test_a_silent_node_proves_nothing() -> None:
    """Law 8: while it is not heard no quiet counts, and after its time the rung has failed."""
    it = Climb(rung("r", SAFE, verify=QUIET), NEXT)
    it.answer("ok")
    it.node(alive=False)
    it.link(up=True)
    it.wait(30)
    assert it.state is RunState.VERIFYING
    it.node(alive=True)
    it.wait(9)
    assert it.state is RunState.VERIFYING, "quiet counts from when it is heard"
    it.wait(1.1)
    assert it.state.value == "succeeded"
    deaf = Climb(rung("r", SAFE, verify=QUIET), NEXT)
    deaf.answer("ok")
    deaf.node(alive=False)
    deaf.link(up=True)
    deaf.wait(61)
    assert deaf.notes("run.not_verified") == ["nobody knows whether r helped: n1 is not heard"]


def test_a_silent_node_that_still_has_an_uncleared_fault_is_waited_for() -> None:
    """What would fail at once on a node that is heard waits until the node is: its facts may be of the old boot."""
    it = Climb(rung("r", SAFE, verify=Verify(within_s=60, for_s=10, reset_on_act=("*",))), NEXT)
    it.node(alive=False)
    it.answer("ok")
    it.link(up=False)
    assert it.state is RunState.VERIFYING
    it.wait(61)
    assert it.state is not RunState.VERIFYING


@pytest.mark.parametrize(
    ("verify", "left", "works"),
    [
        pytest.param(QUIET, "", True, id="both are gone"),
        pytest.param(QUIET, "link_flaps", False, id="all of the incident's must go, and one has not"),
        pytest.param(
            replace(QUIET, gone=("link_down",)),
            "link_flaps",
            True,
            id="the rung answers for the other one only",
        ),
        pytest.param(
            replace(QUIET, gone=("link_down",)), "link_down", False, id="the one that it answers for is there"
        ),
    ],
)
def test_which_symptoms_a_rung_answers_for(verify: Verify, left: str, works: bool) -> None:
    """Those that it names, or all of the incident's."""
    cell = Cell(
        runbook(rungs=(Rung(name="reset", do="gpu.reset", verify=verify),)),
        standing(RunState.VERIFYING, deadline=NOW + 5),
    )
    cell.run.quiet_since, cell.run.looked_at = NOW - 20, NOW
    cell.incident.symptoms = [f"link_down@{GPU}", f"link_flaps@{GPU}"]
    cell.state.symptoms.clear()
    if left:
        sick(GPU, left)(cell)
    steps.check(cell.ctx(), cell.run)
    assert (cell.run.state is RunState.SUCCEEDED) == works


PLAIN = Symptom(name="plain", scope="gpu", summary="nothing takes it back", on=(Match(kind="x"),))
CLEARED = replace(PLAIN, name="cleared", clear=(Match(kind="y"),))
SPREAD = replace(PLAIN, name="spread", detect="spread", of="plain", on=())


@pytest.mark.parametrize(
    ("symptom", "anew", "set_aside"),
    [
        pytest.param("plain", (), True, id="nothing but time would end it"),
        pytest.param("cleared", (), False, id="a fact would end it"),
        pytest.param("cleared", ("cleared",), True, id="a fact would end it, but the rung makes it the past"),
        pytest.param("cleared", ("plain",), False, id="the rung makes another one the past"),
        pytest.param("cleared", ("*",), True, id="the rung makes all of them the past"),
        pytest.param("spread", ("*",), False, id="what is counted over nodes is not this node's"),
        pytest.param("forgotten", ("*",), False, id="a symptom that the rules do not know any more"),
    ],
)
def test_what_a_verification_sets_aside(
    symptom: str, anew: tuple[str, ...], set_aside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What only counts if it is said anew: if the fault is there still, it comes back. The rest is judged as it stands.
    A service's name may hold an `@`."""
    monkeypatch.setattr("tests.brain.core.cell.SYMPTOMS", (PLAIN, CLEARED, SPREAD))
    scope = "service/n1/user@1000.service"
    cell = Cell(
        runbook(rungs=(Rung(name="reset", do="gpu.reset", verify=replace(QUIET, reset_on_act=anew)),)),
        standing(RunState.PERFORMING),
        sick(scope, symptom),
    )
    cell.incident.symptoms = [f"{symptom}@{scope}"]
    steps.result(cell.ctx(), StepResult(id="r", step="inc-1.r1.s1.a1", outcome=Outcome.OK, why="done"))
    assert (f"{symptom}@{scope}" not in cell.state.symptoms) == set_aside
    assert cell.run.state is RunState.VERIFYING
    assert cell.run.quiet_since == (NOW if set_aside else 0.0)


def test_a_rung_sets_aside_only_what_it_answers_for() -> None:
    """What another rung has to mend stays on record."""
    verify = Verify(within_s=60, for_s=10, gone=("off_bus",))
    cell = Cell(
        runbook(rungs=(Rung(name="reset", do="gpu.reset", verify=verify),)),
        standing(RunState.PERFORMING),
        sick(GPU, "hot"),
    )
    cell.incident.symptoms = [f"off_bus@{GPU}", f"hot@{GPU}"]
    steps.result(cell.ctx(), StepResult(id="r", step="inc-1.r1.s1.a1", outcome=Outcome.OK, why="done"))
    assert list(cell.state.symptoms) == [f"hot@{GPU}"]


@pytest.mark.parametrize(
    ("booted_s_ago", "said_s_ago", "set_aside"),
    [
        pytest.param(None, 1, True, id="no boot: everything that was said before the step ended is the past"),
        pytest.param(10, 60, True, id="said before the boot"),
        pytest.param(10, 5, False, id="said by the new boot"),
        pytest.param(
            10, 10.9, False, id="said at the moment of the boot: clocks differ by less than a second"
        ),
        pytest.param(10, 11, False, id="a second before the boot is still that moment"),
        pytest.param(10, 11.1, True, id="a little more than a second before the boot"),
        pytest.param(50, 40, True, id="the boot was not later than the step"),
        pytest.param(80, 60, True, id="the boot was before the step"),
    ],
)
def test_what_a_new_boot_says_is_no_matter_of_the_past(
    booted_s_ago: float | None, said_s_ago: float, set_aside: bool
) -> None:
    """Law 13: facts of an earlier boot are old news, those of the new one are the verification's answer. (The step
    began 50 s ago.)"""
    cell = Cell(
        runbook(rungs=(Rung(name="reboot", do="node.reboot", verify=replace(QUIET, reset_on_act=("*",))),)),
        standing(RunState.PERFORMING),
    )
    key = f"off_bus@{GPU}"
    cell.state.symptoms[key].last = NOW - said_s_ago
    if booted_s_ago is not None:
        cell.boots(NOW - booted_s_ago)
    steps.result(cell.ctx(), StepResult(id="r", step="inc-1.r1.s1.a1", outcome=Outcome.OK, why="back"))
    assert (key not in cell.state.symptoms) == set_aside
