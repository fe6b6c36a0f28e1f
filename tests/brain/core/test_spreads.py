"""`detect: spread`: how many nodes of a leaf, a rack or the cell show one symptom, and when that is one shared cause."""

import math
from typing import Any

from brain.core.effects import Note
from brain.core.faults import symptoms
from brain.core.pack.spec import Match, Place, Symptom
from brain.core.state import Node, SymptomState
from tests.brain.core.watch import Watch, symptom

LEAVES = {
    **{f"n{number}": Place(leaf="l1") for number in range(1, 9)},
    **{f"m{number}": Place(leaf="l2") for number in range(1, 3)},
}
WIDE = "wide@leaf/l1"


def spread(**changes: Any) -> Symptom:
    """Three nodes of a leaf."""
    fields: dict[str, Any] = {
        "name": "wide", "scope": "leaf", "summary": "on many", "detect": "spread", "of": "sick", "at_least": 3,
    }  # fmt: skip
    return Symptom(**(fields | changes))


def leaf(*more: Symptom, **changes: Any) -> Watch:
    """A leaf of eight nodes, and one of two."""
    return Watch(symptom(), spread(**changes), *more, places=LEAVES)


def wide(changed: list[str]) -> list[str]:
    """What changed for the whole leaf, by our symptom."""
    return [one for one in changed if one[1:].startswith("wide@")]


def sick(watch: Watch, at: float, node: str, gpu: int = 0, **fields: Any) -> list[str]:
    """A GPU of the node falls sick."""
    return wide(watch.fact(at, "x.bad", f"{node} gpu/{gpu}", **fields))


def well(watch: Watch, at: float, node: str, gpu: int = 0) -> list[str]:
    """A GPU of the node is well again."""
    return wide(watch.fact(at, "x.good", f"{node} gpu/{gpu}"))


def test_it_begins_with_the_node_that_makes_it_many() -> None:
    """Nodes are counted, not GPUs; those of another leaf, or of none that is known, are not."""
    watch = leaf()
    assert sick(watch, 100, "n1") == []
    assert sick(watch, 101, "n1", 1) == []
    assert sick(watch, 102, "n2", age_s=7) == []
    assert sick(watch, 103, "m1") == []
    assert sick(watch, 104, "stranger") == []
    state = watch.known(WIDE)
    assert (state.members, state.since, state.last, state.arrived) == ({"n1": 100, "n2": 95}, 100, 101, 102)
    assert (state.total, state.active) == (3, False)
    assert sick(watch, 105, "n3", evidence="Xid 79") == [f"+{WIDE}"]
    assert [evidence.node for evidence in state.evidence] == ["n1", "n1", "n2", "n3"]
    assert ("symptom.started", "wide at leaf/l1: Xid 79") in watch.told()
    assert WIDE in watch.active
    assert (state.last, state.arrived, state.total) == (105, 105, 4)
    assert sick(watch, 106, "n4") == [], "it has begun already"


def test_it_shows_the_first_facts() -> None:
    """One of each symptom that was counted, up to six; a symptom without any is counted all the same."""
    watch = leaf(at_least=99)
    for number in range(1, 9):
        sick(watch, 100 + number, f"n{number}")
    assert [evidence.node for evidence in watch.known(WIDE).evidence] == [
        f"n{number}" for number in range(1, 7)
    ]
    assert len(watch.known(WIDE).members) == 8


def test_a_symptom_without_evidence() -> None:
    """It begins, and is counted, without a fact to show."""
    watch = leaf(at_least=1)
    state = SymptomState(name="sick", scope="gpu/n1/0", since=90, last=95)
    watch.state.symptoms["sick@gpu/n1/0"] = state
    ctx = watch.ctx(100)
    changed = list(symptoms.start(ctx, "sick@gpu/n1/0", state))
    assert next(effect.text for effect in ctx.effects if isinstance(effect, Note)) == "sick at gpu/n1/0"
    assert [one.name for one in changed if one.name in ("sick", "wide")] == ["sick", "wide"]
    assert watch.known(WIDE).evidence == []


def test_it_ends_below_half_of_what_began_it() -> None:
    """A node counts as long as one of its GPUs is sick."""
    watch = leaf(at_least=4)
    for number in range(1, 5):
        sick(watch, 100, f"n{number}")
    sick(watch, 100, "n1", 1)
    assert WIDE in watch.active
    assert well(watch, 110, "n1", 1) == []
    assert set(watch.known(WIDE).members) == {"n1", "n2", "n3", "n4"}
    assert well(watch, 111, "n1") == []
    assert well(watch, 112, "n2") == [], "two of four are half"
    assert set(watch.known(WIDE).members) == {"n3", "n4"}
    assert well(watch, 113, "n3") == [f"-{WIDE}"]
    assert ("symptom.ended", "wide at leaf/l1 ended: only 1 node still shows it") in watch.told()
    assert list(watch.known(WIDE).members) == ["n4"], "who shows it still is counted when it comes back"
    assert well(watch, 114, "n4") == []
    assert WIDE not in watch.state.symptoms


def test_half_of_an_odd_number() -> None:
    """Three of five are more than half, two are less."""
    watch = leaf(at_least=5)
    for number in range(1, 6):
        sick(watch, 100, f"n{number}")
    assert [well(watch, 110, f"n{number}") for number in (1, 2, 3)] == [[], [], [f"-{WIDE}"]]


def test_a_node_that_was_counted_for_an_earlier_one() -> None:
    """What was forgotten does not count it any more, and it cannot be taken out of what came later."""
    watch = leaf(ttl_s=600)
    sick(watch, 100, "n1")
    well(watch, 800, "n1")
    assert WIDE not in watch.state.symptoms
    sick(watch, 900, "n2")
    assert well(watch, 901, "n1") == []
    assert list(watch.known(WIDE).members) == ["n2"]


def test_components_of_one_node_in_several_wider_places() -> None:
    """The ports of a card: those of the other card do not keep it."""
    watch = Watch(symptom(scope="port"), spread(scope="nic", at_least=1))
    for port in ("mlx5_0.1", "mlx5_0.2", "mlx5_1.1"):
        watch.fact(100, where=f"n1 port/{port}")
    assert wide(watch.fact(101, "x.good", "n1 port/mlx5_0.1")) == []
    assert wide(watch.fact(102, "x.good", "n1 port/mlx5_0.2")) == ["-wide@nic/n1/mlx5_0"]
    assert "wide@nic/n1/mlx5_1" in watch.active


def test_it_ends_with_the_last_node() -> None:
    """Few were needed; one that had not begun is forgotten without a word."""
    watch = leaf(at_least=1)
    assert sick(watch, 100, "n1") == [f"+{WIDE}"]
    assert well(watch, 101, "n1") == [f"-{WIDE}"]
    assert ("symptom.ended", "wide at leaf/l1 ended: no node shows it any more") in watch.told()
    few = leaf()
    sick(few, 100, "n1")
    sick(few, 100, "n2")
    assert well(few, 101, "n1") == []
    assert list(few.known(WIDE).members) == ["n2"]
    well(few, 102, "n2")
    assert (WIDE in few.state.symptoms, few.due(WIDE)) == (False, None)
    assert not any("wide" in text for _, text in few.told())


def test_another_symptom_of_the_node_does_not_keep_it() -> None:
    """Only the one that is counted does."""
    other = symptom(name="hot", on=(Match(kind="x.hot"),), clear=())
    watch = leaf(other, at_least=1)
    watch.fact(100, "x.hot")
    sick(watch, 100, "n1")
    assert well(watch, 101, "n1") == [f"-{WIDE}"]


def test_each_place_counts_by_itself() -> None:
    """A symptom is counted in every spread that watches it, where the node has a place of that kind."""
    watch = Watch(
        symptom(),
        spread(name="racked", scope="rack", at_least=1),
        spread(at_least=1),
        spread(name="all", scope="cell", at_least=2),
        spread(name="hots", of="hot", at_least=1),
        symptom(name="hot", on=(Match(kind="x.hot"),)),
        places=LEAVES,
    )
    watch.fact(100, where="n1 gpu/0")
    watch.fact(101, where="m1 gpu/0")
    assert [key for key in watch.active if not key.startswith("sick@")] == ["all@cell", WIDE, "wide@leaf/l2"]


def test_nothing_wider_than_a_node_is_counted() -> None:
    """A leaf's own symptom is on no node."""
    everywhere = spread(name="all", scope="cell", at_least=1)
    watch = Watch(symptom(scope="leaf"), spread(at_least=1), everywhere, places=LEAVES)
    assert watch.fact(100) == ["+sick@leaf/l1"]
    assert watch.fact(101, "x.good") == ["-sick@leaf/l1"]


def test_a_share_of_the_nodes() -> None:
    """Of a leaf by its places; of the cell by the nodes that are known."""
    watch = leaf(at_least=2, share=0.5)
    assert [bool(sick(watch, 100, f"n{number}")) for number in range(1, 5)] == [False, False, False, True]
    assert [bool(sick(watch, 100, f"m{number}")) for number in range(1, 3)] == [False, True]
    cell = Watch(symptom(), spread(scope="cell", share=0.25, at_least=2))
    cell.state.nodes |= {f"x{number}": Node(name=f"x{number}") for number in range(12)}
    assert [bool(sick(cell, 100, f"x{number}")) for number in range(3)] == [False, False, True]


def test_within_a_window() -> None:
    """So many must have begun within it of each other; just at its edge counts. Those of before stay counted."""
    watch = leaf(within_s=60)
    assert sick(watch, 100, "n1") == []
    assert sick(watch, 160.5, "n2") == []
    assert sick(watch, 190, "n3") == [], "n1 was half a second too early"
    assert sick(watch, 220.5, "n4") == [f"+{WIDE}"]
    assert len(watch.known(WIDE).members) == 4


def test_on_its_way_it_lives_as_long_as_what_it_counts() -> None:
    """Not by its window, nor by a time of its own: a node that shows the symptom is counted."""
    watch = leaf(within_s=60, ttl_s=600)
    sick(watch, 100, "n1")
    assert watch.due(WIDE) is None
    watch.wait(1000)
    assert WIDE in watch.state.symptoms
    well(watch, 1001, "n1")
    assert WIDE not in watch.state.symptoms


def test_it_lives_as_long_as_facts_renew_what_it_counts() -> None:
    """No node more is needed: it ends when too few of them show the symptom."""
    watch = leaf(ttl_s=600)
    for number in range(1, 4):
        sick(watch, 100, f"n{number}")
    for at in range(160, 2000, 60):
        sick(watch, at, "n2")
        assert [one for one in watch.wait(at + 59) if "wide@" in one[1]] == []
    assert [one for one in watch.wait(9000) if "wide@" in one[1]] == [(3700, f"-{WIDE}")], (
        "n1 and n3 lived an hour"
    )


def growing() -> Watch:
    """A leaf whose nodes fall sick one after the other, two minutes apart: 100, 220, 340, 460."""
    watch = leaf(at_least=4, within_s=900, enough=4)
    for number in (1, 2, 3):
        sick(watch, 120 * number - 20, f"n{number}")
    return watch


def test_a_fault_that_goes_from_node_to_node() -> None:
    """Those who recovered count for its growth, as long as half of the number show it."""
    watch = growing()
    well(watch, 350, "n1")
    well(watch, 360, "n2")
    assert sick(watch, 460, "n4") == [f"+{WIDE}"]
    assert list(watch.known(WIDE).members) == ["n3", "n4"]
    few = growing()
    for number in (1, 2, 3):
        well(few, 350, f"n{number}")
    assert sick(few, 460, "n4") == [], "one node shows it: what was, is over"
    assert sick(few, 470, "n5") == [f"+{WIDE}"], "two are half of four, and five began lately"


def test_a_node_that_recovered_counts_once() -> None:
    """However often it falls sick."""
    watch = leaf(at_least=4, within_s=900, enough=4)
    sick(watch, 100, "n1")
    for at in range(110, 200, 10):
        assert sick(watch, at, "n2") == []
        well(watch, at + 5, "n2")
    assert sick(watch, 200, "n2") == []
    assert watch.state.recovered[WIDE] == {}
    assert sick(watch, 210, "n3") == []
    assert sick(watch, 220, "n4") == [f"+{WIDE}"]


def test_it_is_not_over_while_it_grows() -> None:
    """Few show it at any moment: it ends when the newest of them began five minutes ago, or nobody shows it."""
    watch = growing()
    sick(watch, 460, "n4")
    for number in (1, 2, 3):
        assert well(watch, 500, f"n{number}") == []
    sick(watch, 580, "n5")
    well(watch, 600, "n4")
    assert watch.wait(879) == []
    assert watch.wait(900) == [(880, f"-{WIDE}")]
    again = growing()
    sick(again, 460, "n4")
    for number in (1, 2, 3):
        well(again, 500, f"n{number}")
    assert well(again, 501, "n4") == [f"-{WIDE}"], "nobody shows it"


def test_while_it_is_many_it_waits_for_news() -> None:
    """A timer that finds nothing to end would be set again at once, for ever."""
    watch = growing()
    sick(watch, 460, "n4")
    well(watch, 470, "n1")
    assert watch.due(WIDE) is None
    for number in (2, 3):
        well(watch, 480, f"n{number}")
    assert watch.due(WIDE) == 760


def test_those_who_recovered_are_forgotten() -> None:
    """Each within_s after its symptom began; nothing is left of them."""
    watch = growing()
    for number in (1, 2, 3):
        well(watch, 350, f"n{number}")
    assert watch.state.recovered == {WIDE: {"n1": 100, "n2": 220, "n3": 340}}
    assert watch.state.fault_free()
    watch.wait(1119)
    assert watch.state.recovered == {WIDE: {"n2": 220, "n3": 340}}
    watch.wait(1240)
    assert (watch.state.recovered, watch.state.timers) == ({}, {})
    old = leaf(within_s=60)
    sick(old, 100, "n1")
    well(old, 160, "n1")
    assert old.state.recovered == {}, "too old to count when it recovers"


def cell(**changes: Any) -> Watch:
    """Ten nodes of which four make a shared cause, whenever it began on them; a fact lasts for an hour."""
    watch = Watch(
        symptom(), spread(**{"scope": "cell", "at_least": 4, "within_s": 900, "enough": math.inf} | changes)
    )
    watch.state.nodes |= {f"n{number}": Node(name=f"n{number}") for number in range(10)}
    return watch
