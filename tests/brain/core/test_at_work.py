"""A node that people have drained is not told as silent while they may be at work on it; not for ever, and never on a guess."""

from dataclasses import replace
from itertools import pairwise

import pytest

from brain.core.effects import AskJobs
from brain.core.inputs import Input, JobsAnswer, NodeState
from brain.core.pack.spec import Mode, ModeSetting, Settings
from tests.brain.world import Story
from tests.shipped import shipped_pack

SHIPPED = shipped_pack()
SHIFT_S = next(rule.drained_s for rule in SHIPPED.rules if rule.name == "node-unreachable")


class Cluster(Story):
    """A scheduler that is asked."""

    def __init__(
        self, drained: str = "", *, ours: bool | None = False, known: bool = True, answers: bool = True
    ) -> None:
        settings = Settings(modes=(ModeSetting(mode=Mode.OBSERVE),), ask_jobs=True)
        self.drained, self.ours, self.known, self.answers = drained, ours, known, answers
        self.asked: list[float] = []
        super().__init__(replace(SHIPPED, settings=settings), heals=False)

    def _answer(self, effect, now: float):  # type: ignore[no-untyped-def]  # as in the story
        if isinstance(effect, AskJobs):
            self.asked.append(now)
            if self.answers:
                given: Input = JobsAnswer(
                    id=f"j{len(self.asked)}",
                    node=effect.node,
                    known=self.known,
                    drained=self.drained,
                    ours=self.ours,
                )
                return [(now + 1, given)]
            return []
        return super()._answer(effect, now)

    def silent(self, until: float, at: float = 100) -> list[float]:
        """The node falls silent. When people were paged for it."""
        self.time.feed(NodeState(id=f"gone {at}", node="n1", alive=False, silent_s=15), at)
        self.run(until)
        return [
            note.at for note in self.time.notes if note.kind == "page.sent" and " open to " in f" {note.text}"
        ]


def test_whoever_has_drained_it_hears_nothing() -> None:
    """The node is back after ten minutes, and nobody has heard of it."""
    cluster = Cluster("ann: driver 570")
    assert not cluster.silent(700)
    cluster.time.feed(NodeState(id="back", node="n1", alive=True), 700)
    cluster.run(2000)
    assert not cluster.time.pages
    assert "somebody has drained n1 (ann: driver 570) and may be at work on it" in cluster.notes(
        "incident.waits"
    )


def test_a_shift_later_it_is_told() -> None:
    """Once, and the scheduler is not asked more than every five minutes meanwhile."""
    cluster = Cluster("ann: driver 570")
    (told,) = cluster.silent(100 + SHIFT_S + 120)
    assert 100 + SHIFT_S <= told <= 100 + SHIFT_S + 30
    assert len(cluster.asked) <= 2 + SHIFT_S / 300 * 1.1
    assert len(cluster.notes("incident.waits")) == 2  # that it is asked, and what it said


@pytest.mark.parametrize(
    ("cluster", "within_s"),
    [
        pytest.param(Cluster, 5, id="nobody has"),
        pytest.param(lambda: Cluster("gpuward:inc-1", ours=True), 5, id="gpuward has"),
        pytest.param(lambda: Cluster(known=False), 5, id="the scheduler cannot say"),
        pytest.param(lambda: Cluster("ann: x", answers=False), 25, id="the scheduler does not answer"),
    ],
)  # fmt: skip
def test_else_it_is_told_as_ever(cluster, within_s: float) -> None:  # type: ignore[no-untyped-def]  # makes a cluster
    """After its hold-off of fifteen seconds, and what the scheduler may take."""
    (told,) = cluster().silent(200)
    assert told <= 115 + within_s


def test_a_drain_that_ends_before_the_node_is_back() -> None:
    """Whoever gives back a node that is silent hears that it is."""
    cluster = Cluster("ann: driver 570")
    assert not cluster.silent(1000)
    cluster.drained = ""
    assert len(cluster.silent(1400)) == 1


def silences(cluster: Cluster, count: int, each_s: float, well_s: float = 600.0) -> list[float]:
    """The node is silent again and again, and back for `well_s` in between. When people were paged."""
    told: list[float] = []
    for number in range(count):
        at = 100 + number * (each_s + well_s)
        told = cluster.silent(at + each_s, at)
        cluster.time.feed(NodeState(id=f"back {number}", node="n1", alive=True), at + each_s)
        cluster.run(at + each_s + 300)
    return told


def test_silences_of_one_drain_count_together() -> None:
    """Who works on a node restarts it for minutes: four hours, four hours and four hours are told in the third."""
    (told,) = silences(Cluster("ann: driver 570"), 3, SHIFT_S / 2 - 600)
    assert told == pytest.approx(100 + SHIFT_S + 2 * 600, abs=30)


def test_people_hear_of_it_once_a_shift() -> None:
    """Ten silences of half a shift, hours apart, are told five times at most, not each from the second on."""
    told = silences(Cluster("ann: driver 570"), 10, SHIFT_S / 2 + 60, 18_000.0)
    assert len(told) == 5
    assert all(later - earlier >= SHIFT_S for earlier, later in pairwise(told))


def test_short_silences_do_not_add_up_to_a_shift_for_days() -> None:
    """A restart every other day says nothing of the restarts of last week."""
    cluster = Cluster("ann: driver 570")
    for number in range(4):
        at = 100 + number * 2 * 86_400.0
        assert not cluster.silent(at + SHIFT_S / 3, at)
        cluster.time.feed(NodeState(id=f"back {number}", node="n1", alive=True), at + SHIFT_S / 3)
        cluster.run(at + SHIFT_S / 3 + 300)
    assert list(cluster.engine.state.shifts) == ["n1"]
    assert cluster.engine.state.shifts["n1"][0] <= SHIFT_S / 3 + 30


def test_another_drain_is_another_shift() -> None:
    """The node went back into service in between: what its silences were before that says nothing."""
    cluster = Cluster("ann: driver 570")
    assert not silences(cluster, 1, SHIFT_S - 900)
    cluster.drained = ""
    at = cluster.engine.state.now + 300
    assert len(cluster.silent(at + 60, at)) == 1  # in service, it is told at once
    assert not cluster.engine.state.shifts


def test_a_forgotten_node_leaves_nothing() -> None:
    """Nor how long it was silent."""
    cluster = Cluster("ann: driver 570")
    assert not silences(cluster, 1, SHIFT_S / 2)
    at = cluster.engine.state.now + 300
    cluster.silent(at + 60, at)
    cluster.say(at + 100, "forget", node="n1", why="it is gone")
    cluster.run(at + 101)
    assert not cluster.engine.state.shifts
