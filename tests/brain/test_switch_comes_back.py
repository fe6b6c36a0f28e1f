"""A cable that has been bad for hours, and its leaf switch that fails and comes back: with the rules that gpuward ships."""

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from brain.core.inputs import Input
from brain.core.pack.spec import Mode, ModeSetting, Pack, Place, Settings
from brain.core.rehearsal.timeline import Timeline
from brain.core.state import Incident
from tests.brain.world import Story
from tests.shipped import shipped_pack

WENT_S = 20_000.0  # when the switch goes
PORT = "port/mlx5_0.1"


@functools.cache
def fleet(nodes: int, others: int, mode: Mode = Mode.OBSERVE) -> Pack:
    """A leaf of so many nodes, among others elsewhere. Nothing is inspected.

    In a small cell they and the others are under the same seven leaf switches: there it is the fabric.
    """
    small = others < 100
    leaf = {f"n{number}": Place(leaf=f"l{1 + number % 7}" if small else "l1") for number in range(nodes)}
    rest = {
        f"m{number}": Place(leaf=f"l{1 + number % 7}" if small else f"l{2 + number // 16}")
        for number in range(others)
    }
    pack = shipped_pack(Settings(modes=(ModeSetting(mode=mode),)), {**leaf, **rest})
    return replace(pack, runbooks=tuple(replace(runbook, every_s=0) for runbook in pack.runbooks))


class Leaf(Story):
    """A leaf; each node of the cell is heard at the beginning."""

    def __init__(self, nodes: int = 16, others: int = 400, mode: Mode = Mode.OBSERVE) -> None:
        super().__init__(fleet(nodes, others, mode), heals=False)
        self.nodes = [f"n{number}" for number in range(nodes)]
        for node in (*self.nodes, *(f"m{number}" for number in range(others))):
            self.event(1, "agent.started", "node", node, version="1", kernel="6", gpus=8)

    def port(self, at: float, state: str, *nodes: str) -> None:
        """The port of each of them is up, or down."""
        before, phys = ("DOWN", "LinkUp") if state == "ACTIVE" else ("ACTIVE", "Polling")
        for node in nodes:
            self.event(at, "ib.port_state", PORT, node, state=state, before=before, phys_state=phys)

    def wide(self, scope: str = "leaf/l1") -> list[Incident]:
        """The incidents of the whole leaf."""
        return [one for one in self.incidents() if one.scope == scope]

    def of(self, node: str) -> list[Incident]:
        """The incidents of a node."""
        return [one for one in self.incidents() if one.node == node]

    def told(self, since: float = WENT_S) -> list[tuple[str, str, str]]:
        """(kind, group, scope) of the pages since then, in order."""
        ids = [note.data["page"] for note in self.time.notes if note.kind == "page.sent" and note.at >= since]
        return [(one.what, one.to, one.subject.scope) for one in self.time.pages if one.id in ids]


@pytest.mark.parametrize(
    "others", [400, 40], ids=["of a large cell", "of a small cell: the fabric is suspected"]
)
@pytest.mark.parametrize("bad", [1, 2, 3])
def test_a_cable_that_was_bad_before_keeps_no_switch_suspected(bad: int, others: int) -> None:
    """One shared incident, which ends when the switch is back; then each bad cable has its own again."""
    it = Leaf(others=others)
    old, rest = it.nodes[:bad], it.nodes[bad:]
    for number, node in enumerate(old):
        it.port(10 + 5000 * number, "DOWN", node)
    it.run(WENT_S - 1)
    before = [it.of(node)[-1].id for node in old]
    it.port(WENT_S, "DOWN", *rest)
    it.port(WENT_S + 400, "ACTIVE", *rest)
    it.run(WENT_S + 4000)
    wide = [one for one in it.incidents() if not one.node]
    paged = [one for one in wide if one.pages.first_at]
    assert len(paged) == 1
    assert [one.state.value for one in wide if one.state.value not in ("closed", "explained")] == []
    assert paged[0].closed_at <= WENT_S + 400 + 61
    for node, former in zip(old, before, strict=True):
        now = it.of(node)[-1]
        assert now.id != former
        assert now.state.value == "needs_human"
        assert now.opened_at <= WENT_S + 400 + 61


def test_it_ends_at_once_though_it_began_lately() -> None:
    """It does not grow: nobody shows it that fell ill with the switch."""
    it = Leaf()
    it.port(10, "DOWN", "n0")
    it.run(WENT_S - 1)
    it.port(WENT_S, "DOWN", *it.nodes[1:])
    it.port(WENT_S + 60, "ACTIVE", *it.nodes[1:])
    it.run(WENT_S + 61)
    assert [one.state.value for one in it.wide()] == ["recovered"]
    it.run(WENT_S + 4000)
    assert len(it.wide()) == 1


def test_a_bad_cable_that_is_reported_again_suspects_no_switch() -> None:
    """The nodes that recovered count for the growth; that what was bad before is bad still is none."""
    it = Leaf()
    old = it.nodes[:2]
    it.port(10, "DOWN", *old)
    it.run(WENT_S - 1)
    it.port(WENT_S, "DOWN", *it.nodes[2:])
    it.port(WENT_S + 120, "ACTIVE", *it.nodes[2:])
    it.port(WENT_S + 300, "DOWN", *old)
    it.run(WENT_S + 4000)
    assert len(it.wide()) == 1


def test_a_straggler_suspects_no_switch_anew() -> None:
    """The fabric was suspected and is well; one node comes back later, with a fault of its own, and it calls nobody twice."""
    it = Leaf(others=40)
    it.run(WENT_S - 1)
    it.port(WENT_S, "DOWN", *it.nodes)
    it.port(WENT_S + 60, "ACTIVE", *it.nodes[1:])
    it.port(WENT_S + 2000, "ACTIVE", "n0")
    it.run(WENT_S + 4000)
    opened = [(what, scope) for what, to, scope in it.told() if what == "open" and to == "oncall"]
    assert opened == [("open", "cell"), ("open", f"port/n0/{PORT[5:]}")]


def test_as_many_as_it_takes_are_shared_though_they_stood_before() -> None:
    """Four of sixteen are the switch, whenever they began (law 6): what came on top of them and went changes nothing."""
    it = Leaf()
    for number in range(4):
        it.port(10 + 4000 * number, "DOWN", f"n{number}")
    it.run(WENT_S - 1)
    assert [one.state.value for one in it.wide()] == ["needs_human"]
    it.port(WENT_S, "DOWN", *it.nodes[4:])
    it.port(WENT_S + 400, "ACTIVE", *it.nodes[4:])
    it.run(WENT_S + 4000)
    assert [one.state.value for one in it.wide()] == ["needs_human"]


def test_a_page_of_the_switch_shows_whom_it_has_taken() -> None:
    """Neither an old bad cable, nor since when that was bad, nor nodes that are back."""
    it = Leaf()
    it.port(10, "DOWN", "n0")
    it.run(WENT_S - 1)
    it.port(WENT_S, "DOWN", *it.nodes[1:])
    it.run(WENT_S + 60)
    page = next(one for one in it.time.pages if one.subject.scope == "leaf/l1")
    assert "n0" not in [fact.node for fact in page.subject.evidence]
    assert page.subject.since >= WENT_S
    state = it.engine.state.symptoms["leaf_ports_down@leaf/l1"]
    it.port(WENT_S + 70, "ACTIVE", *it.nodes[1:9])
    it.run(WENT_S + 80)
    assert [fact.node for fact in state.evidence] == [f"n{n}" for n in range(9, 15)]


def test_a_fault_that_goes_round_is_told_though_few_show_it_at_any_moment() -> None:
    """Four nodes fall ill one after the other, and the first recover meanwhile: that is told within minutes."""
    it = Leaf()
    it.run(WENT_S - 1)
    for number in range(12):
        it.port(WENT_S + 60 * number, "DOWN", f"n{number}")
        it.port(WENT_S + 60 * number + 91, "ACTIVE", f"n{number}")
    it.run(WENT_S + 2000)
    (leaf,) = it.wide()
    assert leaf.pages.first_at <= WENT_S + 3 * 60 + 91 + 2 + 300


@pytest.mark.parametrize("old", [7, 8, 9, 10])
def test_a_shared_cause_that_old_faults_keep_up_comes_to_rest(
    old: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most of those who fell ill when the switch went are well again, and the old ones alone are enough: nothing changes any
    more, so no timer is set, again and again, for what it cannot end.
    """
    it = Leaf()
    before, rest = it.nodes[:old], it.nodes[old:]
    for number, node in enumerate(before):
        it.port(10 + 2000 * number, "DOWN", node)
    it.run(WENT_S - 1)
    it.port(WENT_S, "DOWN", *rest)
    it.port(WENT_S + 100, "ACTIVE", *rest[1:])
    it.run(WENT_S + 200)
    fed = Counter[str]()

    def counted(self: Timeline, given: Input, at: float, feed: Callable[..., None] = Timeline.feed) -> None:
        fed[getattr(given, "name", type(given).__name__)] += 1
        assert fed.total() < 2000, fed.most_common(3)
        feed(self, given, at)

    monkeypatch.setattr(Timeline, "feed", counted)
    it.run(WENT_S + 4000)
