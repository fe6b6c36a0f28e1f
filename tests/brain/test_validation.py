"""Stories about the way back into service: the node is tested by what was done to it, before it gets jobs again."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from agent.contract.commands import Outcome
from agent.contract.figures import Figure, encode
from agent.contract.messages import Scalar
from brain.core.effects import Effect, Perform
from brain.core.inputs import Input, StepResult
from brain.core.pack.spec import Mode, Pack, Runbook, Rung, Verify
from brain.core.state import RunState
from brain.notify.compose import compose
from tests.brain.test_return_to_service import LADDER, World
from tests.brain.world import pack

DRAIN, BOUNCE, RESUME = "scheduler.drain", "link.bounce", "scheduler.resume"
PORTS, DIAGNOSE, ACCEPT = "port.check", "gpu.diagnose", "node.accept"
BACK = (
    Rung(name="ports", do=PORTS, params={"component": "$component"}, on_refusal="next"),
    Rung(name="diagnosis", do=DIAGNOSE, params={"level": 2}, after=("reboot",), on_refusal="next"),
    Rung(name="acceptance", do=ACCEPT, on_refusal="next"),
    Rung(name="resume", do=RESUME, retries=1),
)
CHECK = Runbook(
    name="check", summary="measure", rungs=(Rung(name="acceptance", do=ACCEPT, on_failure="stop"),), request=True
)  # fmt: skip


def validated(mode: Mode = Mode.AUTO, **settings: Any) -> Pack:
    """The small pack; its ladder for links tests the node before it returns."""
    plain = pack(mode, **settings)
    books = tuple(book for book in plain.runbooks if book.name != "bounce")
    return replace(plain, runbooks=(*books, replace(LADDER, return_to_service=BACK), CHECK))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How a test ends."""

    outcome: Outcome = Outcome.OK
    why: str = "all well"
    data: Mapping[str, Scalar] = field(default_factory=dict)


def measured(value: float) -> Answer:
    """An all-reduce was measured."""
    figures = encode([Figure(name="all_reduce.bus_gb_per_s", value=value)])
    return Answer(data={"figures": figures, "alike": "8 H100"})


class Validated(World):
    """`tests`: (node, action) or action -> how it ends."""

    def __init__(self, tests: "Mapping[Any, Answer]", given: Pack | None = None) -> None:
        self.tests = dict(tests)
        super().__init__(given or validated())

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if isinstance(effect, Perform):
            step = effect.step
            answer = self.tests.get((step.node, step.action), self.tests.get(step.action))
            if answer is not None:
                self.performed.append(effect)
                yield now + 1, StepResult(
                    id=f"r:{step.id}:{now}", step=step.id, outcome=answer.outcome, why=answer.why,
                    data=answer.data,
                )  # fmt: skip
                return
        yield from super()._answer(effect, now)

    def fault(self, at: float = 1, node: str = "n1") -> None:
        self.event(at, "link.state", "link/eth1", node, up=False)

    def done(self, node: str = "n1") -> list[str]:
        return [action for where, action in self.actions() if where == node]

    @property
    def why(self) -> str:
        return list(self.time.runs.values())[-1].why


def test_a_node_is_tested_by_what_was_done_to_it_before_it_returns() -> None:
    """A bounced link needs no diagnosis of the GPUs; after a reboot it is made. The resume is last."""
    story = Validated({})
    story.fault()
    story.run(60)
    assert story.done() == [DRAIN, BOUNCE, PORTS, ACCEPT, RESUME]
    assert any("diagnosis: nothing was done that it tests (reboot)" in note for note in story.notes())
    story = Validated({BOUNCE: Answer(outcome=Outcome.FAILED)})
    story.fault()
    story.run(6)
    story.event(6, "link.state", "link/eth1", up=True)
    story.run(60)
    assert story.done() == [DRAIN, BOUNCE, "node.reboot", PORTS, DIAGNOSE, ACCEPT, RESUME]


@pytest.mark.parametrize("action", [PORTS, ACCEPT])
def test_a_node_that_fails_a_test_does_not_return(action: str) -> None:
    """Whatever else follows, it is not resumed, and people are paged with what failed."""
    story = Validated({action: Answer(outcome=Outcome.FAILED, why="eth1 has no carrier")})
    story.fault()
    story.run(400)
    assert RESUME not in story.done()
    assert story.run_state is RunState.EXHAUSTED
    assert story.time.pages
    assert any("eth1 has no carrier" in note for note in story.notes("step.result"))


def test_what_is_not_installed_does_not_keep_a_node_out_of_service_but_is_told() -> None:
    """The sentence is in the notes, in the step, and in why the run succeeded."""
    gap = "bandwidth and all-reduce: `acceptance` of agent.toml has no quick program"
    story = Validated({ACCEPT: Answer(why="no acceptance program was run", data={"untested": gap})})
    story.fault()
    story.run(60)
    assert story.done() == [DRAIN, BOUNCE, PORTS, ACCEPT, RESUME]
    assert story.notes("step.untested") == [gap]
    assert story.why.endswith(f"back in service; not tested: {gap}")
    steps = {step.rung: step for run in story.time.runs.values() for step in run.steps}
    assert steps["acceptance"].why == f"no acceptance program was run; not tested: {gap}"
    assert any(gap in note for note in story.notes("incident.recovered"))
    page = compose(story.time.pages[-1], runs=list(story.time.runs.values()))
    assert any(gap in line for line in page.tried), page.tried


def test_a_test_that_the_node_refuses_is_one_that_was_not_made() -> None:
    """For example, its allow-list does not name it: a rung with `on_refusal: next` lets the node return, and says so."""
    story = Validated({ACCEPT: Answer(outcome=Outcome.REFUSED, why="node.accept is not on the allow-list")})
    story.fault()
    story.run(60)
    assert story.done()[-1] == RESUME
    assert story.why.endswith("not tested: acceptance: node.accept is not on the allow-list")
    strict = replace(BACK[2], on_refusal="")
    books = [replace(LADDER, return_to_service=(strict, BACK[3]))]
    story = Validated(story.tests, replace(validated(), runbooks=(*pack().runbooks[:1], *books)))
    story.fault()
    story.run(400)
    assert RESUME not in story.done()


def test_a_node_that_is_far_slower_than_its_peers_does_not_return() -> None:
    """Five nodes have measured 371 GB/s. The sixth is above its own floor, at 180, and stays out of service."""
    story = Validated({ACCEPT: measured(371), ("n9", ACCEPT): measured(180)})
    for number in range(5):
        node = f"n{number}"
        story.event(0.5, "agent.started", "node", node)
        story.say(10 + number * 20, "start", runbook="check", node=node)
    story.run(200)
    story.fault(200, "n9")
    story.run(600)
    assert story.done("n9")[:4] == [DRAIN, BOUNCE, PORTS, ACCEPT]
    assert RESUME not in story.done("n9")
    failed = [note for note in story.notes("step.result") if "far worse" in note]
    assert "acceptance: failed: far worse than its peers: all_reduce.bus_gb_per_s 180 (median of 5 peers 371)" in (
        failed[0]
    )  # fmt: skip


def test_a_node_that_is_as_fast_as_its_peers_returns() -> None:
    """The comparison is in the notes."""
    story = Validated({ACCEPT: measured(371), ("n9", ACCEPT): measured(369)})
    for number in range(5):
        story.event(0.5, "agent.started", "node", f"n{number}")
        story.say(10 + number * 20, "start", runbook="check", node=f"n{number}")
    story.run(200)
    story.fault(200, "n9")
    story.run(600)
    assert story.done("n9")[-1] == RESUME
    assert "all_reduce.bus_gb_per_s 369 (median of 5 peers 371)" in story.notes("step.figures")


def test_figures_of_an_action_that_measures_nothing_do_not_count() -> None:
    """A node may write them into any of its results."""
    story = Validated(
        {"gpu.reset": measured(371), "node.reboot": measured(371), "gpu.diagnose": measured(371)}
    )
    story.fault()
    story.run(600)
    assert story.engine.state.figures == {}


def test_figures_of_other_parts_than_the_inventory_told_are_not_compared() -> None:
    """Else a node chooses whose peer it is."""
    story = Validated({ACCEPT: measured(371)})
    story.engine.state.peers["node.inventory n1"] = json.dumps({"product": "DGX", "gpu_models": "8 H100"})
    story.fault()
    story.run(600)
    assert story.engine.state.figures == {}
    assert (
        "n1 says that it is made of 8 H100, and told before: DGX. Its figures are not compared"
        in story.notes("step.figures")
    )


@pytest.mark.parametrize("text", ["", "[", '{"higher": {"x": "fast"}}', json.dumps({"higher": [1]}), 7, True])
def test_a_node_may_send_anything_as_figures(text: Scalar) -> None:
    """A node speaks for itself only: what cannot be read is noted, and changes nothing."""
    story = Validated({ACCEPT: Answer(data={"figures": text, "alike": "8 H100"})})
    story.fault()
    story.run(60)
    assert story.done()[-1] == RESUME
    assert story.engine.state.figures == {}


def test_no_gate_blocks_the_way_back() -> None:
    """Law 7: a hold, and a mode that wants approvals, that come while the node is tested; though a diagnosis elsewhere
    disrupts the node.
    """
    reboot = Rung(name="reboot", do="node.reboot", verify=Verify(within_s=60, for_s=3))
    book = replace(LADDER, rungs=(LADDER.rungs[0], reboot), return_to_service=BACK)
    books = tuple(one for one in pack().runbooks if one.name != "bounce")
    story = Validated({}, replace(validated(), runbooks=(*books, book)))
    story.fault()
    story.run(6)
    assert story.done() == [DRAIN, "node.reboot"]
    story.say(6.5, "hold", scope="node/n1", why="looking")
    story.say(6.6, "mode", runbook="*", mode="approve")
    story.event(7, "link.state", "link/eth1", up=True)
    story.run(60)
    assert story.done() == [DRAIN, "node.reboot", PORTS, DIAGNOSE, ACCEPT, RESUME]
    assert story.run_state is RunState.SUCCEEDED


def test_a_result_that_comes_twice_counts_once() -> None:
    """The law `twice`: neither a value nor a note is added."""
    story = Validated({ACCEPT: measured(371)})
    story.fault()
    story.run(60)
    before = json.dumps(story.engine.state.figures)
    noted = len(story.notes())
    step = next(one.step for one in story.performed if one.step.action == ACCEPT)
    again = StepResult(
        id="again", step=step.id, outcome=Outcome.OK, why="all well", data=measured(9).data
    )  # fmt: skip
    story.time.feed(again, 61)
    story.run(62)
    assert json.dumps(story.engine.state.figures) == before
    assert len(story.notes()) == noted
