"""Runs: what waits and what people hear of it, how one is ended, and what is our own work."""

from dataclasses import replace

import pytest

from brain.core.effects import CancelStep
from brain.core.healing import blame, runs
from brain.core.inputs import StepPlan
from brain.core.pack.spec import Mode, Runbook, Rung
from brain.core.state import Run, RunState, StepRecord
from tests.brain.core.cell import GPU, LADDER, NOW, Cell, Given
from tests.brain.core.climb import QUIET, Climb, rung
from tests.brain.core.givens import sick
from tests.brain.test_return_to_service import World
from tests.brain.world import pack


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
    behind = blame.run_behind(cell.ctx(), cell.incident)
    assert (behind is not None) == ours


def test_a_node_that_was_never_heard_is_not_our_work() -> None:
    """Nothing is known of it."""
    assert blame.run_behind(Cell(doing(P, "node.reboot")).ctx(), Cell().incident) is None


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
