"""A node that an incident has left drained: whoever ends the incident, the node can be brought back, and nothing is left over."""

from dataclasses import replace
from typing import Any

from brain.core.healing import drains
from brain.core.inputs import JobsAnswer, OperatorCommand, PackLoaded, TimerFired
from brain.core.pack.spec import Runbook, Rung
from brain.core.state import OwnedDrain
from tests.brain.core.cell import Cell
from tests.brain.core.climb import QUIET, Climb, rung
from tests.brain.world import pack, rule

DRAIN = Rung(name="drain", do="scheduler.drain")
RESUME = Rung(name="resume", do="scheduler.resume")
RETURN = Runbook(
    name="return-node", summary="give it back", request=True,
    rungs=(Rung(name="resume", do="scheduler.resume", params={"owners": "all"}, retries=1),),
)  # fmt: skip

INSPECT = Runbook(
    name="inspect-node", summary="look at it", request=True, rungs=(DRAIN, Rung(name="look", do="gpu.links_check")),
    return_to_service=(RESUME,),
)  # fmt: skip


class Left(Climb):
    """A link's ladder that drains, which a service has too; one that gives nodes back; a silent node explains its links."""

    def __init__(self, *rungs: Rung, back: tuple[Rung, ...] = (), returns: Runbook = RETURN) -> None:
        super().__init__(*rungs, return_to_service=back)
        plain = pack()
        book = self.climber.runbook
        rules = (
            *(
                replace(one, inhibits=("link-down",)) if one.name == "node-unreachable" else one
                for one in plain.rules
            ),
            rule("service-bad", "service", {"symptom": "service_failed"}, runbook="bounce"),
        )
        self.time.feed(
            PackLoaded(
                id="more", pack=replace(plain, version="p2", rules=rules, runbooks=(book, returns, INSPECT))
            ),
            self.time.now,
        )
        self.wait(0)

    def says(self, verb: str, **args: Any) -> None:
        """An operator's word, now."""
        self._answers += 1
        self.time.feed(
            OperatorCommand(id=f"o{self._answers}", who="ann", verb=verb, args=args), self.time.now
        )
        self.wait(0)


def test_what_an_operator_has_closed_can_still_be_given_back() -> None:
    """The page of the node that is left drained says `gpuward return`: so that must work."""
    it = Left(DRAIN, rung("bounce", verify=QUIET))
    it.answer()
    it.says("close", id=it.incident.id)
    it.answer("unknown")
    (left,) = it.incidents("left-drained")
    assert left.state == "open"
    it.says("return", node="n1")
    assert it.performed[-1].step.action == "scheduler.resume"
    it.answer()
    it.wait(10)
    assert it.incidents("left-drained")[0].state == "closed"
    assert not it.engine.state.drains


def test_what_another_incident_keeps_drained_is_that_ones_from_then_on() -> None:
    """Nobody is asked to give back a node that the other one gives back."""
    it = Left(DRAIN, rung("bounce", verify=QUIET))
    it.answer()
    it.node(alive=False)  # that explains the link
    it.answer("unknown")
    it.link(up=True)
    it.event(it.time.now, "service.state", "service/x.service", active="failed")
    it.wait(10)
    it.node(alive=True)
    it.wait(600)
    (left,) = it.incidents("left-drained")
    assert left.state == "closed"
    (heir,) = it.incidents("service-bad")
    assert list(it.engine.state.drains["n1"]) == [heir.id]
    assert not [page for page in it.time.pages if page.subject.id == left.id]


def test_what_was_explained_has_its_drain_again() -> None:
    """The fault for which its node was drained is there still: no other incident keeps it, or tries to give it back."""
    it = Left(DRAIN, rung("bounce", verify=QUIET))
    it.answer()
    it.node(alive=False)  # that explains the link
    it.answer("unknown")
    it.wait(10)
    assert list(it.engine.state.drains["n1"]) == [it.incidents("node-unreachable")[0].id]
    it.node(alive=True)
    it.wait(40)
    assert list(it.engine.state.drains["n1"]) == [it.incidents("link-down")[-1].id]
    assert not it.incidents("left-drained")


def given_back() -> Left:
    """A node that was left drained; what had explained its fault is over, and the scheduler is asked to take it back."""
    it = Left(DRAIN, rung("bounce", verify=QUIET))
    it.answer()
    it.node(alive=False)  # that explains the link
    it.answer("unknown")
    it.link(up=True)
    it.node(alive=True)
    while it.performed[-1].step.action != "scheduler.resume":
        it.wait(10)
        assert it.time.now < 3600
    return it


def test_a_node_that_is_left_drained_is_given_back_by_itself() -> None:
    """What had explained its fault is over: the node returns, and nobody is told that gpuward gave up."""
    it = given_back()
    it.answer()
    it.wait(10)
    (left,) = it.incidents("left-drained")
    assert left.state == "closed"
    assert not it.engine.state.drains
    assert not [page for page in it.time.pages if page.subject.id == left.id]


def test_a_node_that_is_given_back_at_the_second_attempt_is_back() -> None:
    """It was said to stay out of service, and nothing ended that, since the scheduler had it back."""
    it = given_back()
    it.answer("unreachable")
    it.answer()
    it.wait(10)
    (left,) = it.incidents("left-drained")
    assert (left.state, left.closed_why) == ("closed", "all its steps are done")


def test_a_node_that_is_given_back_with_something_left_undone_is_back() -> None:
    """People are told that a step failed; that the node stays out of service is not so."""
    limits = Rung(name="limits", do="gpu.power_restore")
    it = Left(DRAIN, rung("bounce", verify=QUIET), returns=replace(RETURN, rungs=(limits, *RETURN.rungs)))
    it.answer()
    it.node(alive=False)  # that explains the link
    it.answer("unknown")
    it.link(up=True)
    it.node(alive=True)
    while it.performed[-1].step.action != "gpu.power_restore":
        it.wait(10)
        assert it.time.now < 3600
    it.answer("failed")
    it.wait(0)
    it.answer()
    it.wait(10)
    (left,) = it.incidents("left-drained")
    assert left.state == "closed"
    assert [page.what for page in it.time.pages if page.subject.id == left.id] == ["open", "resolve"]


def test_what_a_person_gives_back_is_not_disturbed_for_what_was_found_before() -> None:
    """The test before its return failed, and a hold kept the run from the next rung. Then the node is healthy, says a person."""
    it = Left(
        DRAIN, rung("bounce", verify=QUIET), rung("again"), back=(Rung(name="test", do="port.check"), RESUME)
    )
    it.answer()
    it.answer()
    it.link(up=True)
    it.wait(10.1)
    it.says("hold", scope="node/n1", why="a new cable")
    assert it.performed[-1].step.action == "port.check"
    it.answer("failed")
    assert it.state == "held"
    it.says("return", node="n1")
    assert it.performed[-1].step.action == "scheduler.resume"
    it.answer()
    assert (it.state, it.incident.state) == ("succeeded", "recovered")
    done = len(it.performed)
    it.says("release", scope="node/n1")
    it.wait(20)
    assert len(it.performed) == done


def test_a_person_who_inspects_a_node_does_not_give_it_back() -> None:
    """The inspection took its own mark off only: the node stayed drained under that of an incident that was taken to be over."""
    it = Left(DRAIN, rung("bounce", verify=QUIET, on_failure="stop"))
    it.answer()
    it.answer("failed")
    it.link(up=True)
    assert it.incident.state == "needs_human"
    it.says("start", runbook="inspect-node", node="n1", why="a look")
    it.wait(2)
    it.answer()
    it.answer()
    assert it.performed[-1].step.action == "gpu.links_check"
    assert list(it.engine.state.drains["n1"]) == [it.incident.id]
    assert it.incident.state == "needs_human"
    it.says("return", node="n1")
    assert it.performed[-1].step.action == "scheduler.resume"
    it.answer()
    assert not it.engine.state.drains
    assert it.incident.state == "recovered"


def test_a_request_that_is_closed_leaves_nothing_behind() -> None:
    """What stands in place of a rule's match has no newer fact that could end its being dismissed."""
    it = Left(rung("bounce", verify=QUIET))
    it.says("start", runbook="return-node", node="n1", why="a look")
    (asked,) = it.incidents("request-return-node")
    it.says("close", id=asked.id)
    it.answer("unknown", f"{asked.id}.r1.s1.a1")
    it.answer()
    it.link(up=True)
    it.wait(90_000)
    assert it.engine.state.fault_free()


def test_who_works_on_a_node_is_known_for_a_minute_whatever_its_timer_does() -> None:
    """Without a leader nobody publishes that a timer is due."""
    it = Left(rung("bounce", verify=QUIET))
    engine, now = it.engine, it.time.now
    engine.handle(JobsAnswer(id="j1", node="n1", known=True), now)
    engine.handle(JobsAnswer(id="j2", node="n2", known=True), now + 10)
    engine.handle(JobsAnswer(id="j3", node="n1", known=True), now + 20)
    engine.handle(OperatorCommand(id="o", who="ann", verb="reset", args={}), now + 70)
    assert list(engine.state.jobs) == ["n1"]
    engine.handle(OperatorCommand(id="p", who="ann", verb="reset", args={}), now + 80)
    assert not engine.state.jobs


def test_a_hold_lasts_its_time_whatever_the_brains_clock_says() -> None:
    """Law 2: a timer that a wrong clock fires early ends nothing; it is published again."""
    it = Left(rung("bounce", verify=QUIET))
    it.says("hold", scope="node/n1", why="a cable", for_s=600)
    engine, now = it.engine, it.time.now
    (hold,) = engine.state.holds
    due = now + 600
    assert engine.handle(TimerFired(id="t1", name=f"hold:{hold}", due=due), now + 300) == []
    assert engine.state.holds
    assert engine.handle(TimerFired(id="t2", name=f"hold:{hold}", due=due), due)
    assert not engine.state.holds


def test_a_drain_is_certain_while_nothing_puts_it_in_doubt() -> None:
    """Another incident's drain that has not ended yet does not make a page say that no jobs come."""
    tell = Rung(name="tell", do="page", params={"text": "$drained"})
    for drain, says in (
        (None, "n1 was not drained: new jobs may start there."),
        (OwnedDrain(since=1.0, marks=["inc-9"]), "It is not certain that n1 is drained: check whether new jobs may start there."),
        (OwnedDrain(since=1.0, marks=["inc-9"], sure=True), "n1 gets no new jobs."),
    ):  # fmt: skip
        it = Climb(rung("bounce"), tell)
        if drain is not None:
            it.engine.state.drains["n1"] = {"inc-9": drain}
        it.answer()
        assert it.time.pages[-1].text == says


def test_who_inherits_a_drain_knows_what_the_heir_before_knew() -> None:
    """The certainty goes with the marks."""
    cell = Cell()
    cell.state.drains["n1"] = {"inc-1": OwnedDrain(since=1.0, marks=["inc-1"], sure=True)}
    drains.hand_over(cell.ctx(), "n1", "inc-1", "inc-2")
    assert drains.sure(cell.ctx(), "n1")
    drains.doubted(cell.ctx(), "n1")
    assert not drains.sure(cell.ctx(), "n1")
