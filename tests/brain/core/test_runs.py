"""Runs: the way along the ladder, what is skipped, what waits and what people hear of it, and how one ends."""

from dataclasses import replace

import pytest

from brain.core.effects import WriteIntent
from brain.core.healing import run_states, runs
from brain.core.healing.run_states import OVER, TRANSITIONS, RunTrigger
from brain.core.pack.spec import Runbook, Rung, Verify
from brain.core.state import Node, RunState, StepRecord
from tests.brain.core.cell import GPU, LADDER, NOW, Cell
from tests.brain.core.climb import LINK, QUIET, Climb, rung
from tests.brain.test_return_to_service import World
from tests.brain.world import pack

COLLECT = Rung(name="collect", do="evidence.collect", params={"component": "node"})
RESUME = rung("resume", "scheduler.resume", retries=1)


# The table


@pytest.mark.parametrize("state", RunState)
@pytest.mark.parametrize("event", RunTrigger)
def test_a_run_goes_along_its_table_and_no_other_way(state: RunState, event: RunTrigger) -> None:
    """Where the table has no arrow somebody has made a mistake, and it is not hidden."""
    cell = Cell()
    cell.run.state = state
    if (state, event) in TRANSITIONS:
        run_states.transition(cell.ctx(), cell.run, event, "for a reason")
        assert (cell.run.state, cell.run.why) == (TRANSITIONS[state, event], "for a reason")
    else:
        with pytest.raises(KeyError):
            run_states.transition(cell.ctx(), cell.run, event, "for a reason")
        assert cell.run.state is state


def test_what_is_over_stays_over() -> None:
    """No arrow leads out of a run that has ended, and one out of every other state; a run begins as held."""
    assert {state for state, _ in TRANSITIONS} == set(RunState) - set(OVER)
    assert {RunState.HELD, *TRANSITIONS.values()} == set(RunState)


@pytest.mark.parametrize("claimed", [True, False])
def test_what_a_run_leaves_behind(claimed: bool) -> None:
    """Its node is free again; what was disruptive counts as a try for a day of the runbook's, what was not does not."""
    cell = Cell()
    cell.run.claimed = cell.run.disrupted = claimed
    cell.state.timers["run:inc-1.r1"] = NOW + 5
    ctx = cell.ctx()
    run_states.transition(ctx, cell.run, RunTrigger.CANCELLED, "not wanted any more")
    key = f"reset-gpu@gpu-lost@{GPU}"
    assert (cell.run.ended_at, cell.run.claimed, ctx.index.claims) == (NOW, False, {})
    assert cell.state.tries == ({key: [NOW]} if claimed else {})
    assert cell.state.timers == ({f"tries:{key}": NOW + LADDER.tries_within_s} if claimed else {})
    assert ctx.ended == [cell.run]


@pytest.mark.parametrize(
    ("tried_s_ago", "left_s_ago", "again_in_s"),
    [
        pytest.param([3600], [], None, id="its window is just over"),
        pytest.param([3599.9], [3599.9], 0.101, id="not quite"),
        pytest.param([9000, 8000], [], None, id="long over"),
        pytest.param(
            [9000, 600, 60], [600, 60], 3000.001, id="the first is over: looked at again when the next one is"
        ),
    ],
)
def test_tries_are_forgotten_with_their_window(
    tried_s_ago: list[float], left_s_ago: list[float], again_in_s: float | None
) -> None:
    """Law 8 has an end: an hour after a try it counts no more, and law forget: nothing is kept of it."""
    key = "reset-gpu@service-failed@service/n1/user@1000.service"
    cell = Cell()
    cell.state.tries[key] = [NOW - ago for ago in tried_s_ago]
    run_states.forget_tries(cell.ctx(), key)
    assert cell.state.tries == ({key: [NOW - ago for ago in left_s_ago]} if left_s_ago else {})
    assert cell.state.timers == (
        {} if again_in_s is None else {f"tries:{key}": pytest.approx(NOW + again_in_s, abs=1e-6)}
    )


@pytest.mark.parametrize("key", ["gone@gpu-lost@node/n1", "reset-gpu@gpu-lost@node/n1"])
def test_tries_that_nobody_knows_are_forgotten(key: str) -> None:
    """The runbook was removed, or the tries were: the timer that is left does no harm."""
    cell = Cell()
    if key.startswith("gone"):
        cell.state.tries[key] = [NOW - 0.5]
    run_states.forget_tries(cell.ctx(), key)
    assert (cell.state.tries, cell.state.timers) == ({}, {})


# Along the ladder


@pytest.mark.parametrize(
    ("when", "steps"),
    [
        pytest.param({}, ["s1.a1"], id="no precheck"),
        pytest.param({"node_alive": True}, ["s1.a1"], id="its precheck is met"),
        pytest.param({"node_alive": False}, ["s2.a1"], id="its precheck is not met: skipped"),
        pytest.param({"symptom": "link_flaps"}, ["s2.a1"], id="a symptom that is not there: skipped"),
        pytest.param({"symptom": "link_down"}, ["s1.a1"], id="a symptom that is there"),
    ],
)
def test_a_rung_has_a_precheck(when: dict[str, object], steps: list[str]) -> None:
    """Judged when the rung would begin, on the situation at the run's scope."""
    assert Climb(rung("a", when=when), rung("b")).steps == steps


def test_nothing_disruptive_once_the_fault_is_gone() -> None:
    """The link came up while evidence was collected: it is not bounced; and what disturbs nothing is done all the same."""
    it = Climb(COLLECT, replace(COLLECT, name="more"), rung("bounce"), return_to_service=(RESUME,))
    it.link(up=True)
    it.answer("ok")
    assert it.steps == ["s1.a1", "s2.a1"]
    it.answer("ok")
    assert (it.steps, it.state.value) == (["s1.a1", "s2.a1"], "succeeded")
    assert it.climber.why == "the fault is gone: nothing disruptive is needed"


def test_the_way_back_is_gone_although_the_fault_is_gone() -> None:
    """Even a rung that disrupts: the node was disturbed, so it must be brought back."""
    it = Climb(rung("a", verify=QUIET), return_to_service=(rung("undo", "service.restart"), RESUME))
    it.answer("ok")
    it.link(up=True)
    it.wait(10.1)
    assert it.steps == ["s1.a1", "b1.a1"]
    it.answer("ok")
    assert it.steps == ["s1.a1", "b1.a1", "b2.a1"]
    it.answer("ok")
    assert (it.state.value, it.climber.why.endswith("; back in service")) == ("succeeded", True)


def test_attempts_do_not_pass_from_rung_to_rung() -> None:
    """The second attempt of a rung that then passes; the next one begins with its first."""
    it = Climb(rung("a", retries=1), rung("b", when={"node_alive": False}), rung("c", retries=1))
    it.answer("failed")
    it.answer("failed")
    assert it.steps == ["s1.a1", "s1.a2", "s3.a1"]


def test_a_rung_that_is_skipped_on_its_second_attempt() -> None:
    """Its precheck is judged anew each time; the next rung begins with its own first attempt."""
    it = Climb(rung("a", when={"symptom": "link_down"}, retries=1), COLLECT)
    it.link(up=True)
    it.answer("failed")
    assert it.steps == ["s1.a1", "s2.a1"]


@pytest.mark.parametrize(
    ("gone", "falls", "steps"),
    [
        pytest.param((), LINK, ["s1.a1", "b1.a1", "s2.a1"], id="the fault came back: on up the ladder"),
        pytest.param((), "link/eth9", ["s1.a1", "b1.a1", "b1.a2"], id="another link's fault is none of it"),
        pytest.param(
            ("link_down",),
            LINK,
            ["s1.a1", "b1.a1", "s2.a1"],
            id="the symptom that the rung answers for came back",
        ),
        pytest.param(
            ("link_flaps",), LINK, ["s1.a1", "b1.a1", "b1.a2"], id="one that it does not answer for is there"
        ),
    ],
)
def test_what_brings_a_run_back_onto_the_ladder(gone: tuple[str, ...], falls: str, steps: list[str]) -> None:
    """On the way back: are the symptoms there again that the rung which worked had to make go away?"""
    it = Climb(rung("a", verify=replace(QUIET, gone=gone)), rung("b"), return_to_service=(RESUME,))
    it.answer("ok")
    it.link(up=True)
    it.wait(10.1)
    it.link(up=False, name=falls)
    it.answer("failed")
    assert it.steps == steps
    on_the_ladder = steps[-1] == "s2.a1"
    assert it.performed[-1].step.action == ("link.bounce" if on_the_ladder else "scheduler.resume")


def test_a_fault_that_comes_back_in_the_last_moment() -> None:
    """The node was returned, and while it was the link fell again: jobs may run there, so the ladder begins anew at once."""
    it = Climb(rung("a", verify=QUIET), rung("b"), return_to_service=(RESUME,))
    it.answer("ok")
    it.link(up=True)
    it.wait(10.1)
    it.link(up=False)
    it.answer("ok")
    it.wait(0)
    assert [one.step.id.partition(".")[2] for one in it.performed] == ["r1.s1.a1", "r1.b1.a1", "r2.s1.a1"]


@pytest.mark.parametrize(("support", "begins"), [({}, "b1.a1"), ({"gpu-lost@node/n1": "gpu-lost"}, "s2.a1")])
def test_a_symptom_that_makes_no_fault_any_more_brings_nothing_back(
    support: dict[str, str], begins: str
) -> None:
    """The rule is not true any more: one of the symptoms that it needs is gone, the other may stay."""
    cell = Cell()
    cell.run.runbook = replace(LADDER, return_to_service=(RESUME,))
    cell.run.worked, cell.run.back_to, cell.run.state = "it helped", 1, RunState.VERIFYING
    cell.incident.matching_rules = support
    cell.state.nodes["n1"] = Node(name="n1")
    cell.run.looked_at = NOW
    ctx = cell.ctx()
    runs.proceed(ctx, cell.run)
    (intent,) = [effect for effect in ctx.effects if isinstance(effect, WriteIntent)]
    assert intent.step.id == f"inc-1.r1.{begins}"


def test_the_rung_that_worked_decides_and_not_the_first() -> None:
    """Two rungs answer for different symptoms: the second one worked, and its symptom is what must stay away."""
    first = rung("a", verify=Verify(within_s=5, for_s=1, gone=("link_flaps", "link_down")))
    it = Climb(
        first, rung("b", verify=replace(QUIET, gone=("link_flaps",))), rung("c"), return_to_service=(RESUME,)
    )
    it.answer("ok")
    it.wait(6)
    assert it.steps == ["s1.a1", "s2.a1"]
    it.answer("ok")
    it.wait(10.1)
    assert it.steps == ["s1.a1", "s2.a1", "b1.a1"], "the link is down still, and that is not b's to mend"
    it.answer("failed")
    assert it.steps == ["s1.a1", "s2.a1", "b1.a1", "b1.a2"]


def test_when_the_fault_went_by_itself_each_of_its_symptoms_brings_it_back() -> None:
    """No rung has worked, so none says which symptoms count: the last one's does not."""
    cell = Cell()
    rungs = (LADDER.rungs[0], replace(LADDER.rungs[1], verify=replace(QUIET, gone=("hot",))))
    cell.run.runbook = replace(LADDER, rungs=rungs, return_to_service=(RESUME,))
    cell.run.worked, cell.run.back_to, cell.run.state = "the fault is gone", 0, RunState.PERFORMING
    cell.incident.matching_rules = {"gpu-lost@node/n1": "gpu-lost"}
    runs.proceed(cell.ctx(), cell.run)
    assert (cell.run.worked, cell.run.rung) == ("", 0)


def test_a_run_that_is_not_wanted_by_a_fault_does_not_go_back_up() -> None:
    """A person started it on a healthy node: on its way back no symptom is its own."""
    look = Runbook(
        name="look",
        summary="look",
        rungs=(rung("a", "gpu.diagnose"),),
        return_to_service=(RESUME,),
        request=True,
    )
    small = pack()
    story = World(replace(small, runbooks=(*small.runbooks, look)))
    story.event(0.5, "agent.started", "node")
    story.say(1, "start", runbook="look", node="n1")
    story.run(30)
    assert [action for _, action in story.actions()] == ["gpu.diagnose", "scheduler.resume"]
    assert story.run_state is RunState.SUCCEEDED


@pytest.mark.parametrize(
    ("answers", "on_refusal", "state"),
    [
        pytest.param(["ok", "ok"], "", "succeeded", id="all steps are done"),
        pytest.param(["failed", "ok"], "", "exhausted", id="a failed inspection is no success"),
        pytest.param(["failed", "ok"], "next", "exhausted", id="nor where a refusal would be"),
        pytest.param(["refused", "ok"], "", "exhausted", id="a refusal is a failure"),
        pytest.param(["refused", "ok"], "next", "succeeded", id="unless the runbook takes it for none"),
        pytest.param(["ok", "failed"], "next", "exhausted", id="the last step counts like the first"),
        pytest.param(["ok", "refused"], "next", "exhausted", id="the refusal of another rung is a failure"),
    ],
)
def test_an_inspection_has_succeeded_when_all_its_steps_are_done(
    answers: list[str], on_refusal: str, state: str
) -> None:
    """What people or a schedule started has no fault to verify: its steps are the proof."""
    cell = Cell()
    first = Rung(name="first", do="gpu.diagnose", on_refusal="next" if on_refusal else "")
    cell.run.runbook = replace(LADDER, rungs=(first, Rung(name="second", do="gpu.diagnose")))
    cell.run.requested_by, cell.run.state, cell.run.rung = "bea", RunState.PERFORMING, 2
    cell.run.steps = [
        StepRecord(id=f"s{n}", rung=name, action="gpu.diagnose", params={}, at=NOW, outcome=outcome)
        for n, (name, outcome) in enumerate(zip(("first", "second"), answers, strict=True))
    ]
    runs.proceed(cell.ctx(), cell.run)
    assert cell.run.state.value == state


def test_a_run_that_a_fault_led_to_is_no_success_because_its_steps_were_done() -> None:
    """Law 8: only a verification heals; a ladder that ends without one ends with people."""
    it = Climb(rung("a"), COLLECT)
    it.answer("ok")
    it.answer("ok")
    assert it.state is RunState.EXHAUSTED


# Pages as rungs


@pytest.mark.parametrize(
    ("params", "to", "text"),
    [
        ({}, "oncall", "bounce: tell"),
        ({"text": "look at the cable"}, "oncall", "look at the cable"),
        ({"to": "network", "text": "look at the switch"}, "network", "look at the switch"),
        ({"text": "Look at it. $done"}, "oncall", "Look at it. Nothing else was done."),
    ],
)
def test_a_rung_that_tells_people(params: dict[str, str], to: str, text: str) -> None:
    """To the group and in the words of the runbook, which stand among the run's steps as they were said."""
    it = Climb(Rung(name="tell", do="page", params=dict(params)), rung("a"))
    (page,) = [page for page in it.time.pages if page.text == text]
    assert page.to == to
    told = it.climber.steps[0]
    assert (told.rung, told.action, told.params, told.outcome, told.why) == (
        "tell",
        "page",
        params | ({"text": text} if "text" in params else {}),
        "ok",
        "paged",
    )
    assert (told.at, told.id.partition(".r1.")[2]) == (2, "s1.a1")
