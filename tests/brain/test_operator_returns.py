"""`gpuward return`: what an operator's word ends, what it does not, and what people read of it."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from agent.contract.commands import Outcome
from agent.contract.kinds import KINDS
from brain.core.effects import AskLook, Effect
from brain.core.inputs import Input, NodeState, StepResult
from brain.core.pack.spec import Mode, ModeSetting, Pack, Settings, Verify
from brain.core.state import Incident, OwnedDrain, Run
from brain.notify.compose import compose_from
from tests.brain.test_return_to_service import World, ladder
from tests.brain.world import Story, pack
from tests.shipped import shipped_pack

CUT_S, RETURNED_S = 10.0, 1000.0
LINK = "link/eth1"
SHIPPED = {book.name: book for book in shipped_pack().runbooks}


def site(mode: Mode = Mode.AUTO, *, drains: bool = False) -> Pack:
    """The small pack, whose link's ladder may drain the node, with the runbook that gives nodes back."""
    plain = ladder(mode) if drains else pack(mode)
    return replace(plain, runbooks=(*plain.runbooks, SHIPPED["return-node"]))


class Deaf(Story):
    """A world whose node does not answer when it is asked to look again."""

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if not isinstance(effect, AskLook):
            yield from super()._answer(effect, now)


def cut(story: Story) -> Incident:
    """Its link is cut, gpuward cannot help, and a person returns the node."""
    story.event(CUT_S, "link.state", LINK, up=False)
    story.run(RETURNED_S - 1)
    link: Incident = story.incidents("link-down")[0]
    assert link.state.value == "needs_human"
    story.say(RETURNED_S, "return", node="n1")
    return link


def request(story: Story) -> tuple[Incident, Run]:
    """What became of the return itself."""
    incident = story.incidents("request-return-node")[-1]
    return incident, story.time.runs[incident.runs[-1]]


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.APPROVE, Mode.OBSERVE])
def test_a_fault_that_is_still_there_keeps_its_incident(mode: Mode) -> None:
    """The link is reported when it is cut, and not again: if the word ended that, nobody would hear of it any more."""
    story = Story(site(mode), heals=False)
    story.event(CUT_S, "link.state", LINK, up=False)
    story.run(RETURNED_S - 1)
    (before,) = story.incidents("link-down")
    story.say(RETURNED_S, "return", node="n1")
    story.run(RETURNED_S + 3000)
    (after,) = story.incidents("link-down")
    assert (after.id, after.state) == (before.id, before.state)
    assert after.pages.first_at
    assert story.notes("node.not_healthy") == ["n1 still reports link_down@link/n1/eth1"]
    assert request(story)[1].state.value == ("observed" if mode is Mode.OBSERVE else "succeeded")


def test_a_fault_that_is_still_there_keeps_its_drain() -> None:
    """Those who returned the node read why it is not given back, and are told once."""
    story = World(site(drains=True), heals=False)
    cut(story)
    story.run(RETURNED_S + 3000)
    incident, run = request(story)
    assert "n1 stays out of service for link-down" in run.why
    assert ("n1", "scheduler.resume") not in story.actions()
    told = [
        page.text for page in story.time.pages if page.what != "repeat" and page.text.count("gpuward return")
    ]
    assert not told, "nobody is asked to do what was just done"
    assert [
        page.what for page in story.time.pages if page.subject.id == incident.id and page.what != "repeat"
    ] == ["open"]


def test_a_fault_that_comes_back_opens_its_incident_again() -> None:
    """The word ended nothing for good."""
    story = Story(site(), heals=False)
    cut(story)
    story.event(RETURNED_S - 0.5, "link.state", LINK, up=True)
    story.run(RETURNED_S + 100)
    assert [one.state.value for one in story.incidents("link-down")] == ["closed"]
    story.event(RETURNED_S + 200, "link.state", LINK, up=False)
    story.run(RETURNED_S + 1000)
    assert [(one.state.value, one.times) for one in story.incidents("link-down")] == [("needs_human", 2)]


def test_of_a_node_that_does_not_answer_the_word_counts() -> None:
    """After the time that a look takes; the resolution says whose word it was."""
    story = Deaf(site(), heals=False)
    link = cut(story)
    story.run(RETURNED_S + 30)
    assert story.incidents("link-down")[0].state.value == "needs_human"
    story.run(RETURNED_S + 100)
    assert story.incidents("link-down")[0].state.value == "closed"
    (over,) = [page for page in story.time.pages if page.what == "resolve" and page.subject.id == link.id]
    assert over.text == "ann says that n1 is healthy, and for 5 s it has reported nothing else"


def test_an_unreachable_node_is_not_made_reachable_by_a_word() -> None:
    """What it showed before it fell silent is over; that it is silent is not."""
    story = Story(site(), heals=False)
    story.event(CUT_S, "link.state", LINK, up=False)
    story.time.feed(NodeState(id="gone", node="n1", alive=False, silent_s=30), 500)
    story.say(RETURNED_S, "return", node="n1")
    story.run(RETURNED_S + 100)
    states = {one.cause: one.state.value for one in story.incidents() if one.rule != "request"}
    assert states == {"link-down": "closed", "node-unreachable": "open"}
    story.time.feed(NodeState(id="back", node="n1", alive=True), RETURNED_S + 200)
    story.run(RETURNED_S + 3000)
    assert story.incidents("node-unreachable")[0].state.value == "closed"


@pytest.mark.parametrize("books", [True, False], ids=["with a runbook that returns nodes", "without"])
def test_an_incident_of_which_nothing_is_left_ends_with_the_word(*, books: bool) -> None:
    """Its symptom went without a fact that says so, and the node could not prove it: it waited for a person."""

    class Blind(World):
        def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
            if isinstance(effect, AskLook):
                step = effect.step
                blind = {"blind": KINDS["service.state"].source}
                yield (
                    now,
                    StepResult(
                        id=f"k:{step.id}",
                        step=step.id,
                        outcome=Outcome.OK,
                        why="",
                        data=blind,
                        node=step.node,
                    ),
                )
            else:
                yield from super()._answer(effect, now)

    given = site() if books else pack()
    check = Verify(within_s=10, for_s=2, reset_on_act=("service_failed",))
    restart = next(book for book in given.runbooks if book.name == "restart")
    restart = replace(restart, rungs=tuple(replace(rung, verify=check) for rung in restart.rungs))
    story = Blind(
        replace(given, runbooks=(*(book for book in given.runbooks if book.name != "restart"), restart)),
        heals=False,
    )
    story.event(CUT_S, "service.state", "service/x.service", active="failed")
    story.run(RETURNED_S)
    (service,) = story.incidents("service-failed")
    assert len(story.notes("run.looked")) <= 10, "it is asked every 10 s, not as fast as it answers"
    assert (service.state.value, service.unproven, service.matching_rules) == ("needs_human", True, {})
    story.say(RETURNED_S + 1, "return", node="n1")
    story.run(RETURNED_S + 300)
    assert story.incidents("service-failed")[0].state.value == "closed"
    assert next(page.text for page in story.time.pages if page.what == "resolve").startswith(
        "ann says that n1 is healthy"
    )
    story.run(RETURNED_S + 90_000)
    assert story.engine.state.fault_free()


def inspected(answers: dict[str, Outcome]) -> World:
    """A node whose inspection fails at its ports, and is drained since."""
    shipped = shipped_pack(Settings(modes=(ModeSetting(mode=Mode.AUTO),)))
    given = replace(shipped, runbooks=tuple(replace(book, every_s=0) for book in shipped.runbooks))
    story = World(given, answers)
    story.event(1, "agent.started", "node", "n1", version="1", kernel="6", gpus=8)
    story.say(CUT_S, "start", runbook="inspect-node", node="n1", why="it is slow")
    return story


def test_the_page_of_an_inspection_says_what_it_found_and_how_that_ends() -> None:
    """No rule has knowledge of it, and gpuward did not give up: it was not to heal."""
    story = inspected({"port.check": Outcome.FAILED})
    story.run(400)
    (page,) = story.time.pages
    text = compose_from(story.engine.state, page).to_text()
    assert "gave up" not in text.lower()
    for line in (
        "inspect-node did not end well: ports failed: told so",
        "inspect-node came upon it. ports (port.check): failed: told so.",
        "ends when inspect-node is done there again and ends well, or is closed by a person",
        "gpuward start inspect-node --node n1",
        "gpuward return n1",
        f"gpuward close {page.subject.id}",
    ):
        assert line in text


def test_its_resolution_says_who_returned_the_node() -> None:
    """Not that what it found has failed."""
    story = inspected({"port.check": Outcome.FAILED})
    story.run(400)
    story.answers.clear()
    story.say(500, "return", node="n1")
    story.run(1000)
    (over,) = [page for page in story.time.pages if page.what == "resolve"]
    assert over.text == "ann says that n1 is healthy, and for 1 s it has reported nothing else"


def test_an_inspection_that_ends_well_the_next_time_says_so() -> None:
    """Not what the first one found."""
    story = inspected({"port.check": Outcome.FAILED, "scheduler.drain": Outcome.REFUSED})
    story.run(400)
    story.answers.clear()
    story.say(500, "start", runbook="accept-node", node="n1", why="again")
    story.say(600, "start", runbook="inspect-node", node="n1", why="again")
    story.run(3000)
    resolved = [page.text for page in story.time.pages if page.what == "resolve"]
    assert all("told so" not in text for text in resolved)


def test_the_page_of_a_return_that_another_incident_forbids_names_that_one() -> None:
    """Its steps have found nothing: there is nothing to repair but what the other incident is about."""
    story = inspected({})
    story.run(400)
    story.time.feed(NodeState(id="gone", node="n1", alive=False, silent_s=30), 410)
    story.run(500)
    (other,) = story.incidents("node-unreachable")
    story.engine.state.drains["n1"] = {other.id: OwnedDrain(since=410)}
    story.say(600, "start", runbook="return-node", node="n1", why="it is well")
    story.run(700)
    text = " ".join(compose_from(story.engine.state, story.time.pages[-1]).to_text().split())
    assert "request-return-node on node/n1" in text
    assert "came upon it" not in text
    assert "Repair what it found" not in text
    assert (
        "return-node found nothing wrong. It ended so: not given back: n1 stays out of service for node-unreachable "
        f"({other.id})." in text
    )
    assert "gpuward return n1 gives it back" in text
