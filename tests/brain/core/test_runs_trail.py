"""Runs: what the trail says of each turn, what people are told, and what is seen of it."""

import pytest

from brain.core.effects import AskPlan, ShowRun, WriteIntent
from brain.core.healing import run_states, runs
from brain.core.inputs import StepPlan
from brain.core.pack.spec import Mode, Rung, Verify
from brain.core.state import RunState
from tests.brain.core.cell import NOW, Cell
from tests.brain.core.climb import LINK, QUIET, Climb, rung
from tests.brain.core.givens import held, site_sets, tried

COLLECT = Rung(name="collect", do="evidence.collect", params={"component": "node"})
RESUME = rung("resume", "scheduler.resume")


def lasts(cell: Cell) -> None:
    """A rule still matches: the fault is there."""
    cell.incident.matching_rules = {"gpu-lost@node/n1": "gpu-lost"}


def turns(it: Climb) -> list[str]:
    """What the trail says of the run and its steps; each line names the incident, the run and where it is."""
    notes = [note for note in it.time.notes if note.kind.startswith(("run.", "step."))]
    assert {(note.incident, note.run, note.scope) for note in notes} == {
        (it.incident.id, it.climber.id, "link/n1/eth1")
    }
    return [f"{note.kind}: {note.text}" for note in notes]


def test_the_trail_of_a_run_that_heals() -> None:
    """From its start, over a rung whose precheck is not met and one that did not help, to the return to service."""
    it = Climb(
        rung("never", when={"node_alive": False}),
        rung("first", verify=Verify(within_s=20, for_s=10)),
        rung("second", "nic.reset", verify=QUIET),
        return_to_service=(RESUME,),
    )
    it.answer("ok")
    it.wait(20.1)
    it.answer("ok")
    it.link(up=True)
    it.wait(10.1)
    it.answer("ok")
    assert turns(it) == [
        "run.started: bounce: repair a link",
        "run.skipped: never: its precheck is not met",
        "run.held: first waits: it is not known yet whether other nodes show it too (gate settling)",
        "run.intent: first: link.bounce (attempt 1)",
        "run.performing: link.bounce on n1",
        "step.result: first: ok: so it is",
        "run.verifying: first is done; verifying that the symptoms are gone",
        "run.not_verified: first did not help: link_down@link/n1/eth1 still there",
        "run.intent: second: nic.reset (attempt 1)",
        "run.performing: nic.reset on n1",
        "step.result: second: ok: so it is",
        "run.verifying: second is done; verifying that the symptoms are gone",
        "run.looked: n1 has looked again: looked",
        "run.returning: second worked: the symptoms have been gone for 10 s",
        "run.intent: resume: scheduler.resume (attempt 1)",
        "run.performing: scheduler.resume on n1",
        "step.result: resume: ok: so it is",
        "run.succeeded: second worked: the symptoms have been gone for 10 s; back in service",
    ]


def test_the_trail_of_a_run_whose_fault_comes_back() -> None:
    """On its way back, before it is given back: it says why it goes on up the ladder."""
    test = Rung(name="test", do="port.check")
    it = Climb(rung("first", verify=QUIET), return_to_service=(test, RESUME))
    it.answer("ok")
    it.link(up=True)
    it.wait(10.1)
    it.link(up=False)
    it.answer("ok")
    assert turns(it)[-2:] == [
        "run.not_verified: the fault came back before the node was back in service",
        "run.exhausted: no rung of the ladder is left: a person must take it from here",
    ]


def test_the_trail_of_a_run_that_has_no_way_back() -> None:
    """A disruptive rung has worked, and nothing is left to do: nobody says that the node was brought back."""
    it = Climb(rung("first", verify=QUIET))
    it.answer("ok")
    it.link(up=True)
    it.wait(10.1)
    assert turns(it)[-1] == "run.succeeded: first worked: the symptoms have been gone for 10 s"


@pytest.mark.parametrize("ok", [True, False])
def test_the_plan_of_a_step_in_the_trail(*, ok: bool) -> None:
    """Of the step that was asked about, line by line, and whether it would be done; of no other."""
    it = Climb(rung("bounce"), mode=Mode.APPROVE)
    step = f"{it.climber.id}.s1.a1"
    for other in (f"{it.climber.id}.s2.a1", step):
        it.time.feed(StepPlan(id=f"p-{other}", step=other, ok=ok, lines=("one", "two")), it.time.now)
    it.wait(0)
    assert turns(it)[-1].startswith("step.plan: ")
    (note,) = [note for note in it.time.notes if note.kind == "step.plan"]
    assert note.data == {"step": step, "lines": ["one", "two"], "ok": ok}


def test_what_the_trail_says_of_the_plan() -> None:
    """The runbook's name, and a line for each of its rungs."""
    it = Climb(COLLECT, rung("bounce"))
    (started,) = [note for note in it.time.notes if note.kind == "run.started"]
    assert started.data["runbook"] == "bounce"
    plan = started.data["plan"]
    assert isinstance(plan, list)
    assert [line.partition(":")[0] for line in plan] == ["1. collect", "2. bounce"]


def test_what_a_run_is() -> None:
    """Where, of which rules' version, since when, who asked for it, and the values for its parameters."""
    it = Climb(rung("bounce"))
    run = it.climber
    assert (run.id, run.incident) == (f"{it.incident.id}.r1", it.incident.id)
    assert (run.scope, run.node, run.pack) == ("link/n1/eth1", "n1", "p1")
    assert (run.started_at, run.requested_by) == (2, "")
    assert (run.params["incident"], run.params["cause"]) == (it.incident.id, "link-down")
    assert [(step.id, step.rung, step.action, step.params, step.at) for step in run.steps] == [
        (f"{run.id}.s1.a1", "bounce", "link.bounce", {"link": LINK}, 3)
    ]


def test_who_asked_for_a_run() -> None:
    """A person's name, or none; and nothing starts when the rules know no such runbook any more."""
    cell = Cell(site_sets("observe"))
    asked = runs.start(cell.ctx(), cell.incident, "bea")
    assert asked is not None
    assert (asked.requested_by, asked.started_at) == ("bea", NOW)
    by_itself = runs.start(cell.ctx(), cell.incident)
    assert by_itself is not None
    assert (by_itself.requested_by, by_itself.id) == ("", "inc-1.r2")
    assert [*cell.incident.runs] == [asked.id, by_itself.id]
    cell.incident.runbook = "gone"
    assert runs.start(cell.ctx(), cell.incident) is None
    assert len(cell.incident.runs) == 2
    instead = runs.start(cell.ctx(), cell.incident, "bea", "reset-gpu")
    assert instead is not None
    assert instead.runbook.name == "reset-gpu"


def test_a_run_is_seen_at_every_turn() -> None:
    """In its new form."""
    cell = Cell()
    ctx = cell.ctx()
    run_states.transition(ctx, cell.run, run_states.RunTrigger.CANCELLED, "bea says no")
    assert [effect.run for effect in ctx.finish() if isinstance(effect, ShowRun)] == [cell.run]


def test_a_gate_that_holds_is_asked_again() -> None:
    """After its own time; the run says what it waits for, and nothing was begun."""
    cell = Cell(lasts, held("node/n1"))
    ctx = cell.ctx()
    runs.proceed(ctx, cell.run)
    assert (cell.run.state, cell.run.claimed, cell.run.steps) == (RunState.HELD, False, [])
    assert cell.run.why == "reset waits: bea holds node/n1: cabling (gate hold)"
    assert cell.state.timers == {"run:inc-1.r1": NOW + 600}
    assert not [effect for effect in ctx.effects if isinstance(effect, WriteIntent)]


def test_a_gate_that_stops_a_run() -> None:
    """The remedy was tried twice within the hour: nothing is begun, and a person must take it from here."""
    cell = Cell(lasts, tried(60, 120))
    ctx = cell.ctx()
    runs.proceed(ctx, cell.run)
    assert (cell.run.state, cell.run.claimed, cell.run.steps) == (RunState.EXHAUSTED, False, [])
    assert cell.run.why.endswith(": a person must take it from here")
    assert cell.state.timers == {}
    assert not [effect for effect in ctx.effects if isinstance(effect, WriteIntent)]


def test_a_plan_of_what_would_be_done_is_asked_for_with_the_approval() -> None:
    """Of that step, once, although the question may be asked again; and people are paged with the command to type."""
    it = Climb(rung("bounce"), mode=Mode.APPROVE)
    it.say(5, "hold", scope="node/n1", why="cabling")
    it.say(6, "mode", runbook="*", mode="approve")
    it.say(7, "release", scope="node/n1")
    it.run(30)
    asked = [effect.step.id for effect in it.effects if isinstance(effect, AskPlan)]
    assert asked == [f"{it.climber.id}.s1.a1"]
    (page, *_) = [page for page in it.time.pages if "approval wanted" in page.text]
    assert (page.to, page.what) == ("oncall", "update")


def test_a_page_of_a_runbook_is_an_update_of_its_alert() -> None:
    """Those on call have the alert already."""
    it = Climb(Rung(name="tell", do="page"), rung("bounce"))
    assert [(page.what, page.to, page.text) for page in it.time.pages] == [
        ("open", "oncall", "because of link-down"),
        ("update", "oncall", "bounce: tell"),
    ]


def test_a_disruptive_step_claims_its_node() -> None:
    """Once for the whole run; what disrupts nothing claims none."""
    cell = Cell(lasts)
    runs.proceed(cell.ctx(), cell.run)
    assert cell.run.claimed
    assert cell.run.state is RunState.INTENT
    gentle = Cell()
    gentle.run.runbook = type(gentle.run.runbook)(name="look", summary="look", rungs=(COLLECT,))
    runs.proceed(gentle.ctx(), gentle.run)
    assert not gentle.run.claimed
    assert gentle.run.state is RunState.INTENT


def test_a_run_in_observe_mode_says_so() -> None:
    """It is over at once, and each rung's plan was asked for."""
    it = Climb(rung("a"), rung("b"), mode=Mode.OBSERVE)
    assert (
        turns(it)[-1]
        == "run.observed: bounce is in observe mode here: nothing is done, this is what would be"
    )
    assert [effect.step.id for effect in it.effects if isinstance(effect, AskPlan)] == it.climber.asked
    assert len(it.climber.asked) == 2
    assert it.climber.ended_at == 2
