"""How a GPU is compared with its peers of the same job, and what that costs (decision 76)."""

import time
import tracemalloc
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.core import minutes
from brain.core.faults import stragglers
from brain.core.minutes import PEERS, JobPeers
from brain.core.state import JobMinute, State
from tests.brain.straggler_kit import (
    ADDRESSES,
    H100,
    NODES,
    PACK,
    SLOW,
    USUAL,
    Figures,
    engine,
    minute,
    said,
    slow_in,
    with_slow,
)
from tests.yardstick import slowness


def job_of(values: dict[str, list[Figures]]) -> tuple[JobPeers, State]:
    """The GPUs of one job beside each other, as nodes told them."""
    state, peers = State(), JobPeers()
    for node, gpus in values.items():
        data = {name: minute(gpus)[name] for name in ("gpus", "sm_mhz", "power_w", "busy")}
        one = JobMinute(node=node, job="4711", model=H100, at=0, since=0, arrived=0, **data)
        state.minutes[node] = one
        peers.add(node, one)
    return peers, state


def slow_gpus(values: dict[str, list[Figures]]) -> set[str]:
    """`<node> <address>` of those that are judged slow."""
    peers, state = job_of(values)
    found = peers.judge(state, "").slow
    return {f"{node} {bdf}" for node, one in found.items() for bdf in one.gpus}


FEW_NODES = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from((*[1980] * 20, *[1965] * 10, 1890, 1870, 1700, 1410)), st.just(690), st.just(100)
        ),
        min_size=1,
        max_size=8,
    ),
    min_size=PEERS + 1,
    max_size=24,
)


class TestTheMethod:
    """Median and median absolute deviation over the GPUs of a job."""

    @given(FEW_NODES)
    def test_it_is_what_the_textbook_says(self, nodes: list[list[Figures]]) -> None:
        """Counted in steps it finds what a sorted list of all values finds."""
        values = dict(zip(NODES, nodes, strict=False))
        clocks = sorted(gpu[0] for gpus in nodes for gpu in gpus)
        half, most = len(clocks) // 2, max(map(len, nodes))
        if 4 * most > len(clocks):
            assert slow_gpus(values) == set()
            return
        middle = clocks[half - most]
        apart = sorted(abs(clock - middle) for clock in clocks)
        limit = middle - max(7.5 * apart[min(half + most, len(apart) - 1)], 0.05 * middle)
        below = {
            f"{node} {ADDRESSES[slot]}"
            for node, gpus in values.items()
            for slot, gpu in enumerate(gpus)
            if gpu[0] < limit
        }
        few = len({one.split()[0] for one in below}) <= 1  # of 24 nodes one may be a straggler
        assert slow_gpus(values) == (below if few else set())

    @given(st.randoms(use_true_random=False))
    def test_what_was_taken_out_is_counted_no_more(self, random: Random) -> None:
        """After any coming and going the counts are those of who is there."""
        there: dict[str, list[Figures]] = {}
        peers, state = JobPeers(), State()
        for _ in range(40):
            node = f"n{random.randrange(12)}"
            if node in state.minutes and random.random() < 0.5:
                peers.take(state.minutes.pop(node))
                del there[node]
                continue
            if node in state.minutes:
                peers.take(state.minutes.pop(node))
            there[node] = [(5 * random.randrange(200, 400), 690, random.randrange(101)) for _ in range(8)]
            _, alone = job_of({node: there[node]})
            state.minutes[node] = alone.minutes[node]
            peers.add(node, state.minutes[node])
        fresh, _ = job_of(there)
        assert peers.judge(state, "").slow == fresh.judge(state, "").slow

    @pytest.mark.parametrize("seed", range(20))
    @pytest.mark.parametrize("nodes", [6, 16, 64, 256])
    def test_chips_differ_and_none_is_ill(self, seed: int, nodes: int) -> None:
        """Under a power cap clocks are spread by 2.5 %, as chips of one model are: no GPU of 20 jobs is a straggler."""
        random = Random(seed)
        values = {
            f"n{number}": [
                (round(random.gauss(1400, 35)), round(random.gauss(500, 8)), 100) for _ in range(8)
            ]
            for number in range(nodes)
        }
        assert slow_gpus(values) == set()

    @pytest.mark.parametrize("nodes", [6, 16, 64, 256])
    def test_a_tenth_slower_is_found_among_such_chips_where_they_run_alike(self, nodes: int) -> None:
        """Without a cap all run at their highest clock, but for the one."""
        random = Random(nodes)
        values = {
            f"n{number}": [(1980 - 15 * random.randrange(2), 690, 100) for _ in range(8)]
            for number in range(nodes)
        }
        values["n3"][5] = (1770, 600, 100)
        assert slow_gpus(values) == {f"n3 {ADDRESSES[5]}"}

    @pytest.mark.parametrize(
        ("figures", "judged"),
        [
            pytest.param((1870, 690, 100), True, id="just beyond the limit of 1,881 MHz"),
            pytest.param((1885, 690, 100), False, id="just within"),
            pytest.param((1410, 760, 100), False, id="draws a tenth more: it works more"),
            pytest.param((1410, 750, 100), True, id="draws hardly more"),
            pytest.param((1410, 0, 100), True, id="its power is not known"),
            pytest.param((0, 690, 100), False, id="its clock is not known"),
            pytest.param((0, 230, 20), True, id="waits"),
            pytest.param((1980, 690, 20), False, id="waits at the power of those that compute: it does something else"),
            pytest.param((1980, 0, 20), False, id="waits, and its power is not known"),
            pytest.param((1980, 230, 85), False, id="waits a little"),
        ],
    )  # fmt: skip
    def test_one_gpu_beside_its_peers(self, figures: Figures, judged: bool) -> None:
        values = {node: [USUAL] * 8 for node in NODES}
        values["n007"] = with_slow(2, figures=figures)
        assert slow_gpus(values) == ({f"n007 {ADDRESSES[2]}"} if judged else set())

    def test_while_the_job_loads_its_data_nobody_is_busy_enough(self) -> None:
        values = {node: [(1980, 120, 5)] * 8 for node in NODES} | {"n007": [(1980, 60, 0)] * 8}
        assert slow_gpus(values) == set()

    @pytest.mark.parametrize(("slow", "judged"), [(1, True), (2, True), (3, False), (16, False), (32, False)])
    def test_more_than_one_in_32_nodes_are_no_stragglers(self, slow: int, judged: bool) -> None:
        """A stage of a pipeline, or a cause that they share: of 64 nodes two at most."""
        values = {node: [SLOW if number < slow else USUAL] * 8 for number, node in enumerate(NODES)}
        assert len(slow_gpus(values)) == (8 * slow if judged else 0)

    @pytest.mark.parametrize("nodes", range(1, 8))
    def test_too_few_peers(self, nodes: int) -> None:
        """Of five other nodes something can be said, and of fewer that nothing is."""
        values = {node: [USUAL] * 8 for node in NODES[:nodes]} | {NODES[0]: with_slow(2)}
        peers, state = job_of(values)
        found = peers.judge(state, NODES[0])
        assert bool(found.slow) is (nodes > PEERS)
        why = found.unjudged.get(NODES[0], "")
        assert ("are needed to judge" in why) is (nodes <= PEERS)


class TestTheCost:
    """It must not grow with the job."""

    def test_an_event_costs_the_same_in_a_large_job(self) -> None:
        """Of 4,000 nodes no more than three times that of 100, while a straggler is among them."""

        def seconds(nodes: int) -> float:
            made, random = engine(), Random(1)
            for number in range(nodes):
                made.handle(said(f"m{number:04}", 1, minute(_spread(random))), 10)
            made.handle(said("m0007", 2, minute(with_slow(2))), 11)
            assert slow_in(made)
            best = []
            for turn in range(3):
                began = time.process_time()
                for number in range(100):
                    made.handle(said(f"m{number:04}", 3 + turn, minute(_spread(random))), 20 + turn)
                best.append(time.process_time() - began)
            return min(best)

        assert seconds(4000) < 3 * seconds(100) + 0.01

    def test_ten_thousand_nodes_of_one_job(self) -> None:
        """80,000 GPUs: less than a millisecond an event, and less than 40 MB."""
        random = Random(2)
        events = [said(f"m{number:05}", 1, minute(_spread(random))) for number in range(10_000)]
        made = engine()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for event in events[:2000]:
            made.handle(event, 10)
        used = (tracemalloc.get_traced_memory()[0] - before) * 5
        tracemalloc.stop()
        assert used < 40e6
        began = time.process_time()
        for event in events[2000:]:
            made.handle(event, 10)
        assert (time.process_time() - began) / 8000 / slowness() < 1e-3
        assert slow_in(made) == {}


def _spread(random: Random) -> list[Figures]:
    return [(1980 - 15 * random.randrange(4), 680 + random.randrange(20), 100) for _ in range(8)]


def test_the_limits_are_those_of_the_document() -> None:
    """Who changes one changes docs/decisions/0076 too."""
    assert (minutes.MADS, minutes.SHARE, minutes.PEERS, minutes.ONE_IN, minutes.ONE_NODE_IN) == (
        7.5,
        0.05,
        5,
        32,
        4,
    )
    assert (stragglers.HOLDS_S, stragglers.LATE_S) == (1500.0, 300.0)
    for_s = {one.name: one.for_s for one in PACK.symptoms if one.name.endswith("_straggler")}
    assert for_s == {"gpu_straggler": 240.0, "node_straggler": 240.0}
