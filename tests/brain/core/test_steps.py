"""Steps: what follows from each answer, what proves that a rung has worked, and what a new leader does."""

from dataclasses import replace

import pytest

from agent.contract.actions.spec import Repeat
from agent.contract.commands import Outcome
from brain.core.effects import CancelStep, Note, Perform, WriteIntent
from brain.core.healing import steps
from brain.core.inputs import Leader, StepProgress, StepResult
from brain.core.pack.spec import Match, Mode, Rung, Symptom, Verify
from brain.core.state import RunState, StepRecord
from tests.brain.core.cell import GPU, NOW, Cell, Given, on, runbook, sick
from tests.brain.core.climb import LINK, QUIET, SYMPTOM, Climb, rung

NEXT = rung("next", "gpu.persistence")  # a rung that disrupts nothing: whoever comes to it begins it at once
SAFE, PROBE, NEVER = "link.bounce", "nic.reset", "node.reboot"  # one action of each repeat class


@pytest.mark.parametrize(
    ("first", "outcome", "began", "state"),
    [
        pytest.param(rung("r", SAFE, verify=QUIET), "ok", [], "verifying", id="done: it is verified"),
        pytest.param(
            rung("r", SAFE), "ok", ["s2.a1"], "performing", id="done and nothing to verify: the next rung"
        ),
        # Nobody knows whether it was done: law 4.
        pytest.param(
            rung("r", SAFE, verify=QUIET, retries=1),
            "unknown",
            ["s1.a2"],
            "performing",
            id="unknown, safe: again",
        ),
        pytest.param(
            rung("r", SAFE, verify=QUIET),
            "unknown",
            ["s2.a1"],
            "performing",
            id="unknown, safe, no retries: the next rung",
        ),
        pytest.param(
            rung("r", PROBE, verify=QUIET, retries=1),
            "unknown",
            [],
            "verifying",
            id="unknown, probe: looked at first",
        ),
        pytest.param(
            rung("r", NEVER, verify=QUIET, retries=1),
            "unknown",
            [],
            "verifying",
            id="unknown, never: looked at",
        ),
        pytest.param(
            rung("r", PROBE, retries=1),
            "unknown",
            [],
            "exhausted",
            id="unknown, probe, nothing verifies it: a person",
        ),
        pytest.param(
            rung("r", NEVER, retries=1),
            "unknown",
            [],
            "exhausted",
            id="unknown, never, nothing verifies it: a person",
        ),
        pytest.param(
            rung("r", SAFE, repeat=Repeat.NEVER),
            "unknown",
            [],
            "exhausted",
            id="the rung's class, not the action's",
        ),
        # It failed.
        pytest.param(rung("r", SAFE, retries=1), "failed", ["s1.a2"], "performing", id="failed, safe: again"),
        pytest.param(
            rung("r", PROBE, retries=1), "failed", ["s1.a2"], "performing", id="failed, probe: again"
        ),
        pytest.param(
            rung("r", NEVER, retries=1), "failed", ["s2.a1"], "performing", id="failed, never: the next rung"
        ),
        pytest.param(
            rung("r", SAFE), "failed", ["s2.a1"], "performing", id="failed, no retries: the next rung"
        ),
        pytest.param(
            rung("r", SAFE, on_failure="stop"),
            "failed",
            [],
            "exhausted",
            id="failed, and the runbook stops there",
        ),
        pytest.param(
            rung("r", SAFE, on_failure="quit"), "failed", [], "succeeded", id="failed, and that is no failure"
        ),
        pytest.param(
            rung("r", SAFE, on_refusal="stop"), "failed", ["s2.a1"], "performing", id="failed is not refused"
        ),
        # Nothing was done.
        pytest.param(
            rung("r", NEVER, retries=1),
            "unreachable",
            ["s1.a2"],
            "performing",
            id="not reached, never: again, it was not done",
        ),
        pytest.param(
            rung("r", SAFE, retries=1),
            "refused",
            ["s2.a1"],
            "performing",
            id="refused: never again, the next rung",
        ),
        pytest.param(
            rung("r", SAFE, on_failure="stop"), "refused", [], "exhausted", id="refused counts as failed"
        ),
        pytest.param(
            rung("r", SAFE, on_failure="quit"),
            "refused",
            [],
            "succeeded",
            id="refused, and that is no failure",
        ),
        pytest.param(
            rung("r", SAFE, on_refusal="stop"),
            "refused",
            [],
            "exhausted",
            id="refused, and the runbook stops there",
        ),
        pytest.param(
            rung("r", SAFE, on_failure="stop", on_refusal="next"),
            "refused",
            ["s2.a1"],
            "performing",
            id="a refusal that does not matter",
        ),
        pytest.param(
            rung("r", SAFE, on_failure="quit", on_refusal="stop"),
            "refused",
            [],
            "exhausted",
            id="a refusal that matters more than a failure",
        ),
    ],
)
def test_what_follows_from_an_answer(first: Rung, outcome: str, began: list[str], state: str) -> None:
    """Outcome, repeat class and the rung's own words decide; a step that may have been done is not done blindly again."""
    it = Climb(first, NEXT)
    it.answer(outcome)
    assert (it.steps, it.state.value) == (["s1.a1", *began], state)


def test_each_rung_has_its_own_attempts() -> None:
    """Two attempts of the first rung, then the first of the second: ids never repeat and never skip."""
    it = Climb(rung("a", SAFE, retries=1), rung("b", SAFE, retries=1), rung("c", SAFE))
    for _ in range(4):
        it.answer("failed")
    assert it.steps == ["s1.a1", "s1.a2", "s2.a1", "s2.a2", "s3.a1"]


@pytest.mark.parametrize("again", ["ok", "failed", "refused", "unknown"])
def test_a_step_is_answered_once(again: str) -> None:
    """A second answer to a step that has ended is stale: it changes nothing."""
    it = Climb(rung("r", SAFE, verify=QUIET), NEXT)
    it.answer("ok")
    before = it.climber
    it.answer(again, step=it.performed[0].step.id)
    assert it.climber == before
    assert len(it.notes("step.result")) == 1


def test_an_answer_to_another_attempt_is_none() -> None:
    """The first attempt's late answer is not the second's."""
    it = Climb(rung("r", SAFE, retries=1), NEXT)
    it.answer("failed")
    it.answer("ok", step=it.performed[0].step.id)
    assert (it.steps, it.state.value) == (["s1.a1", "s1.a2"], "performing")


@pytest.mark.parametrize(("do", "on_whom"), [(SAFE, "n1"), ("sm.start_standby", "the brain")])
def test_a_step_says_where_it_is_performed(do: str, on_whom: str) -> None:
    """On the node, or by the brain when it is about none."""
    cell = Cell(
        runbook(rungs=(Rung(name="r", do=do),)),
        standing(RunState.INTENT),
        on(GPU if on_whom == "n1" else "fabric/default", "n1" if on_whom == "n1" else ""),
    )
    steps.intended(cell.ctx(), "inc-1.r1.s1.a1", 0)
    assert cell.run.why == f"{do} on {on_whom}"


def standing(state: RunState, *, rung: int = 0, attempt: int = 1, deadline: float = NOW + 100) -> Given:
    """The run's step is so far."""

    def given(cell: Cell) -> None:
        cell.run.state, cell.run.rung, cell.run.attempt, cell.run.deadline = state, rung, attempt, deadline
        book = cell.run.runbook.rungs
        if rung < len(book):
            record = StepRecord(
                id=f"inc-1.r1.s{rung + 1}.a{attempt}",
                rung=book[rung].name,
                action=book[rung].do,
                params={},
                at=NOW - 50,
            )
            cell.run.steps.append(record)

    return given


@pytest.mark.parametrize(
    ("givens", "step", "epoch", "performed"),
    [
        pytest.param([standing(RunState.INTENT)], "inc-1.r1.s1.a1", 7, True, id="the present leader's"),
        pytest.param([standing(RunState.INTENT)], "inc-1.r1.s1.a1", 6, False, id="a deposed leader's"),
        pytest.param(
            [standing(RunState.INTENT)],
            "inc-1.r1.s1.a1",
            8,
            False,
            id="one of a leader that is not yet known",
        ),
        pytest.param(
            [standing(RunState.PERFORMING)], "inc-1.r1.s1.a1", 7, False, id="it is performed already"
        ),
        pytest.param(
            [standing(RunState.CANCELLED)], "inc-1.r1.s1.a1", 7, False, id="it was cancelled meanwhile"
        ),
        pytest.param([standing(RunState.INTENT)], "inc-1.r1.s1.a2", 7, False, id="another attempt's"),
        pytest.param([standing(RunState.INTENT)], "inc-1.r1.s2.a1", 7, False, id="another rung's"),
        pytest.param(
            [standing(RunState.INTENT, rung=2)], "inc-1.r1.s3.a1", 7, False, id="of a rung that there is not"
        ),
        pytest.param(
            [standing(RunState.INTENT)], "inc-9.r1.s1.a1", 7, False, id="of a run that nobody knows"
        ),
    ],
)
def test_which_intent_is_performed(givens: list[Given], step: str, epoch: int, performed: bool) -> None:
    """Decision 4: what has come back on the log with the present leader's epoch, and is still wanted; and only that."""
    cell = Cell(*givens)
    cell.state.epoch = cell.run.epoch = 7
    before = cell.run.state
    ctx = cell.ctx()
    steps.intended(ctx, step, epoch)
    assert [effect.step.id for effect in ctx.effects if isinstance(effect, Perform)] == (
        [step] if performed else []
    )
    assert cell.run.state is (RunState.PERFORMING if performed else before)


def test_how_long_a_step_is_waited_for() -> None:
    """Its own time limit, and 15 s for the answer to come; after 45 s without a sign of life it is looked at."""
    cell = Cell(standing(RunState.INTENT))
    steps.intended(cell.ctx(), "inc-1.r1.s1.a1", 0)
    assert cell.run.deadline == NOW + 300 + 15
    assert cell.state.timers == {"run:inc-1.r1": NOW + 45}
    short = Cell(runbook(rungs=(Rung(name="r", do="gpu.reset", timeout_s=20),)), standing(RunState.INTENT))
    steps.intended(short.ctx(), "inc-1.r1.s1.a1", 0)
    assert short.state.timers == {"run:inc-1.r1": NOW + 35}


@pytest.mark.parametrize(
    ("state", "text", "noted"),
    [
        (RunState.PERFORMING, "3 jobs left", True),
        (RunState.CANCELLING, "putting it back", True),
        (RunState.PERFORMING, "", False),
        (RunState.PERFORMING, "as before", False),
        (RunState.VERIFYING, "3 jobs left", False),
        (RunState.CANCELLED, "3 jobs left", False),
    ],
)
def test_signs_of_life(state: RunState, text: str, noted: bool) -> None:
    """A step under way says what it does, once for each new text; one that has ended is not listened to."""
    cell = Cell(standing(state))
    cell.run.steps[-1].doing = "as before"
    ctx = cell.ctx()
    steps.progress(ctx, StepProgress(id="g", step="inc-1.r1.s1.a1", elapsed_s=1, text=text))
    assert [
        effect.text for effect in ctx.effects if isinstance(effect, Note) and effect.kind == "step.progress"
    ] == ([text] if noted else [])
    assert cell.run.steps[-1].doing == (text if noted else "as before")
    listened = state in (RunState.PERFORMING, RunState.CANCELLING)
    assert ("run:inc-1.r1" in cell.state.timers) == listened, "its patience begins anew"


@pytest.mark.parametrize(
    ("do", "node", "heard"),
    [
        ("gpu.reset", "n1", True),
        ("gpu.reset", "n2", False),
        ("gpu.reset", "", True),
        ("scheduler.drain", "n1", False),
        ("scheduler.drain", "", True),
    ],
)
def test_whose_signs_of_life_count(do: str, node: str, heard: bool) -> None:
    """Law 15: a node speaks of its own steps only. Else it could keep another node's lost step waiting for days."""
    cell = Cell(runbook(rungs=(Rung(name="r", do=do),)), standing(RunState.PERFORMING))
    ctx = cell.ctx()
    steps.progress(ctx, StepProgress(id="g", step="inc-1.r1.s1.a1", elapsed_s=1, text="at work", node=node))
    assert (cell.run.heard_at == NOW) == heard == (cell.run.steps[-1].doing == "at work")
    assert ("run:inc-1.r1" in cell.state.timers) == heard


# Verification


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
    assert deaf.notes("run.not_verified") == ["r did not help: n1 is not heard"]


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


# Timers and leaders


@pytest.mark.parametrize(
    ("givens", "what"),
    [
        pytest.param([standing(RunState.PERFORMING)], [], id="silent, probe: only waited for"),
        pytest.param(
            [runbook(rungs=(Rung(name="r", do=SAFE),)), standing(RunState.PERFORMING)],
            ["perform"],
            id="silent, safe: asked again",
        ),
        pytest.param(
            [runbook(rungs=(Rung(name="r", do=SAFE),)), standing(RunState.CANCELLING)],
            [],
            id="silent, safe, but not wanted any more",
        ),
    ],
)
def test_a_step_without_a_sign_of_life(givens: list[Given], what: list[str]) -> None:
    """Before its deadline: asked again under its own id if that is safe; looked at again in any case."""
    cell = Cell(*givens)
    state = cell.run.state
    ctx = cell.ctx()
    steps.timer(ctx, cell.run)
    assert ["perform" for effect in ctx.effects if isinstance(effect, Perform)] == what
    assert cell.run.state is state
    assert cell.state.timers == {"run:inc-1.r1": NOW + 45}


@pytest.mark.parametrize(("deadline", "over"), [(NOW + 0.1, False), (NOW, True), (NOW - 1, True)])
def test_a_step_that_never_answers(deadline: float, over: bool) -> None:
    """At its deadline it is taken for unknown, and its class decides."""
    cell = Cell(standing(RunState.PERFORMING, deadline=deadline))
    steps.timer(cell.ctx(), cell.run)
    assert cell.run.steps[-1].outcome == ("unknown" if over else "")
    assert (cell.run.state is RunState.PERFORMING) != over


@pytest.mark.parametrize(
    ("do", "state", "asked", "then"),
    [
        pytest.param(
            PROBE, RunState.INTENT, "intent", RunState.INTENT, id="its intent may be lost: written again"
        ),
        pytest.param(
            SAFE, RunState.PERFORMING, "intent", RunState.PERFORMING, id="safe: asked again under the same id"
        ),
        pytest.param(
            PROBE, RunState.PERFORMING, "", RunState.VERIFYING, id="probe: looked at, as nobody knows"
        ),
        pytest.param(NEVER, RunState.PERFORMING, "", RunState.VERIFYING, id="never: looked at, not repeated"),
        pytest.param(
            SAFE, RunState.CANCELLING, "cancel", RunState.CANCELLING, id="not wanted any more: told so again"
        ),
        pytest.param(SAFE, RunState.VERIFYING, "", RunState.VERIFYING, id="a verification goes on"),
        pytest.param(SAFE, RunState.HELD, "", RunState.HELD, id="what waits goes on waiting"),
        pytest.param(
            SAFE, RunState.APPROVAL, "", RunState.APPROVAL, id="what waits for a person goes on waiting"
        ),
        pytest.param(SAFE, RunState.SUCCEEDED, "", RunState.SUCCEEDED, id="what is over is over"),
    ],
)
def test_what_a_new_leader_does_with_a_step(do: str, state: RunState, asked: str, then: RunState) -> None:
    """Law 4: a step without a result is done again, looked at first, or never repeated, by its class."""
    cell = Cell(runbook(rungs=(Rung(name="r", do=do, verify=QUIET),)), standing(state))
    cell.run.why = "a reason"
    cell.state.timers["run:inc-1.r1"] = NOW + 20
    ctx = cell.ctx()
    steps.new_leader(ctx, cell.run)
    kinds = {WriteIntent: "intent", CancelStep: "cancel", Perform: "perform"}
    done = [
        (kinds[type(effect)], effect.step.id)
        for effect in ctx.effects
        if isinstance(effect, (WriteIntent, CancelStep, Perform))
    ]
    assert done == ([(asked, "inc-1.r1.s1.a1")] if asked else [])
    assert cell.run.state is then
    if state is RunState.PERFORMING and then is not state:
        assert cell.state.timers.get("run:inc-1.r1") != NOW + 20, "the old leader's patience is over"


def test_a_new_leader_takes_over_in_the_middle_of_a_story() -> None:
    """The bounce is asked again under its own id, and its answer counts once."""
    it = Climb(rung("r", SAFE, verify=QUIET), NEXT, mode=Mode.AUTO)
    it.time.feed(Leader(id="l2", epoch=2, brain="b2"), it.time.now)
    it.wait(0)
    assert it.steps == ["s1.a1", "s1.a1"]
    it.answer("ok")
    it.link(up=True)
    it.wait(11)
    assert it.state.value == "succeeded"
    it.time.feed(StepProgress(id="p", step=it.performed[0].step.id, elapsed_s=1, text="late"), it.time.now)
    it.wait(0)
    assert it.notes("step.progress") == []
    assert it.performed[0].step.params == {"link": LINK}
