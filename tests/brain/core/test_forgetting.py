"""A node that is gone for good: nothing of it is left, and nobody is paged for it any more."""

import pytest

from agent.contract.commands import Outcome
from agent.contract.messages import Scalar
from brain.adapters.snapshot import dump, parse
from brain.core.inputs import NodeState, OperatorCommand
from brain.core.operators import forgetting
from brain.core.state import OwnedDrain
from tests.brain.core.cell import Cell
from tests.brain.core.climb import QUIET, rung
from tests.brain.core.test_left_drained import DRAIN, Left
from tests.brain.world import GPU, Story, pack


def silent(*nodes: str) -> Story:
    """Nodes that have not been heard for a minute."""
    story = Story(pack(shared_nodes=3, shared_small_share=0.5))
    for node in nodes:
        story.event(1, "agent.started", node=node)
        story.time.feed(NodeState(id=f"s-{node}", node=node, alive=False, silent_s=15), 2)
    story.run(60)
    return story


def test_its_incidents_and_pages_end_and_it_is_in_no_list() -> None:
    """With the operator's name and reason."""
    story = silent("gpu-9")
    (incident,) = story.incidents("node-unreachable")
    assert incident.pages.sent
    story.say(70, "forget", node="gpu-9", why="it went back to its vendor")
    story.run(80)
    state = story.engine.state
    assert "gpu-9" not in state.nodes
    assert not state.incidents
    assert not state.matched
    assert not [key for key in state.symptoms if "gpu-9" in key]
    assert not [timer for timer in state.timers if "gpu-9" in timer and not timer.startswith("recurred:")]
    (resolved,) = [page for page in story.time.pages if page.what == "resolve"]
    assert resolved.text == "ann says that it is gone: it went back to its vendor"
    story.run(40_000)
    assert story.time.pages[-1] is resolved


def test_a_node_that_is_heard_is_not_forgotten() -> None:
    """It would come back as a new one at its next beat."""
    story = Story()
    story.say(1, "forget", node="n1")
    story.say(2, "forget", node="n2")
    story.run(3)
    assert "n1" in story.engine.state.nodes
    refused = story.notes("operator.refused")
    assert "n1 is heard" in refused[0]
    assert "no such node" in refused[1]


def test_one_whose_key_was_taken_away_is_forgotten_at_once() -> None:
    """The brain says so itself: such a node can speak no more, whether it was heard a second ago or not."""
    story = Story()
    story.time.feed(
        OperatorCommand(id="r1", who="ann", verb="forget", args={"node": "n1", "revoked": True}), 1
    )
    story.run(2)
    assert "n1" not in story.engine.state.nodes
    assert story.notes("node.forgotten") == ["n1: ann has revoked it"]


def test_whom_one_brain_has_turned_out_every_brain_knows_until_it_is_let_in_again() -> None:
    """Also a node that the log has not heard of; only so many are remembered."""
    story = Story()

    def says(number: int, verb: str, **args: Scalar) -> None:
        given = OperatorCommand(id=f"r{number}", who="ann", verb=verb, args=args)
        story.time.feed(given, story.time.now + 1)
        story.run(story.time.now + 1)

    says(1, "forget", node="n1", revoked=True, at=500.0)
    says(2, "forget", node="n9", revoked=True, at=600.0)
    says(3, "forget", node="n1", revoked=True, at=400.0)
    assert story.engine.state.shut_out == {"n9": 600.0, "n1": 500.0}
    assert story.notes("node.shut_out")[0] == "ann has revoked n9: nothing that it says is taken"
    assert parse(dump(story.engine.state)).shut_out == story.engine.state.shut_out
    says(4, "admit", node="n1")
    says(5, "admit", node="n1")
    assert story.engine.state.shut_out == {"n9": 600.0}
    assert story.notes("node.admitted") == ["n1 is let in again (ann)"]
    assert "'n1' was not turned out" in story.notes("operator.refused")[0]
    cell = Cell()
    cell.state.shut_out = {f"m{number}": 1.0 for number in range(forgetting.MOST_SHUT_OUT)}
    forgetting.shut_out(cell.ctx(), "n1", 2.0)
    assert len(cell.state.shut_out) == forgetting.MOST_SHUT_OUT
    assert next(iter(cell.state.shut_out)) == "m1", "the oldest goes"


def test_it_counts_towards_no_shared_cause() -> None:
    """Neither as one that shows the fault nor as one that recovered lately."""
    story = Story(pack(shared_nodes=4, shared_small_share=2, shared_share=0))
    for number in range(3):
        story.event(1 + number, "gpu.xid", GPU, f"n{number}", code=79)
    story.run(5)
    for number in range(3):
        story.time.feed(NodeState(id=f"s{number}", node=f"n{number}", alive=False, silent_s=15), 6)
        story.say(7, "forget", node=f"n{number}")
    story.event(8, "gpu.xid", GPU, "n7", code=79)
    story.run(20)
    assert not [one for one in story.engine.state.incidents.values() if not one.node]
    assert not story.engine.state.recovered


def test_what_we_have_drained_is_not_forgotten_with_its_node() -> None:
    """Law 14: the mark stays in the scheduler, so that a node that is there all the same would get no jobs, and nobody would
    know. It has an incident, which gives it back.
    """
    it = Left(DRAIN, rung("bounce", verify=QUIET))
    it.answer()
    (mark,) = it.engine.state.drains["n1"]
    it.time.feed(NodeState(id="s1", node="n1", alive=False, silent_s=15), it.time.now)
    it.says("forget", node="n1")
    assert "`gpuward return n1` gives it back" in it.notes("node.forgotten")[0]
    it.wait(40_000)
    assert parse(dump(it.engine.state)).left_behind == {"n1": [mark]}
    assert not it.engine.state.incidents, "nothing waits: it may be gone for good"
    it.link(up=True)
    it.wait(10)
    (left,) = it.incidents("left-drained")
    assert "was forgotten while gpuward had drained it" in left.because
    assert it.time.pages[-1].subject.id == left.id
    it.says("return", node="n1")
    step = it.performed[-1].step
    assert (step.action, step.params) == ("scheduler.resume", {"owners": "all"}), (
        "whatever marks of ours it has"
    )
    it.answer()
    it.wait(10)
    assert it.incidents("left-drained")[0].state == "closed"
    assert not it.engine.state.drains
    assert not it.engine.state.left_behind


def test_a_node_that_beats_again_is_heard_again_too() -> None:
    """And only so many are remembered."""
    it = Left(DRAIN, rung("bounce", verify=QUIET))
    it.answer()
    it.time.feed(NodeState(id="s1", node="n1", alive=False, silent_s=15), it.time.now)
    it.says("forget", node="n1")
    it.time.feed(NodeState(id="s2", node="n1", alive=False, silent_s=15), it.time.now)
    it.wait(0)
    assert not it.incidents("left-drained"), "it is silent still"
    it.time.feed(NodeState(id="s3", node="n1", alive=True), it.time.now)
    it.wait(0)
    assert it.incidents("left-drained")
    cell = Cell()
    cell.state.left_behind = {f"m{number}": ["inc-1"] for number in range(forgetting.MOST_LEFT_BEHIND)}
    cell.state.drains["n1"] = {"inc-2": OwnedDrain(since=1.0, marks=["inc-2"])}
    forgetting.forget(cell.ctx(), "n1", "gone")
    assert len(cell.state.left_behind) == forgetting.MOST_LEFT_BEHIND
    assert list(cell.state.left_behind)[-1] == "n1"


def test_what_it_was_told_comes_to_nothing() -> None:
    """A step is under way, which may have drained it: nobody waits for it, and no page asks to give the node back."""
    it = Left(DRAIN)
    it.time.feed(NodeState(id="s1", node="n1", alive=False, silent_s=15), it.time.now)
    it.says("forget", node="n1")
    it.wait(40_000)
    state = it.engine.state
    assert not state.drains
    assert not state.incidents
    assert not state.runs
    assert not state.claims


@pytest.mark.parametrize("outcome", list(Outcome))
def test_an_answer_that_comes_late_brings_nothing_back(outcome: Outcome) -> None:
    """The step ended after all."""
    it = Left(DRAIN)
    it.time.feed(NodeState(id="s1", node="n1", alive=False, silent_s=15), it.time.now)
    it.says("forget", node="n1")
    it.answer(outcome.value)
    it.wait(40_000)
    assert not it.engine.state.drains
    assert not it.engine.state.incidents
