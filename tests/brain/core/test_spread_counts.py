"""Who is counted in a spread and for how long, to the node and to the second: by the functions themselves."""

from typing import Any

import pytest

from brain.core.context import Context
from brain.core.faults import spread as counts
from brain.core.pack.spec import Place
from brain.core.state import Node, SetAside, SymptomState
from tests.brain.core.test_spreads import WIDE, leaf, sick, spread, well
from tests.brain.core.watch import Watch, symptom


@pytest.mark.parametrize(
    ("set_aside", "shows"),
    [
        pytest.param({}, False, id="nothing is"),
        pytest.param({"sick@gpu/n1/0": "r1"}, True, id="a GPU's symptom was set aside"),
        pytest.param({"hot@gpu/n1/0": "r1"}, False, id="another symptom of the node was"),
        pytest.param({"sick@gpu/n2/0": "r1"}, False, id="another node's was"),
        pytest.param({"sick@gpu/m1/0": "r1"}, False, id="that of a node of another leaf was"),
    ],
)
def test_who_shows_it_by_what_was_set_aside(set_aside: dict[str, str], shows: bool) -> None:
    """Only the node's own, and only of this symptom."""
    watch = leaf()
    ctx = watch.ctx(100)
    ctx.state.set_aside |= {key: SetAside(run=run, at=50.0, until=900.0) for key, run in set_aside.items()}
    assert counts.shows(ctx, "sick", "n1", spread(), "leaf/l1") is shows


def reached(showing: int, lately: int = 0, at_s: float = 0, **changes: Any) -> bool:
    """Of a leaf of eight nodes: so many show it, so many more showed it lately, as long after the others as `at_s`."""
    watch = leaf(**changes)
    ctx = watch.ctx(1000)
    wide = SymptomState(name="wide", scope="leaf/l1", members={f"n{n}": 1000.0 for n in range(showing)})
    ctx.state.recovered[WIDE] = {f"n{showing + n}": 1000 - at_s for n in range(lately)}
    return counts.reached(ctx, spread(**changes), wide)


SIX = {"at_least": 6, "share": 0.75, "within_s": 900, "enough": 6}
HALF = {"at_least": 8, "within_s": 900}


@pytest.mark.parametrize(
    ("showing", "lately", "fields", "is_reached"),
    [
        pytest.param(5, 0, SIX, False, id="five of six"),
        pytest.param(6, 0, SIX, True, id="six show it"),
        pytest.param(3, 3, SIX, True, id="half show it, half did lately"),
        pytest.param(3, 3, SIX | {"at_s": 900}, True, id="just within the window"),
        pytest.param(3, 3, SIX | {"at_s": 901}, False, id="those who recovered began too early"),
        pytest.param(2, 4, SIX, False, id="fewer than half show it"),
        pytest.param(2, 6, {"at_least": 3}, False, id="without a window only those who show it count"),
        pytest.param(3, 0, {"at_least": 3}, True, id="without a window: all that it takes"),
        pytest.param(3, 0, {"at_least": 4, "within_s": 60}, False, id="a window, and too few"),
        pytest.param(
            4, 0, HALF | {"enough": 9}, True, id="half of a small leaf, however many would be enough"
        ),
        pytest.param(4, 0, HALF, False, id="without `enough` a small leaf is no exception"),
        pytest.param(5, 0, HALF | {"share": 1, "enough": 5}, True, id="enough of them, though not the share"),
        pytest.param(5, 0, HALF | {"share": 1}, False, id="the share alone decides"),
    ],
)
def test_how_many_it_takes(showing: int, lately: int, fields: dict[str, Any], is_reached: bool) -> None:
    """So many now; or so many lately, of whom half are left."""
    assert reached(showing, lately, **fields) is is_reached


def test_old_begins_that_still_show_it_are_enough_when_all_count() -> None:
    """With `enough`, the number of those who show it now decides whenever they began."""
    wide = SymptomState(name="wide", scope="leaf/l1", members={f"n{n}": 100.0 * n for n in range(1, 5)})
    fields: dict[str, Any] = {"at_least": 4, "within_s": 60, "enough": 9}
    assert counts.reached(leaf(**fields).ctx(1000), spread(**fields), wide)
    fields["enough"] = 0
    assert not counts.reached(leaf(**fields).ctx(1000), spread(**fields), wide)


def timer(watch: Watch) -> float | None:
    """When the oldest of those who recovered is forgotten."""
    return watch.state.timers.get(f"recovered:{WIDE}")


def test_when_they_are_forgotten() -> None:
    """The timer stands at the oldest of them; it is set anew when it has fired, or is late."""
    watch = leaf(within_s=900)
    sick(watch, 100, "n1")
    sick(watch, 200, "n2")
    well(watch, 300, "n2")
    assert timer(watch) == 1100
    well(watch, 310, "n1")
    assert timer(watch) == 1000, "n1 began before n2"
    sick(watch, 400, "n3")
    well(watch, 410, "n3")
    assert timer(watch) == 1000, "it is left when it is due earlier"
    sick(watch, 990, "n4")
    well(watch, 1000, "n4")
    assert timer(watch) == 1890, "one that is due now, and has not fired yet, is set anew"


def test_the_timer_is_not_set_twice() -> None:
    """Each is an effect, written to the log."""
    watch = leaf(within_s=900)
    for node in ("n1", "n2"):
        sick(watch, 100, node)
    well(watch, 200, "n1")
    ctx = watch.ctx(210)
    counts.recovers(ctx, spread(within_s=900), watch.known(WIDE), "n2")
    assert ctx.effects == []


def forgotten(watch: Watch, at: float) -> Context:
    """The timer fires."""
    ctx = watch.ctx(at)
    counts.forget_old(ctx, WIDE)
    return ctx


def test_a_timer_of_those_who_are_forgotten_or_of_no_spread() -> None:
    """Whoever was remembered for a definition that a reload has removed is forgotten at once."""
    watch = leaf(within_s=900)
    assert forgotten(watch, 100).effects == []
    watch.state.recovered[WIDE] = {"n1": 99.5}
    del watch.compiled.symptoms["wide"]
    assert forgotten(watch, 100).effects == []
    assert watch.state.recovered == {}


def one_after_the_other(pause_s: float, nodes: int, *, lasts: bool, **changes: Any) -> list[bool]:
    """With which node it is shared, in a cell that `nodes` more are known of. `lasts`: facts end what is counted."""
    whole = spread(**({"scope": "cell"} | changes))
    places = PLACES if whole.scope == "fabric" else {}
    watch = Watch(symptom() if lasts else symptom(clear=()), whole, places=places)
    watch.state.nodes |= {f"x{number}": Node(name=f"x{number}") for number in range(nodes)}
    return [bool(sick(watch, 100 + pause_s * number, f"n{number}")) for number in range(1, 6)]


PLACES = {f"n{number}": Place(leaf=f"l{number}") for number in range(1, 9)}
FOURTH, NEVER = [False, False, False, True, False], [False] * 5


@pytest.mark.parametrize(("scope"), ["cell", "fabric"])
@pytest.mark.parametrize(
    ("lasts", "pause_s", "begins"),
    [
        pytest.param(True, 10, FOURTH, id="at about the same time"),
        pytest.param(True, 600, FOURTH, id="one after the other: they all show it now"),
        pytest.param(False, 10, FOURTH, id="things that happened at about the same time"),
        pytest.param(False, 600, NEVER, id="things that happened at other times"),
    ],
)
def test_what_lasts_counts_whenever_it_began(
    scope: str, pause_s: float, begins: list[bool], *, lasts: bool
) -> None:
    """Law 6: a large share of the whole that shows the symptom now is a shared cause, also by a rule with a window."""
    assert one_after_the_other(pause_s, 8, lasts=lasts, scope=scope, at_least=4, within_s=300) == begins


@pytest.mark.parametrize(
    ("nodes", "lasts", "scope", "begins"),
    [
        pytest.param(6, True, "cell", [False, False, True, False, False], id="three of six"),
        pytest.param(8, True, "cell", FOURTH, id="four of eight"),
        pytest.param(11, True, "cell", NEVER, id="five of eleven"),
        pytest.param(6, False, "cell", NEVER, id="of what only happens the rule's own number counts"),
    ],
)
def test_of_a_small_site_a_few_are_many(nodes: int, scope: str, begins: list[bool], *, lasts: bool) -> None:
    """Whatever number a rule asks for: a small site could not reach it."""
    assert one_after_the_other(10, nodes, lasts=lasts, scope=scope, at_least=8) == begins


@pytest.mark.parametrize(
    ("leaves", "begins"),
    [("aaaa", [False] * 4), ("aaab", FOURTH[:4]), ("abcd", [False, False, True, True])],
)
def test_a_leaf_switch_says_more_than_the_whole_of_a_small_site(leaves: str, begins: list[bool]) -> None:
    """As long as all that show it are under one, and a rule counts there. With the fourth node it is asked again where it is."""
    places = {f"n{number}": Place(leaf=leaf_) for number, leaf_ in enumerate(leaves, 1)}
    whole = spread(scope="cell", at_least=8)
    watch = Watch(symptom(), whole, spread(name="narrow", at_least=3), places=places)
    assert [bool(sick(watch, 100, node)) for node in places] == begins
