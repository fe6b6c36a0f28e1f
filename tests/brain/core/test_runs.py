"""Runs: the way along the ladder, what is skipped, what waits and what people hear of it, and how one ends."""

from dataclasses import replace

import pytest

from brain.core.effects import CancelStep, WriteIntent
from brain.core.healing import runs
from brain.core.healing.runs import OVER, TRANSITIONS, RunTrigger
from brain.core.inputs import StepPlan
from brain.core.pack.spec import Mode, Runbook, Rung, Verify
from brain.core.state import Node, Run, RunState, StepRecord
from tests.brain.core.cell import GPU, LADDER, NOW, Cell, Given, sick
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
        runs.transition(cell.ctx(), cell.run, event, "for a reason")
        assert (cell.run.state, cell.run.why) == (TRANSITIONS[state, event], "for a reason")
    else:
        with pytest.raises(KeyError):
            runs.transition(cell.ctx(), cell.run, event, "for a reason")
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
    runs.transition(ctx, cell.run, RunTrigger.CANCELLED, "not wanted any more")
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
    runs.forget_tries(cell.ctx(), key)
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
    runs.forget_tries(cell.ctx(), key)
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


# What waits


def test_a_reason_to_wait_is_told_once() -> None:
    """Asked again each minute, noted when it changes: ann's hold, then bob's mode, then the approval."""
    it = Climb(rung("a"), mode=Mode.APPROVE)
    it.say(4, "hold", scope="node/n1", why="cabling")
    it.run(5)
    it.say(5, "approve", id=it.incident.id)
    it.run(400)
    held = it.notes("run.held")
    assert [text for text in held if "cabling" in text] == ["a waits: ann holds node/n1: cabling (gate hold)"]
    it.say(401, "release", scope="node/n1")
    it.run(402)
    assert it.steps == ["s1.a1"]


def test_an_approval_is_asked_for_once() -> None:
    """One page with the command to type, one plan of what would be done; asked again only when the question changes."""
    it = Climb(rung("a"), mode=Mode.APPROVE)
    why = "bounce is in approve mode"
    wanted = f"approval wanted: a (link.bounce), because {why} — gpuward approve {it.incident.id} --rung a"
    assert [page.text for page in it.time.pages].count(wanted) == 1
    for at in range(5, 60, 5):  # each word about modes lets every run ask its gates again
        it.say(at, "mode", runbook="*", mode="approve")
    it.run(60)
    assert it.state.value == "approval"
    assert [page.text for page in it.time.pages].count(wanted) == 1
    assert len(it.notes("run.approval")) == 1
    it.say(61, "hold", scope="node/n1", why="cabling")
    it.say(62, "mode", runbook="*", mode="approve")
    it.run(63)
    assert it.state.value == "held"
    it.say(70, "release", scope="node/n1")
    it.run(71)
    assert RunState(it.state) == "approval"
    assert len(it.notes("run.approval")) == 2


def test_another_question_is_asked_again() -> None:
    """It waits for an approval because its facts are old; then bea wants to be asked for everything."""
    small = pack()
    book = Runbook(name="bounce", summary="repair a link", rungs=(rung("a"),))
    story = World(replace(small, runbooks=(book,)))
    story.event(1000, "link.state", "link/eth1", up=False, age_s=300)
    story.run(1010)
    story.say(1011, "mode", runbook="*", mode="approve")
    story.run(1012)
    assert [text.partition(": ")[2] for text in story.notes("run.approval")] == [
        "its facts were over 120 s old when they arrived: the node has looked again and reports nothing new; "
        "an approval is needed (gate stale)",
        "bounce is in approve mode (gate mode)",
    ]


def test_a_void_approval_is_asked_for_anew_with_its_reason() -> None:
    """Approved under a hold, and worse when the hold ends: the question is another one."""
    it = Climb(rung("a"), mode=Mode.APPROVE, approval_s=100)
    it.say(4, "hold", scope="node/n1", why="cabling")
    it.say(5, "approve", id=it.incident.id)
    it.say(200, "release", scope="node/n1")
    it.run(201)
    assert it.notes("run.approval")[-1] == (
        "a waits: bounce is in approve mode; the approval of ann is void: its time is over (gate mode)"
    )


@pytest.mark.parametrize(("ok", "text"), [(True, "one; two"), (False, "would be refused: one; two")])
def test_what_would_be_done(ok: bool, text: str) -> None:
    """The one who would do it says it, or that he would refuse."""
    it = Climb(rung("a"), mode=Mode.APPROVE)
    step = f"{it.climber.id}.s1.a1"
    for asked in (step, f"{it.climber.id}.s2.a1", "inc-9.r1.s1.a1"):
        it.time.feed(StepPlan(id=f"p-{asked}", step=asked, ok=ok, lines=("one", "two")), it.time.now)
    it.wait(0)
    assert it.notes("step.plan") == [text], "and only what was asked for"


def test_a_rehearsal_begins_nothing_and_can_begin_anew() -> None:
    """Observe mode asks for the plan of every rung but the pages, and the run stands at its first rung."""
    it = Climb(rung("a"), Rung(name="tell", do="page"), rung("c"), mode=Mode.OBSERVE)
    asked = [step.partition(".r1.")[2] for step in it.climber.asked]
    assert (it.steps, asked, it.climber.rung, it.state.value) == ([], ["s1.a1", "s3.a1"], 0, "observed")


# How a run is ended


@pytest.mark.parametrize(
    ("state", "then", "told_to_stop"),
    [
        (RunState.HELD, RunState.CANCELLED, False),
        (RunState.APPROVAL, RunState.CANCELLED, False),
        (RunState.INTENT, RunState.CANCELLED, False),
        (RunState.VERIFYING, RunState.CANCELLED, False),
        (RunState.PERFORMING, RunState.CANCELLING, True),
        (RunState.CANCELLING, RunState.CANCELLING, False),
        (RunState.SUCCEEDED, RunState.SUCCEEDED, False),
        (RunState.EXHAUSTED, RunState.EXHAUSTED, False),
        (RunState.OBSERVED, RunState.OBSERVED, False),
        (RunState.CANCELLED, RunState.CANCELLED, False),
    ],
)
def test_cancelling(state: RunState, then: RunState, told_to_stop: bool) -> None:
    """What waits is over at once; a step under way is told to stop and waited for; what is over stays as it is."""
    cell = Cell()
    cell.run.steps = [
        StepRecord(id="inc-1.r1.s1.a1", rung="reset", action="gpu.reset", params={}, at=NOW - 5)
    ]
    cell.run.state, cell.run.why, cell.run.deadline = state, "a reason", NOW + 300
    ctx = cell.ctx()
    runs.cancel(ctx, cell.run, "bea says no")
    assert cell.run.state is then
    assert cell.run.why == ("a reason" if then is state else "bea says no")
    told = [(effect.step.id, effect.why) for effect in ctx.effects if isinstance(effect, CancelStep)]
    assert told == ([("inc-1.r1.s1.a1", "bea says no")] if told_to_stop else [])
    assert cell.state.timers.get("run:inc-1.r1") == (NOW + 45 if told_to_stop else None)


# What is our own work


def doing(
    state: RunState, *actions: str, node: str = "n1", incident: str = "inc-2", claimed: bool = True
) -> Given:
    """Another run, which has done these steps; the last one may be under way."""

    def given(cell: Cell) -> None:
        name = f"{incident}.r{len(cell.state.runs) + 1}"
        cell.state.runs[name] = Run(
            id=name,
            incident=incident,
            runbook=LADDER,
            pack="p",
            scope=f"node/{node}",
            node=node,
            params={},
            state=state,
            started_at=NOW - 60,
            claimed=claimed,
            steps=[
                StepRecord(id=f"{name}.{n}", rung="r", action=action, params={}, at=NOW)
                for n, action in enumerate(actions)
            ],
        )

    return given


P, V, C = RunState.PERFORMING, RunState.VERIFYING, RunState.CANCELLING


@pytest.mark.parametrize(
    ("alive", "givens", "ours"),
    [
        pytest.param(True, [], False, id="nothing is under way"),
        pytest.param(False, [], False, id="nothing is under way, and the node is silent"),
        # What takes the node or its parts away.
        pytest.param(True, [doing(P, "node.reboot")], True, id="a reboot"),
        pytest.param(False, [doing(P, "node.reboot")], True, id="a reboot, and the node is silent"),
        pytest.param(True, [doing(C, "node.reboot")], True, id="a reboot that is to be stopped"),
        pytest.param(True, [doing(RunState.INTENT, "node.reboot")], False, id="a reboot that has not begun"),
        pytest.param(True, [doing(P, "gpu.reset")], True, id="a reset takes the GPU away"),
        pytest.param(True, [doing(P, "sm.stop_master")], True, id="what disturbs the fabric"),
        pytest.param(True, [doing(P, "service.restart")], False, id="what disturbs a job only"),
        pytest.param(True, [doing(P, "evidence.collect")], False, id="what disturbs nothing"),
        pytest.param(
            True, [doing(P, "scheduler.drain")], False, id="a drain: it heals nothing and takes nothing away"
        ),
        pytest.param(
            True,
            [doing(P, "bmc.power_off")],
            True,
            id="switched off: it heals nothing, but it takes the node away",
        ),
        pytest.param(
            True, [doing(P, "scheduler.drain", "node.reboot")], True, id="its newest step counts: the reboot"
        ),
        pytest.param(
            True, [doing(P, "node.reboot", "scheduler.drain")], False, id="its newest step counts: the drain"
        ),
        # What is not back yet.
        pytest.param(False, [doing(V, "node.reboot")], True, id="not back from a reboot"),
        pytest.param(True, [doing(V, "node.reboot")], False, id="back from a reboot"),
        pytest.param(False, [doing(V, "gpu.reset")], False, id="a reset does not silence a node"),
        pytest.param(
            False, [doing(RunState.HELD, "node.reboot")], False, id="a run that waits explains nothing"
        ),
        # Whose work it is.
        pytest.param(True, [doing(P, "node.reboot", node="n2")], False, id="on another node"),
        pytest.param(True, [doing(P, "node.reboot", incident="inc-1")], False, id="of this very incident"),
        pytest.param(
            True, [doing(P, "node.reboot", node="n2"), doing(P, "node.reboot")], True, id="elsewhere and here"
        ),
        pytest.param(
            True, [doing(P), doing(P, "node.reboot")], True, id="one that has done nothing, and one that has"
        ),
        pytest.param(
            True,
            [doing(P, "older.action"), doing(P, "node.reboot")],
            True,
            id="a step that we do not know, and one that we do",
        ),
        pytest.param(True, [doing(P, "older.action")], False, id="a step that we do not know"),
        # What we have left switched off.
        pytest.param(
            False, [doing(RunState.EXHAUSTED, "bmc.power_off", claimed=False)], True, id="left switched off"
        ),
        pytest.param(
            True,
            [doing(RunState.EXHAUSTED, "bmc.power_off", claimed=False)],
            False,
            id="left switched off, and on again",
        ),
        pytest.param(
            False,
            [doing(RunState.EXHAUSTED, "bmc.power_off", node="n2", claimed=False)],
            False,
            id="another node was",
        ),
        pytest.param(
            False,
            [doing(RunState.EXHAUSTED, "bmc.power_off", incident="inc-1", claimed=False)],
            False,
            id="by this very incident",
        ),
        pytest.param(
            False,
            [doing(RunState.HELD, "bmc.power_off", claimed=False)],
            False,
            id="by a run that is not over",
        ),
        pytest.param(
            False,
            [doing(RunState.EXHAUSTED, "bmc.power_off", "bmc.evidence", claimed=False)],
            True,
            id="and looked at then",
        ),
        pytest.param(
            False,
            [doing(RunState.EXHAUSTED, "bmc.power_off", "bmc.power_on", claimed=False)],
            False,
            id="and switched on then",
        ),
        pytest.param(
            False,
            [doing(RunState.EXHAUSTED, "bmc.power_off", "older.action", claimed=False)],
            True,
            id="and something unknown then",
        ),
        pytest.param(
            False, [doing(RunState.EXHAUSTED, "scheduler.drain", claimed=False)], False, id="only drained"
        ),
        pytest.param(
            False,
            [doing(RunState.EXHAUSTED, "node.reboot", claimed=False)],
            False,
            id="rebooted, and that is over",
        ),
        pytest.param(
            False, [doing(RunState.EXHAUSTED, "bmc.evidence", claimed=False)], False, id="only looked at"
        ),
        pytest.param(False, [doing(RunState.EXHAUSTED, claimed=False)], False, id="nothing done at all"),
    ],
)
def test_what_is_our_own_work(alive: bool, givens: list[Given], ours: bool) -> None:
    """What begins on a node while we take it or its parts away, before it is back, or because we left it off."""
    cell = Cell(*givens)
    cell.boots(NOW - 9000)
    cell.state.nodes["n1"].alive = alive
    behind = runs.run_behind(cell.ctx(), cell.incident)
    assert (behind is not None) == ours


def test_a_node_that_was_never_heard_is_not_our_work() -> None:
    """Nothing is known of it."""
    assert runs.run_behind(Cell(doing(P, "node.reboot")).ctx(), Cell().incident) is None


@pytest.mark.parametrize(
    ("rung_", "there"),
    [
        (None, [f"off_bus@{GPU}", f"hot@{GPU}", "hot@service/n1/user@1000.service"]),
        (rung("r"), [f"off_bus@{GPU}", f"hot@{GPU}", "hot@service/n1/user@1000.service"]),
        (rung("r", verify=QUIET), [f"off_bus@{GPU}", f"hot@{GPU}", "hot@service/n1/user@1000.service"]),
        (rung("r", verify=replace(QUIET, gone=("hot",))), [f"hot@{GPU}", "hot@service/n1/user@1000.service"]),
        (rung("r", verify=replace(QUIET, gone=("cold",))), []),
    ],
)
def test_which_of_the_incidents_symptoms_are_there(rung_: Rung | None, there: list[str]) -> None:
    """Active ones of the incident, of those that the rung must make go away; a name is what stands before the first `@`."""
    cell = Cell(
        sick(GPU, "hot"),
        sick("service/n1/user@1000.service", "hot"),
        sick(GPU, "cold"),
        sick(GPU, "half_way"),
    )
    cell.state.symptoms[f"half_way@{GPU}"].active = False
    names = [
        f"off_bus@{GPU}",
        f"hot@{GPU}",
        f"half_way@{GPU}",
        f"forgotten@{GPU}",
        "hot@service/n1/user@1000.service",
    ]
    cell.incident.symptoms = names
    assert runs.still_active(cell.ctx(), cell.run, rung_) == there
