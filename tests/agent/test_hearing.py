"""When a beat asks for an answer, and when another server is tried (agent/uplink/hearing.py)."""

import pytest

from agent.uplink.hearing import Hearing

BEAT_S = 2.0


class Node:
    """One that beats each 2 s, on a clock of its own."""

    def __init__(self, chance: float = 0.0) -> None:
        self.now_s = 0.0
        self.moved_s: list[float] = []
        self.hearing = Hearing(
            lambda: self.moved_s.append(self.now_s), clock=lambda: self.now_s, chance=lambda: chance
        )

    def beats(
        self, for_s: float, *, waits: bool = False, answered: bool = False, beat_s: float = BEAT_S
    ) -> str:
        """A letter for each beat: `A` asks, and `-` does not."""
        found, until_s = "", self.now_s + for_s
        while self.now_s < until_s:
            self.now_s += beat_s
            asks = self.hearing.asks(waits)
            found += "A" if asks else "-"
            if asks and answered:
                self.hearing.heard(True)
        return found


@pytest.fixture(name="node")
def _node() -> Node:
    """Its brain has answered once."""
    node = Node()
    assert node.beats(BEAT_S, answered=True) == "A"
    return node


def test_every_third_beat_asks_while_it_is_answered(node: Node) -> None:
    """Nor is another server tried."""
    assert node.beats(24, answered=True) == "--A--A--A--A"
    assert node.moved_s == []


def test_events_that_are_acknowledged_are_as_good(node: Node) -> None:
    """Whoever hears of its events asks nothing."""
    for _ in range(10):
        assert node.beats(4) == "--"
        node.hearing.heard(False)


def test_without_an_answer_another_server_is_tried_with_growing_pauses(node: Node) -> None:
    """In the time in which the brain does not take it for silent, which is 15 s; each five minutes in the end."""
    assert node.beats(10) == "--AAA"
    assert node.moved_s == [12.0]
    node.beats(3000)
    pauses = [b - a for a, b in zip(node.moved_s, node.moved_s[1:], strict=False)]
    assert pauses[:6] == [10.0, 18.0, 34.0, 66.0, 130.0, 258.0]
    assert set(pauses[6:]) == {302.0}
    node.hearing.heard(False)
    node.moved_s.clear()
    node.beats(10)
    assert len(node.moved_s) == 1, "after an answer it is quick again"


def test_a_fleet_does_not_move_as_one() -> None:
    """The one that waits longest goes two seconds later, which is still before it is taken for silent."""
    node = Node(chance=1.0)
    node.beats(BEAT_S, answered=True)
    node.beats(12)
    assert node.moved_s == [14.0]


def test_whoever_sends_events_is_not_moved_twice(node: Node) -> None:
    """While events wait, whoever sends them looks for another server."""
    node.beats(60, waits=True)
    assert node.moved_s == []
    node.beats(2)
    assert len(node.moved_s) == 1


def test_an_older_brain_never_answers() -> None:
    """So its silence says nothing."""
    node = Node()
    node.hearing.heard(False)
    assert set(node.beats(600)) == {"A"}
    assert node.moved_s == []


def test_one_that_was_stopped_itself_asks_before_it_moves(node: Node) -> None:
    """Its own sleep is not the server's silence."""
    node.now_s += 3600
    assert node.beats(4) == "AA"
    assert node.moved_s == []


def test_beats_that_are_far_apart(node: Node) -> None:
    """Three are asked in vain."""
    assert node.beats(120, beat_s=30) == "AAAA"
    assert node.moved_s == [92.0]
