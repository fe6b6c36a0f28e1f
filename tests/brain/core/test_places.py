"""Which place explains best that several nodes show one symptom: on trees that cross, and on random ones."""

import random
from collections.abc import Mapping

import pytest

from brain.core.faults import places
from brain.core.faults.places import PlaceVerdict

KINDS = ("chassis", "leaf", "rack", "power", "row", "pod", "cell")
NEEDED = {"chassis": 0.75, "leaf": 0.5, "rack": 0.5, "power": 0.25, "row": 0.25, "pod": 0.25, "cell": 0.1}
# 128 nodes: four pods of four leaves of eight; racks of four; a power feed over two nodes of each leaf of a pod.
ABOVE = {
    f"n{n}": (
        f"leaf/l{n // 8}",
        f"rack/r{n // 4}",
        f"power/f{n // 32}-{n % 8 // 2}",
        f"pod/p{n // 32}",
        "cell",
    )
    for n in range(128)
}


def sizes(above: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Place -> number of nodes."""
    found: dict[str, int] = {}
    for there in above.values():
        for place in there:
            found[place] = found.get(place, 0) + 1
    return found


def verdict(ill: Mapping[str, float], asked: str = "cell") -> PlaceVerdict:
    """The judgement of what is ill in the whole cell."""
    return places.judge(asked, places.seen_in(ill, ABOVE, sizes(ABOVE), NEEDED, KINDS))


def at_once(*numbers: int) -> dict[str, float]:
    """All fell ill at the same time."""
    return {f"n{n}": 100.0 for n in numbers}


@pytest.mark.parametrize(
    ("ill", "place"),
    [
        pytest.param(at_once(*range(8)), "leaf/l0", id="a leaf, whose neighbours are well"),
        pytest.param(at_once(*range(8), 40), "leaf/l0", id="a leaf, and a stray in another pod"),
        pytest.param(at_once(*range(24)), "pod/p0", id="three of the four leaves of a pod"),
        pytest.param(at_once(*range(32)), "pod/p0", id="a pod"),
        pytest.param(at_once(*range(32), 64), "pod/p0", id="a pod, and a stray"),
        pytest.param(at_once(*range(0, 128, 7)), "cell", id="nodes everywhere"),
        pytest.param(at_once(*range(8), *range(64, 72)), "cell", id="two leaves of two pods at once"),
        pytest.param(at_once(0, 1, 8, 9, 16, 17, 24, 25), "power/f0-0", id="a feed over several leaves"),
        pytest.param(at_once(4, 5, 6, 7), "rack/r1", id="a rack, half of its leaf"),
    ],
)
def test_the_smallest_place_that_holds_nearly_all(ill: dict[str, float], place: str) -> None:
    """Of places with the same ill nodes the one that is ill as a whole; of several hit places what holds them."""
    found = verdict(ill, "cell" if len(ill) >= 13 else place)
    assert found.place == place
    assert found.candidates[0].place == place
    assert found.candidates[0].best
    assert all(one.why for one in found.candidates)


def test_two_leaves_at_different_times_are_two_causes() -> None:
    """Nothing connects them; at once, something would."""
    later = at_once(*range(8)) | {f"n{n}": 2500.0 for n in range(64, 72)}
    assert verdict(later).place == "leaf/l0"
    assert verdict(later, "leaf/l8").place == "leaf/l8"


def test_a_tie_is_said_as_a_tie() -> None:
    """A rack that is a leaf: nobody can tell which."""
    above = {f"n{n}": ("leaf/l1", "rack/r1", "cell") if n < 8 else ("cell",) for n in range(40)}
    seen = places.seen_in(at_once(*range(8)), above, sizes(above), NEEDED, KINDS)
    found = places.judge("rack/r1", seen)
    assert found.place == "leaf/l1"
    assert "cannot tell them apart" in found.candidates[0].why
    alone = {name: tuple(one for one in there if one != "rack/r1") for name, there in above.items()}
    sure = places.judge(
        "leaf/l1", places.seen_in(at_once(*range(8)), alone, sizes(alone), NEEDED, KINDS)
    ).sure
    assert found.sure == pytest.approx(sure / 2, abs=0.01)


def test_nodes_without_a_place_make_it_less_sure() -> None:
    """They break nothing."""
    above = {name: there if int(name[1:]) < 96 else ("cell",) for name, there in ABOVE.items()}
    seen = places.seen_in(at_once(*range(90, 128)), above, sizes(above), NEEDED, KINDS)
    found = places.judge("cell", seen, unplaced=32)
    assert found.place == "cell"
    assert found.sure < places.judge("cell", seen).sure


@pytest.mark.parametrize(
    ("sure", "word"),
    [(0.0, ""), (0.2, "low"), (0.45, "medium"), (0.74, "medium"), (0.75, "high"), (1.0, "high")],
)
def test_how_sure_in_a_word(sure: float, word: str) -> None:
    """Empty: nothing was judged."""
    assert places.word(sure) == word


@pytest.mark.parametrize("seed", range(300))
def test_random_trees(seed: int) -> None:
    """The place holds all but a few of what is asked about, and of two that do, one that is ill as a whole is never passed over
    for a larger one with the same ill nodes; the answer does not depend on the order in which the nodes fell ill.
    """
    draw = random.Random(seed)
    count = draw.randrange(20, 120)
    widths = {kind: draw.choice((2, 3, 5, 8, 13, 21)) for kind in ("chassis", "leaf", "rack", "power", "row")}
    shuffled = {kind: draw.sample(range(count), count) for kind in widths}
    above = {
        f"n{n}": (*(f"{kind}/{shuffled[kind][n] // width}" for kind, width in widths.items()), "cell")
        for n in range(count)
    }
    all_sizes = sizes(above)
    middle = draw.choice([place for place in all_sizes if place != "cell" and all_sizes[place] > 2])
    ill = {name: 1.0 for name, there in above.items() if middle in there and draw.random() < 0.95}
    ill |= {f"n{draw.randrange(count)}": 1.0 for _ in range(draw.choice((0, 0, 1, 4, 30)))}
    seen = places.seen_in(ill, above, all_sizes, NEEDED, KINDS)
    turned = places.seen_in(dict(reversed(ill.items())), above, all_sizes, NEEDED, KINDS)
    for asked in [one.place for one in seen.values() if one.reached]:
        found = places.explaining(asked, seen)
        assert found == places.explaining(asked, turned)
        chosen, own = seen[found], seen[asked]
        assert chosen.reached
        missed = [node for node in own.ill if node not in chosen.ill]
        assert len(missed) <= max(1, places.STRAYS_SHARE * len(own.ill) + places.FEW_SHARE * len(own.ill))
        assert not any(
            one.reached and one.ill.keys() == chosen.ill.keys() and one.of < chosen.of
            for one in seen.values()
        ), "a smaller place has the same ill nodes"


def seen_as(place: str, ill: int, of: int, *, accused: bool = False, order: int = 0) -> places.Seen:
    """A place of which the first so many nodes are ill."""
    nodes = {f"n{number}": 100.0 for number in range(ill)}
    return places.Seen(
        place=place, ill=nodes, of=of, needed=lambda: 3.0, reached=True, accused=accused, order=order
    )


@pytest.mark.parametrize(
    ("clients", "accused", "place"),
    [
        pytest.param(32, False, "leaf/l1", id="the same nodes: the narrower kind"),
        pytest.param(32, True, "storage/fs", id="the same nodes, and the fault is one of file servers"),
        pytest.param(35, True, "storage/fs", id="three of its clients are idle"),
        pytest.param(40, True, "leaf/l1", id="eight of its clients are well: the leaf says more"),
    ],
)
def test_what_such_faults_mostly_come_of(clients: int, accused: bool, place: str) -> None:
    """A file server has the nodes of a leaf switch: the kind of fault decides, unless the nodes that are well do."""
    order = 1 if accused else 7
    seen = [
        seen_as("leaf/l1", 32, 32, order=6),
        seen_as("storage/fs", 32, clients, accused=accused, order=order),
    ]
    verdict = places.judge("leaf/l1", {one.place: one for one in seen})
    assert verdict.place == place
    if accused and place == "storage/fs":
        assert "mostly one of a storage" in verdict.candidates[1].why
        assert "cannot tell them apart" not in verdict.candidates[0].why


DAY_S = 86_400.0
OLD = {f"old{number}": 1000.0 * number for number in range(20)}


@pytest.mark.parametrize(
    ("beside", "apart"),
    [
        pytest.param(OLD, True, id="others have been ill for hours"),
        pytest.param(OLD | {"new": DAY_S + 60.0}, True, id="and a single one since"),
        pytest.param(
            OLD | {"a": DAY_S + 60.0, "b": DAY_S + 90.0}, False, id="and two of them since: it goes on"
        ),
        pytest.param(
            {f"m{n}": DAY_S - 300.0 + n for n in range(20)}, False, id="others fell ill minutes before"
        ),
        pytest.param({f"m{n}": DAY_S + 3600.0 for n in range(20)}, True, id="others fell ill an hour later"),
    ],
)
def test_what_falls_ill_long_after_the_rest(beside: dict[str, float], *, apart: bool) -> None:
    """Eight nodes of a rack within a minute, beside others of the cell."""
    rack = {f"n{number}": DAY_S + number for number in range(8)}
    assert places.fell_ill_apart(rack, beside | rack) is apart
    assert not places.fell_ill_apart(rack | {"n9": DAY_S - 3600.0}, beside | rack), "it came one by one"
