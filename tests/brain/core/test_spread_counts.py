"""Who is counted in a spread and for how long, to the node and to the second: by the functions themselves."""

from typing import Any

import pytest

from brain.core.context import Context
from brain.core.faults import spread as counts
from brain.core.state import SetAside, SymptomState
from tests.brain.core.test_spreads import WIDE, leaf, sick, spread, well
from tests.brain.core.watch import Watch


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
