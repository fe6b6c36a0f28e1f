"""What collectors make of a GPU's health: timelines, one sample a second."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors.base import Collector
from agent.collectors.gpu_heat import GpuHeatCollector
from agent.collectors.gpu_links import GpuLinksCollector, ber_of
from agent.collectors.gpu_memory import GpuMemoryCollector
from agent.collectors.gpu_state import EVENTS, GpuStateCollector
from agent.collectors.gpu_use import GpuUseCollector
from agent.collectors.growth import GrowthTracker
from agent.collectors.idle import IdleOptions
from agent.collectors.samples import Gpu, GpuCount, GpuEvent, GpuHealth, Sample
from agent.contract import kinds
from agent.contract.messages import MAX_TEXT
from tests.agent.health_kit import BDF, GPU, JOB, NEIGHBOUR, events_of, health, seconds


def test_growth_is_reported_when_it_is_there_and_then_a_window_later() -> None:
    """Least 9 within 60 s: slow growth is forgotten, a burst is reported at once, the next one not at once."""
    growth = GrowthTracker()
    values = [
        (0, 100),
        (30, 104),
        (61, 106),
        (62, 114),
        (63, 116),
        (80, 130),
        (123, 131),
        (124, 3),
        (125, 13),
        (190, 14),
    ]
    reported = [(at_s, growth.offer("x", v, at_s, least=9, window_s=60.0)) for at_s, v in values]
    assert [(at_s, delta) for at_s, delta in reported if delta] == [(63, 10), (123, 15), (190, 11)]


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 2**64)), max_size=50), st.integers(0, 20))
def test_growth_never_reports_more_than_there_was(values: list[tuple[float, int]], least: int) -> None:
    """Whatever a counter does: in all no more than its rises."""
    growth, before, rises, total = GrowthTracker(), None, 0, 0
    for at_s, value in sorted(values):
        rises += max(0, value - before) if before is not None else 0
        before = value
        delta = growth.offer("x", value, at_s, least=least, window_s=60.0)
        assert delta >= 0
        total += delta
    assert total <= rises


ECC = "ecc__{}__{}__{}".format
FIRST_ECC = {
    ECC(counter, word, place): 5
    for counter in ("volatile", "aggregate")
    for word in ("corrected", "uncorrected")
    for place in ("total", "dram", "sram")
}


@pytest.mark.parametrize(
    ("grown", "want"),
    [
        ({}, []),
        ({ECC("volatile", "uncorrected", "total"): 6}, [("total", False, "volatile")]),
        ({ECC("aggregate", "uncorrected", "dram"): 6}, [("dram", False, "aggregate")]),
        (
            dict.fromkeys(
                (ECC("volatile", "uncorrected", "total"), ECC("volatile", "uncorrected", "dram"),
                 ECC("aggregate", "uncorrected", "total"), ECC("aggregate", "uncorrected", "dram")), 6,
            ),
            [("dram", False, "volatile")],
        ),
        (
            {ECC("volatile", "corrected", "dram"): 6, ECC("volatile", "uncorrected", "sram"): 7},
            [("dram", True, "volatile"), ("sram", False, "volatile")],
        ),
        ({ECC("volatile", "uncorrected", "dram"): 0}, []),
    ],
    ids=["nothing", "total only", "aggregate only", "all four of one error", "two errors", "driver loaded again"],
)  # fmt: skip
def test_an_ecc_error_is_reported_once_by_its_best_name(
    grown: dict[str, int], want: list[tuple[str, bool, str]]
) -> None:
    """The location rather than the total, since the driver's start rather than in the card's life."""
    reported = events_of(GpuMemoryCollector(), [health(0, **FIRST_ECC), health(5, **{**FIRST_ECC, **grown})])
    assert [(d["location"], d["corrected"], d["counter"]) for _, _, d in reported] == want


def test_corrected_errors_are_reported_once_a_minute_with_their_sum() -> None:
    """Uncorrected ones each time."""
    collector, key = GpuMemoryCollector(), ECC("volatile", "corrected", "dram")
    reported = events_of(collector, [health(t, **{key: t}) for t in range(0, 125, 5)])
    assert [(at_s, d["delta"]) for at_s, _, d in reported] == [(5, 5), (65, 60)]
    key = ECC("volatile", "uncorrected", "dram")
    assert len(events_of(collector, [health(t, **{key: t}) for t in range(0, 25, 5)])) == 4


def test_an_idle_link_may_be_slow_and_never_narrow() -> None:
    """Power saving lowers the generation; while the GPU works it must be the full one."""
    slow = health(0, pcie__width=16, pcie__width_max=16, pcie__generation=1, pcie__generation_max=5)
    full = replace(slow, values={**slow.values, "pcie.generation": 5}, mono_s=9.0)
    idle = replace(GPU, utilization_now=0, utilization=0)
    assert events_of(GpuLinksCollector(), [idle, slow, idle]) == []
    reported = events_of(GpuLinksCollector(), [GPU, slow, idle, slow, full])
    assert [(d["active"], d["generation"]) for _, _, d in reported] == [(True, 1), (False, 5)]


@pytest.mark.parametrize(
    ("own", "neighbours", "want"),
    [
        ("111111", "111111", []),
        ("110111", "111111", [(1, "2")]),
        ("000000", "111111", []),
        ("111100", "111100", []),
        ("121111", "111111", []),
    ],
    ids=["all", "one is down", "no bridge at all", "half a bridge on both", "one is asleep"],
)
def test_nvlinks_are_compared_with_the_neighbours(
    own: str, neighbours: str, want: list[tuple[int, str]]
) -> None:
    """At the first sample; a card without any link may have no bridge."""

    def states(text: str) -> dict[str, int]:
        return {f"nvlink__{link}__state": int(state) for link, state in enumerate(text)}

    for order in (1, -1):
        samples = [health(0, **states(own)), health(0, NEIGHBOUR, **states(neighbours))][::order]
        reported = events_of(GpuLinksCollector(), samples)
        assert [(d["down"], d["links"]) for _, _, d in reported] == want


def test_the_fabric_may_take_two_minutes_and_no_more() -> None:
    """Although NVML reports the same all the time; its recovery is reported because its trouble was."""
    samples: list[Sample] = [health(0, fabric__state=2, fabric__status=0, fabric__health=0)]
    samples += [*seconds(GPU, 1, 200), health(200, fabric__state=3, fabric__status=0, fabric__health=0xAA)]
    reported = events_of(GpuLinksCollector(), samples)
    assert [(at_s, d["healthy"], d["trouble"]) for at_s, _, d in reported] == [
        (120, False, "in_progress"),
        (200, True, ""),
    ]
    quick = [
        health(0, fabric__state=1),
        *seconds(GPU, 1, 60),
        health(60, fabric__state=3),
        *seconds(GPU, 61, 300),
    ]
    assert events_of(GpuLinksCollector(), quick) == []
    assert events_of(GpuLinksCollector(), [health(0, fabric__state=0), *seconds(GPU, 1, 300)]) == []


@pytest.mark.parametrize(
    ("mask", "summary", "trouble"),
    [
        (0xAA, 1, ""),
        (0x1AA, 1, ""),
        (0x2AA, 2, "incorrect_system"),
        (0x3AA, 2, "incorrect_chassis"),
        (0x4AA, 2, "no_partition"),
        (0x5AA, 2, "insufficient_nvlinks"),
        (0x6AA, 2, "incompatible_gpu_firmware"),
        (0x7AA, 2, "invalid_location"),
        (0x8AA, 2, "invalid_gpu_state"),
        (0xFAA, 0, "configuration_15"),
        (0x5A9, 2, "degraded_bandwidth,insufficient_nvlinks"),
        (0, 0, ""),
        (0, 2, "unhealthy"),
        (0, 3, "limited_capacity"),
    ],
)
def test_what_the_fabric_says_of_itself(mask: int, summary: int, trouble: str) -> None:
    """The mask names it; where it says nothing, the summary does."""
    sample = health(0, fabric__state=3, fabric__status=0, fabric__health=mask, fabric__summary=summary)
    assert [data["trouble"] for _, _, data in events_of(GpuLinksCollector(), [sample])] == (
        [trouble] if trouble else []
    )


def test_the_nvlink_errors_of_one_sample_are_one_event() -> None:
    """Eighteen links with ten counters each: the worst link, the next, and how many."""
    names = (
        "replay",
        "recovery",
        "recovery_failed",
        "receive",
        "integrity",
        "malformed",
        "overrun",
        "recovered",
        "ecc",
    )
    counters = [f"nvlink__{link}__{name}" for link in range(18) for name in names]
    fault = dict.fromkeys(counters, 1) | {"nvlink__7__recovery_failed": 5, "nvlink__7__crc": 9000}
    well = dict.fromkeys(fault, 0)
    ((at_s, kind, data),) = events_of(
        GpuLinksCollector(), [health(0, **well), health(1, **fault), health(2, **fault)]
    )
    assert (at_s, kind, data["link"], data["counter"], data["delta"]) == (
        1,
        "gpu.nvlink_errors",
        7,
        "recovery_failed",
        5,
    )
    assert data["counters"] == 163
    links = str(data["links"])
    assert links.startswith("7: recovery_failed +5, ecc +1, ")
    assert links.endswith("; and 14 more") or len(links) == MAX_TEXT


def test_bit_error_rates() -> None:
    """As nvml.h packs them; reported for each power of ten that it gets worse, and once when it is over."""
    assert (ber_of(0), ber_of(0x50F), ber_of(0x0FF)) == (0.0, 5e-15, 0.0)
    series = [0x50F, 0x50B, 0x60B, 0x509, 0x10B, 0x50F]
    reported = events_of(
        GpuLinksCollector(), [health(i, nvlink__3__effective_ber=v) for i, v in enumerate(series)]
    )
    assert [(at_s, d["active"]) for at_s, _, d in reported] == [(1, True), (3, True), (5, False)]


def test_a_wanted_recovery_is_reported_with_each_change() -> None:
    """None at the start is no news."""
    reported = events_of(
        GpuStateCollector(), [health(t, recovery_action=a) for t, a in enumerate([0, 1, 1, 4, 9, 0, 0])]
    )
    assert [d["name"] for _, _, d in reported] == ["reset", "drain_and_reset", "unknown", "none"]


def test_settings_are_reported_when_they_change() -> None:
    """Also when they were not reported in between."""
    reported = events_of(
        GpuStateCollector(), [health(0, mig=0, driver="a"), health(1), health(2, mig=1, driver="a")]
    )
    assert [(d["what"], d["before"], d["now"]) for _, _, d in reported] == [("mig", "0", "1")]


def test_missing_gpus_are_counted_by_edges() -> None:
    """Again when more are missing, and when all are there."""
    counts = [(8, 0), (7, 1), (7, 1), (6, 1), (8, 0)]
    samples = [GpuCount(answering=a, lost=l, expected=8, basis="pci") for a, l in counts]  # noqa: E741
    reported = events_of(GpuStateCollector(), samples)
    assert [(d["missing"], d["unnamed"]) for _, _, d in reported] == [(1, 0), (2, 1), (0, 0)]


@pytest.mark.parametrize(
    ("basis", "of_all", "told"),
    [
        pytest.param("pci", 8, [(15, 16, 1), (16, 16, 0)], id="by the bus"),
        pytest.param("config", 16, [(8, 16, 8), (16, 16, 0), (15, 16, 1), (16, 16, 0)], id="by the operator"),
    ],
)
def test_two_makers_gpus_in_one_node_are_counted_together(
    basis: str, of_all: int, told: list[tuple[int, int, int]]
) -> None:
    """Each by its own source, turn after turn: else one that is missing is back with the next count of the others."""
    samples = [
        GpuCount(answering=answering, lost=8 - answering, expected=of_all, basis=basis, by=by)
        for amd in (8, 7, 7, 7, 8)
        for by, answering in (("amdgpu", amd), ("npu-smi", 8))
    ]
    reported = events_of(GpuStateCollector(), samples)
    assert [(d["gpus"], d["expected"], d["missing"]) for _, _, d in reported] == told


@pytest.mark.parametrize("bit", [1 << n for n in range(20)])
def test_events_are_reported_by_their_name(bit: int) -> None:
    """XIDs, clocks, P-states and unknown ones are not this collector's."""
    reported = events_of(
        GpuStateCollector(), [GpuEvent(bdf=BDF, type=bit, data=0), GpuEvent(bdf="?", type=bit, data=0)]
    )
    assert len(reported) == int(bit in EVENTS)
    assert not {0x4, 0x8, 0x10} & set(EVENTS)


SPIN = replace(GPU, utilization=100, power_w=118.0, processes=(JOB,))
LIMIT = health(0, power_limit=700_000)


def test_full_use_at_idle_power_is_a_hang() -> None:
    """After the window, again each 300 s, and its end; the job is named."""
    reported = events_of(
        GpuUseCollector(IdleOptions()), [LIMIT, *seconds(SPIN, 0, 1000), *seconds(GPU, 1000, 1010)]
    )
    assert [(at_s, d["active"], d["lasted_s"]) for at_s, _, d in reported] == [
        (600, True, 600.0),
        (900, True, 900.0),
        (1000, False, 999.0),
    ]
    assert reported[0][2]["job"] == "4711"


@pytest.mark.parametrize(
    "gpu",
    [
        replace(SPIN, power_w=300.0),
        replace(SPIN, power_w=None),
        replace(SPIN, utilization=60),
        replace(SPIN, processes=()),
        replace(SPIN, lost="lost"),
        replace(SPIN, utilization=0, processes=(), memory_used_mb=600),
        replace(SPIN, utilization=0, memory_used_mb=70_000),
        replace(SPIN, utilization=0, processes=(), memory_used_mb=70_000, holders_known=False),
    ],
)
def test_what_is_no_hang_and_no_orphan(gpu: Gpu) -> None:
    """Real work, an unknown power, an empty card, memory that a process holds, unknown holders."""
    assert events_of(GpuUseCollector(IdleOptions()), [LIMIT, *seconds(gpu, 0, 1000)]) == []


def test_memory_without_a_process_is_reported_if_it_was_watched_all_the_time() -> None:
    """After a gap in the samples the window starts again."""
    orphan = replace(GPU, utilization=0, memory_used_mb=70_000)
    reported = events_of(
        GpuUseCollector(IdleOptions()), [*seconds(orphan, 0, 500), *seconds(orphan, 700, 1302)]
    )
    assert [(at_s, kind) for at_s, kind, _ in reported] == [(1300, "gpu.orphaned")]


VALUES = st.dictionaries(
    st.sampled_from(
        [
            "ecc.volatile.corrected.dram",
            "ecc.a.b.c.d",
            "ecc",
            "remap.pending",
            "remap.failure",
            "retired.pending",
            "sram_threshold",
            "margin",
            "memory_temp",
            "threshold.memory_max",
            "tlimit.gpu_max",
            "pcie.width",
            "pcie.width_max",
            "pcie.replay",
            "pcie",
            "nvlink.x.state",
            "nvlink.1.state",
            "nvlink.1.effective_ber",
            "nvlink.all.replay",
            "nvlink",
            "fabric.state",
            "fabric.status",
            "fabric.health",
            "recovery_action",
            "persistence",
            "driver",
            "power_limit",
        ]
    ),
    st.one_of(
        st.integers(-(2**63), 2**64), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5)
    ),
)


@given(st.lists(st.one_of(VALUES, st.integers(0, 100)), max_size=20))
def test_no_value_breaks_a_collector(series: list[dict[str, int | float | str] | int]) -> None:
    """Odd types, odd keys, in any order: facts that are well formed, or nothing."""
    readers: list[Collector] = [
        GpuMemoryCollector(), GpuHeatCollector(), GpuLinksCollector(), GpuStateCollector(), GpuUseCollector(IdleOptions()),
    ]  # fmt: skip
    for at_s, one in enumerate(series):
        sample: Sample = (
            replace(GPU, utilization=one, mono_s=float(at_s))
            if isinstance(one, int)
            else GpuHealth(index=0, bdf=BDF, values=one, mono_s=float(at_s))
        )
        for reader in readers:
            for unsent in reader.feed(sample, float(at_s)):
                kinds.check(unsent)
