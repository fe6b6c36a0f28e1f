"""The gate that asks the scheduler: never a protected job without an approval, and what is not known is protected."""

from collections.abc import Iterable

import pytest

from brain.core.effects import AskJobs, Effect
from brain.core.healing import gates
from brain.core.healing.verdicts import Case, Verdict
from brain.core.inputs import Input, JobsAnswer
from tests.brain.core.cell import NOW, Cell, Given, ask_a_person, table, wait
from tests.brain.core.givens import approved, asked_for, on, scheduler_says, site, started_by
from tests.brain.world import Story, pack

SCHEDULER = site(ask_jobs=True)
PROTECTED = scheduler_says(("j1",), protected="j1 (of vip)")
ASKING = wait("protected", "asking the scheduler what runs there", 10)
UNANSWERED = "the scheduler has not said what runs there"
NOT_J1 = ask_a_person("protected", "protected job j1 (of vip) runs there")


@table(
    ("there is no scheduler", [], None),
    ("there is none, whatever was said once", [PROTECTED], None),
    ("it was not asked yet", [SCHEDULER], ASKING),
    ("it was not asked, and an approval does not tell what runs", [SCHEDULER, approved()], ASKING),
    ("it was asked a minute ago", [SCHEDULER, asked_for(60)], wait("protected", "asking the scheduler what runs there", 60)),
    ("it has been asked for five minutes", [SCHEDULER, asked_for(300)], ask_a_person("protected", UNANSWERED, 300)),
    ("it has been asked for a day", [SCHEDULER, asked_for(86_400)], ask_a_person("protected", UNANSWERED, 4800)),
    ("it has been asked for long, and a person approved", [SCHEDULER, asked_for(300), approved()], None),
    ("it has been asked for long, and answers", [SCHEDULER, asked_for(300), PROTECTED], NOT_J1),
    ("nothing runs there", [SCHEDULER, scheduler_says()], None),
    ("a job runs that is not protected", [SCHEDULER, scheduler_says(("j1",))], None),
    ("a protected job runs", [SCHEDULER, PROTECTED], NOT_J1),
    ("a protected job runs, and a person approved", [SCHEDULER, PROTECTED, approved()], None),
    ("a protected job runs, and the approval is void", [SCHEDULER, PROTECTED, approved(until=NOW - 1)], NOT_J1),
    ("a protected job runs, and who started the run has not seen it", [SCHEDULER, PROTECTED, started_by("bea")], NOT_J1),
    (
        "the scheduler does not answer",
        [SCHEDULER, scheduler_says(known=False, why="it is down")],
        ask_a_person("protected", "it is not known what runs there: it is down"),
    ),
    (
        "it does not answer now, and said once what is protected",
        [SCHEDULER, scheduler_says(("j1",), "j1 (of vip)", "it is down", known=False)],
        ask_a_person("protected", "it is not known what runs there: it is down"),
    ),
    ("it does not answer, and a person approved", [SCHEDULER, scheduler_says(known=False, why="it is down"), approved()], None),
    ("the run is about no node", [SCHEDULER, on("fabric/default", "")], None),
)  # fmt: skip
def test_protected(givens: list[Given], answer: Verdict | None) -> None:
    """Law 2: never on a node that runs a protected job, or of which that is not known, without an approval."""
    assert Cell(*givens).asks(gates.protected) == answer


@pytest.mark.parametrize(
    ("givens", "asked"),
    [
        pytest.param([], [], id="no scheduler: nobody is asked"),
        pytest.param([SCHEDULER], ["n1"], id="not known: it is asked about this node"),
        pytest.param([SCHEDULER, scheduler_says()], [], id="it has just said: not asked again"),
    ],
)
def test_the_scheduler_is_asked_once(givens: list[Given], asked: list[str]) -> None:
    """Asked at the moment, about the node, and once in a turn however many runs wait there."""
    cell = Cell(*givens)
    ctx = cell.ctx()
    case = Case(ctx=ctx, run=cell.run, incident=cell.incident, rung=cell.run.runbook.rungs[0])
    for _ in range(2):
        gates.protected(case)
    assert [effect.node for effect in ctx.effects if isinstance(effect, AskJobs)] == asked
    assert len(ctx.effects) == len(asked)


def test_an_answer_ends_the_wait() -> None:
    """The next question has its own five minutes."""
    cell = Cell(SCHEDULER, asked_for(290), scheduler_says())
    cell.asks(gates.protected)
    assert cell.run.jobs_asked_since == 0.0


class Scheduler(Story):
    """A site whose scheduler is asked before a link is bounced, and does not answer."""

    def __init__(self) -> None:
        self.answers, self.asked = False, []  # type: bool, list[float]
        super().__init__(pack(ask_jobs=True))

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if not isinstance(effect, AskJobs):
            return super()._answer(effect, now)
        self.asked.append(now)
        return [(now + 1, JobsAnswer(id=f"j{now}", node=effect.node, known=True))] if self.answers else []


def test_a_scheduler_that_never_answers_is_a_persons_matter() -> None:
    """Law 14: after five minutes people are asked, once; it is asked ever more seldom meanwhile, and an answer ends it."""
    story = Scheduler()
    story.event(100, "link.state", "link/eth0", up=False)
    story.run(86_400)
    asked = [page for page in story.time.pages if UNANSWERED in page.text]
    assert [page.what for page in asked] == ["update"]
    wanted = next(note for note in story.time.notes if note.kind == "run.approval")
    assert 300 <= wanted.at - story.asked[0] <= 400
    assert len(story.asked) < 40
    story.answers = True
    story.run(2 * 86_400)
    assert [one.step.action for one in story.performed] == ["link.bounce"]


def test_an_answer_ends_the_wait_also_where_another_gate_holds_the_run() -> None:
    """The scheduler has answered while a hold stood: what is asked after it has five minutes of its own."""
    story = Scheduler()
    story.event(100, "link.state", "link/eth0", up=False)
    story.run(104)
    assert story.asked
    story.say(105, "hold", scope="node/n1", why="cables")
    story.time.feed(JobsAnswer(id="late", node="n1", known=True), 106)
    story.run(2000)
    story.say(2001, "release", scope="node/n1")
    story.run(2050)
    assert [note.text for note in story.time.notes if note.kind == "run.approval"] == []
