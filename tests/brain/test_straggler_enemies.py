"""Stragglers, attacked: who lies, what is told again and again, nodes that are forgotten, and a brain that starts anew."""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.errors import ContractError
from agent.contract.gpu_minutes import decode
from brain.adapters.snapshot import dump, parse
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, NodeState
from brain.core.pack.actions import ACTIONS
from brain.core.state import IncidentState
from tests.brain.straggler_kit import (
    ADDRESSES,
    COMPILED,
    H100,
    NODES,
    PACK,
    SLOW,
    USUAL,
    Figures,
    engine,
    even,
    minute,
    said,
    slow_in,
    tells,
    with_slow,
)
from tests.brain.world import Story

RUNBOOK = "exclude-straggler"


def of_sixteen(figures: Sequence[Figures]) -> dict[str, Any]:
    """The data of gpu.minute of a node that claims so many GPUs of job 4711."""
    names = [f"0000:{number:02x}:00" for number in range(len(figures))]
    columns = [" ".join(str(one[column]) for one in figures) for column in range(3)]
    return {
        "active": True, "job": "4711", "model": H100, "gpus": " ".join(names), "sm_mhz": columns[0],
        "power_w": columns[1], "busy": columns[2],
    }  # fmt: skip


class TestALiarWithMoreGpus:
    """A node that claims sixteen GPUs in a job whose nodes have one or two each, moves the median."""

    def test_sixteen_beside_eight(self) -> None:
        """The slowest of eight healthy GPUs, 4 % below the others, was accused."""
        made = engine()
        for number, node in enumerate(NODES[:8]):
            made.handle(said(node, 1, minute([USUAL if number else (1900, 690, 100)])), 10)
        made.handle(said("evil", 1, of_sixteen([(2020, 690, 100)] * 16)), 11)
        assert slow_in(made) == {}

    @given(
        st.lists(
            st.lists(st.integers(1930, 1995).map(lambda mhz: (mhz, 690, 100)), min_size=1, max_size=8),
            min_size=2,
            max_size=12,
        ),
        st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 900), st.integers(0, 100)), max_size=16),
    )
    def test_no_honest_one_is_accused(self, honest: list[list[Figures]], lies: list[Figures]) -> None:
        """Whose clocks lie within 4 % of each other is no straggler, whatever one node more tells of their job."""
        made = engine()
        for node, gpus in zip(NODES, honest, strict=False):
            made.handle(said(node, 1, minute(gpus)), 10)
        made.handle(said("evil", 1, of_sixteen(lies)), 11)
        assert not slow_in(made).keys() - {"evil"}

    @pytest.mark.parametrize("seed", range(30))
    @pytest.mark.parametrize("nodes", [6, 8, 16])
    def test_chips_differ_under_a_power_cap(self, nodes: int, seed: int) -> None:
        """Clocks spread by 2.5 %; the liar puts up to sixteen of its own where they move median and deviation most."""
        random = Random(seed)
        made, at = engine(), 10.0
        healthy = [[(round(random.gauss(1400, 35)), 500, 100) for _ in range(8)] for _ in range(nodes)]
        for node, gpus in zip(NODES, healthy, strict=False):
            made.handle(said(node, 1, minute(gpus)), at)
        for number, (count, mhz) in enumerate(product((8, 12, 16), range(1395, 1500, 15)), 1):
            made.handle(said("evil", number, of_sixteen([(mhz, 500, 100)] * count)), at + number)
            assert slow_in(made) == {}, (count, mhz)

    def test_why_nothing_is_said_of_such_a_job(self) -> None:
        """The note names it."""
        story = Story(PACK)
        for node in NODES[:8]:
            tells(story, 10, node, [USUAL])
        tells(story, 20, "n040", [SLOW] * 3)
        story.run(30)
        (note,) = story.notes("straggler.unjudged")
        assert note.endswith("one node has 3 of the 11 such GPUs of the job, so they are no peers")

    def test_one_gpu_by_two_names_is_one(self) -> None:
        with pytest.raises(ContractError, match="one twice"):
            decode({"gpus": "0000:3b:00 00000000:3B:00.0", "sm_mhz": "1 1", "power_w": "1 1", "busy": "1 1"})


def test_what_lies_within_the_limit_is_not_slow() -> None:
    """1,884 MHz were slow beside a limit of 1,881, as they are counted among those from 1,880 MHz."""
    for mhz, slow in ((1884, {}), (1881, {}), (1880, {"n000": f"gpu/{ADDRESSES[0]}"})):
        made = engine()
        for number, node in enumerate(NODES[:8]):
            made.handle(said(node, 1, minute([USUAL if number else (mhz, 690, 100)])), 10)
        assert slow_in(made) == slow


class TestNodesThatGo:
    """Peers are taken off the list while one of the job is slow."""

    def story(self) -> Story:
        """Seven nodes, of which n003 has a slow GPU; two of the others are forgotten at 100."""
        story = Story(PACK)
        for node in NODES[:7]:
            tells(story, 10, node, with_slow(2) if node == "n003" else [USUAL] * 8)
        for node in ("n000", "n001"):
            story.time.feed(NodeState(id=f"{node}-gone", node=node, alive=False, silent_s=60), 90)
            story.say(100, "forget", node=node)
        return story

    def test_too_few_are_left_to_judge(self) -> None:
        """Four minutes after it was seen it was told as slow, though nothing was judged any more."""
        story = self.story()
        story.run(101)
        assert slow_in(story.engine) == {}
        story.run(1000)
        assert story.incidents("straggler") == []

    def test_steps_of_its_job_are_told(self) -> None:
        """The brain ended with a KeyError, and so did the next one, which read the same log."""
        story = self.story()
        story.event(110, "job.steps", "job/4711", "n005", step_s=5.0, job="4711", file="x")
        story.run(120)
        assert story.engine.state.steps["4711"].newest == 5.0

    def test_a_snapshot_of_a_brain_that_judged_otherwise(self) -> None:
        """An older version's limits were others: what it called slow and is not is over with the next word of its job."""
        made = engine()
        for node in NODES[:7]:
            made.handle(said(node, 1, minute(with_slow(2) if node == "n003" else [USUAL] * 8)), 10)
        state = parse(dump(made.state))
        for key in [key for key, one in state.minutes.items() if one.node in ("n000", "n001")]:
            del state.minutes[key]
        made = Engine(state, actions=ACTIONS, compile_pack=COMPILED)
        steps = Story().event(20, "job.steps", "job/4711", "n005", step_s=5.0, job="4711", file="x")
        made.handle(EventSeen(event=steps), 20)
        made.handle(said("n005", 10, minute([USUAL] * 8)), 21)
        assert slow_in(made) == {}


class TestClosedByAnOperator:
    """`If the rank has other work by design, close the incident`: it was open again with the node's next word."""

    def closed(self) -> Story:
        """n007 is slow from 700 on and tells it every ten minutes; its incident is closed at 1,200."""
        story = Story(PACK)
        even(story, 10, 7000, [node for node in NODES if node != "n007"])
        tells(story, 10, "n007", [USUAL] * 8)
        for at in range(700, 7000, 600):
            tells(story, at, "n007", with_slow(2))
        story.run(1200)
        (one,) = story.incidents("straggler")
        story.say(1200, "close", id=one.id)
        return story

    def test_that_it_goes_on_is_no_news(self) -> None:
        story = self.closed().run(6900)
        (one,) = story.incidents("straggler")
        assert (one.state, one.pages.sent) == (IncidentState.CLOSED, 2)

    def test_the_steps_of_its_job_are_none_either(self) -> None:
        """Any node may tell them."""
        story = self.closed()
        for at in (1250, 2650):
            story.event(at, "job.steps", "job/4711", "n000", step_s=float(at), job="4711", file="x")
        story.run(6900)
        assert len(story.incidents("straggler")) == 1

    def test_another_job_is_news(self) -> None:
        """What is slow by design in one job is not in the next one."""
        story = self.closed()
        for node in NODES:
            story.event(2000, "gpu.minute", "node", node, **minute([], active=False))
        even(story, 2010, 6900, [node for node in NODES if node != "n007"])
        for at in range(2010, 6900, 600):
            tells(story, at, "n007", with_slow(2), job="4712")
            for node in NODES[8:20]:
                tells(story, at, node, [USUAL] * 8, job="4712")
        story.run(2600)
        assert [one.state for one in story.incidents("straggler")][1:] == [IncidentState.NEEDS_HUMAN]

    def test_another_gpu_is_news(self) -> None:
        story = self.closed()
        tells(story, 2000, "n007", with_slow(2, 5))
        for at in range(2500, 6900, 599):
            tells(story, at, "n007", with_slow(2, 5))
        story.run(2400)
        assert [one.scope for one in story.incidents("straggler")] == [
            f"gpu/n007/{ADDRESSES[2]}",
            f"gpu/n007/{ADDRESSES[5]}",
        ]


class TestApprovals:
    """Nothing is drained but by a person, and not when its reason has gone."""

    def story(self, mode: str = "approve") -> Story:
        """n007 is slow from 700 on, and its drain waits for a person."""
        story = Story(PACK)
        story.say(5, "mode", runbook=RUNBOOK, mode=mode)
        even(story, 10, 3000, [node for node in NODES if node != "n007"])
        tells(story, 10, "n007", [USUAL] * 8)
        tells(story, 700, "n007", with_slow(2))
        return story.run(1400)

    @pytest.mark.parametrize("mode", ["approve", "auto"])
    def test_only_a_person_drains(self, mode: str) -> None:
        """Also where an operator has set the runbook to auto."""
        story = self.story(mode)
        story.run(2100)
        assert story.actions() == []
        story.say(2100, "approve", id=story.incidents("straggler")[0].id)
        story.run(2200)
        assert story.actions() == [("n007", "scheduler.drain")]

    @pytest.mark.parametrize("last", [minute([USUAL] * 8), minute([], active=False)])
    @pytest.mark.parametrize("after", [1, 200, 500])
    def test_it_recovers_or_its_job_ends_before(self, last: dict[str, Any], after: float) -> None:
        """Who approves then is told that nothing waits."""
        story = self.story()
        story.event(1500, "gpu.minute", "node", "n007", **last)
        story.say(1500 + after, "approve", id=story.incidents("straggler")[0].id)
        story.run(3000)
        assert story.actions() == []
        assert len(story.notes("operator.refused")) == 1

    def test_a_hold_keeps_what_is_approved(self) -> None:
        story = self.story()
        story.say(1450, "hold", scope="node/n007", why="mine")
        story.say(1500, "approve", id=story.incidents("straggler")[0].id)
        tells(story, 1600, "n007", [USUAL] * 8)
        story.say(1700, "release", scope="node/n007")
        story.run(3000)
        assert story.actions() == []


def test_two_that_end_at_once_end_in_one_order_whoever_has_started_since() -> None:
    """n012 became slow before n010, which had told its minute before: a restarted brain ended them the other way round."""

    def notes(*, restarts: bool) -> list[str]:
        story, told = Story(PACK), Counter[str]()
        others = [node for node in NODES if node not in ("n010", "n012")]

        def tell(at: float, node: str, mhz: int) -> None:
            story.time.feed(said(node, told.total(), minute([(mhz, 690, 100)] * 8)), at)
            told[node] += 1

        for node in NODES:
            tell(10, node, 1900 if node == "n010" else 1980)
        tell(11, "n012", 1410)
        for at, mhz in ((13, 1990), (14, 2020)):
            for node in others:
                tell(at, node, mhz)
        story.run(500)
        assert slow_in(story.engine) == {"n010": "node", "n012": "node"}
        if restarts:
            state = parse(dump(story.engine.state))
            story.engine = story.time.engine = Engine(state, actions=ACTIONS, compile_pack=COMPILED)
        for node in others:
            tell(600, node, 1400)
        story.run(1200)
        assert slow_in(story.engine) == {}
        return [f"{note.id} {note.text}" for note in story.time.notes]

    assert notes(restarts=True) == notes(restarts=False)
