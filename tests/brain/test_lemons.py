"""A node that needs one remedy after the other, while its peers do not, is a lemon (decision 66).

How it is paged, kept out of service and given back by people: simulations/scenarios/slow.yaml.
"""

from dataclasses import replace

import pytest

from brain.core.context import Context
from brain.core.faults import lemons, racks
from brain.core.index import Index
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import Place
from brain.core.state import Bout, Node, State
from tests.brain.core.cell import NOW
from tests.brain.healthy_months import Month, lemons_of, racks_of
from tests.brain.test_releases import COMPILED, SHIPPED

DAY = 86400.0
RACKED = Compiled(
    replace(SHIPPED, places={f"n{number}": Place(rack=f"r{number // 16}") for number in range(1024)})
)


def state(nodes: int, bouts: dict[str, tuple[float, ...]]) -> State:
    """`bouts`: node -> how many days ago it needed a remedy."""
    return State(
        now=NOW + 100 * DAY,
        nodes={f"n{number}": Node(name=f"n{number}") for number in range(nodes)},
        bouts={
            node: [Bout(at=NOW + (100 - days) * DAY, cause="gpu-lost") for days in ago]
            for node, ago in bouts.items()
        },
    )


@pytest.mark.parametrize(
    ("nodes", "bouts", "p"),
    [
        pytest.param(1, {"n0": (9, 7, 5, 3, 1)}, 3.66e-3, id="alone"),
        pytest.param(4, {"n0": (9, 7, 5, 3, 1)}, 6.61e-6, id="of four"),
        pytest.param(4, {"n0": (9, 7, 5, 3, 1), "n1": (9, 7, 5, 3, 1)}, 1.06e-3, id="another counts twice at most"),
        pytest.param(4, {"n0": (29, 7, 5, 3, 1)}, 1.33e-4, id="one is too long ago"),
        pytest.param(4, {"n0": (9,) * 5, "n1": (30, 31)}, 6.61e-6, id="those of others, too"),
        pytest.param(100, {"n0": (9,) * 5} | {f"n{n}": (8,) for n in range(1, 100)}, 3.66e-3, id="as all are ill"),
    ],
)  # fmt: skip
def test_how_likely_it_is_by_chance(nodes: int, bouts: dict[str, tuple[float, ...]], p: float) -> None:
    """The values of scipy.stats.poisson.sf."""
    assert lemons.chance(state(nodes, bouts), "n0") == pytest.approx(p, rel=5e-3)


@pytest.mark.parametrize("rate", [6.5, 20.0])
def test_a_year_in_which_all_nodes_are_alike(rate: float) -> None:
    """Chance alone makes no lemon, also where faults are three times as many as in published fleets."""
    months = [Month(seed=seed, nodes=1024, rate=rate, alike=True, days=84) for seed in range(4)]
    assert [found for month in months for found in lemons_of(COMPILED, month)] == []


def test_half_a_year_with_heavy_tails() -> None:
    """A twentieth of the nodes has half of the faults: whatever is called a lemon has many times the faults of a usual one."""
    months = [Month(seed=seed, nodes=1024, days=56) for seed in range(4)]
    times = sorted(more for month in months for _, more in lemons_of(COMPILED, month))
    assert len(times) >= 8
    assert times[0] > 4
    assert times[len(times) // 4] > 10


def test_one_bad_day_is_no_lemon_and_what_is_remembered_is_bounded() -> None:
    """Ten remedies on one day are one bout; however many follow, a dozen bouts are kept."""
    cell = state(1000, {})
    called = []
    for number in range(40):
        for hour in range(10):
            cell.now = NOW + number * DAY + hour * 3600
            made = Context(cell, COMPILED, Index(cell), ACTIONS, f"i{cell.now}", observe_all=False)
            if lemons.remedied(made, "n1", "gpu-lost"):
                called.append((number, hour))
    assert called[:3] == [(4, 0), (5, 0), (6, 0)]
    assert not any(hour for _, hour in called)
    assert len(cell.bouts["n1"]) == lemons.MAX_BOUTS


@pytest.mark.parametrize(("rate", "alike"), [(6.5, True), (20.0, True), (6.5, False), (20.0, False)])
def test_a_year_in_which_no_rack_is_at_fault(rate: float, *, alike: bool) -> None:
    """Chance alone, and nodes of which few have most faults, make a suspect of no rack."""
    months = [Month(seed=seed, nodes=1024, rate=rate, alike=alike, days=84) for seed in range(2)]
    assert [found for month in months for found in racks_of(RACKED, month)] == []


def test_remedies_of_one_rack_that_wait_for_each_other() -> None:
    """Power fails for a rack, and its nodes are healed one by one over the day: one fault, not many."""
    cell = state(256, {})
    for number in range(16):
        cell.now += 3600.0
        made = Context(cell, RACKED, Index(cell), ACTIONS, f"i{number}", observe_all=False)
        lemons.remedied(made, f"n{number}", "gpu-lost")
        assert racks.remedied(made, f"n{number}", "gpu-lost") == []
