"""Driver counters of interfaces: which names matter, growth, resets, congestion by the minute."""

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors.congestion import CongestionOptions
from agent.collectors.nic import NicCollector, wanted
from agent.collectors.samples_node import NicCounters
from agent.contract import kinds
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.shared import dcb
from agent.shared import rtnetlink_wire as wire
from agent.sources.nic import rdma_links
from tests.agent.golden import FIXTURES


def events_of(collector: NicCollector, *samples: NicCounters) -> list[UnsentEvent]:
    unsent_events = [unsent for sample in samples for unsent in collector.feed(sample, 0.0)]
    for unsent in unsent_events:
        kinds.check(unsent)
    return unsent_events


def at(mono_s: float, **counters: int) -> NicCounters:
    return NicCounters(name="eth2", counters=counters, mono_s=mono_s)


@pytest.mark.parametrize(
    ("name", "is_wanted"),
    [
        ("rx_prio3_discards", True),
        ("rx_prio3_pause", True),
        ("tx_prio3_pause_duration", True),
        ("tx_pause_storm_error_events", True),
        ("rx_ecn_mark", True),
        ("rx_crc_errors_phy", True),
        ("rx_packets", False),
        ("rx_prio3_bytes", False),
        ("rx0_xdp_drop", False),
        ("rx_prio9_pause", False),
        ("", False),
    ],
)
def test_only_names_that_matter_are_read(name: str, is_wanted: bool) -> None:
    """Of the thousand counters of an adapter a few show loss and flow control."""
    assert wanted(name) is is_wanted


@pytest.mark.parametrize(
    ("told", "events"),
    [
        (({3}, {3}, {3}), []),
        ((None, {3}, None, {3}), []),
        (({3}, set(), set()), [("", "3", True)]),
        (({3, 4}, {4}, {4}, {3, 4}), [("4", "3, 4", True), ("3, 4", "4", False)]),
        (({3}, {4}, {3, 4}), [("4", "3", True), ("3, 4", "4", False)]),
        ((set(), {3}, {3}), [("3", "", False)]),
        (({3}, None, set()), [("", "3", True)]),
    ],
)  # fmt: skip
def test_priorities_that_lose_their_flow_control_are_told(
    told: tuple[set[int] | None, ...], events: list[tuple[str, str, bool]]
) -> None:
    """Beside what the interface has had; a driver that does not tell for a moment has lost nothing."""
    samples = (
        replace(at(10.0 * n, rx_prio3_pause=1), lossless=None if one is None else frozenset(one))
        for n, one in enumerate(told)
    )
    found = events_of(NicCollector(CongestionOptions()), *samples)
    assert [(one.data["priorities"], one.data["before"], one.data["lost"]) for one in found] == events
    assert {one.kind for one in found} <= {"link.pfc"}


def test_loss_is_reported_at_once_and_flow_control_is_not() -> None:
    """Drops are facts; pause frames are how a lossless network works."""
    collector = NicCollector(CongestionOptions())
    unsent_events = events_of(
        collector,
        at(0.0, rx_prio3_discards=5, rx_prio3_pause=100),
        at(10.0, rx_prio3_discards=125, rx_prio3_pause=900),
    )
    assert [(d.kind, d.component, dict(d.data)) for d in unsent_events] == [
        (
            "link.errors",
            "link/eth2",
            {
                "counter": "rx_prio3_discards",
                "delta": 120,
                "value": 125,
                "interval_s": 10.0,
                "priority": 3,
                "lossless": True,
            },
        )
    ]


@pytest.mark.parametrize(
    ("told", "counters", "lossless"),
    [
        (frozenset({3}), {"rx_prio3_discards": 9}, True),
        (frozenset({3}), {"rx_prio0_discards": 9, "tx_prio0_pause": 5}, False),
        (None, {"rx_prio4_buf_discard": 9, "tx_prio4_pause": 5}, True),
        (None, {"rx_prio0_discards": 9, "rx_prio0_pause": 0}, False),
    ],
)
def test_drops_say_whether_their_priority_is_lossless(
    told: frozenset[int] | None, counters: dict[str, int], lossless: bool
) -> None:
    """By the driver's word; where it has none, by whether the priority was ever paused."""
    before = {name: 0 if "disc" in name else value for name, value in counters.items()}
    samples = (replace(at(10.0 * n, **c), lossless=told) for n, c in enumerate((before, counters)))
    (found,) = events_of(NicCollector(CongestionOptions()), *samples)
    assert found.data["lossless"] is lossless


def test_the_kernels_answer_about_flow_control() -> None:
    """struct ieee_pfc as mlx5 fills it for priorities 3 and 4; an answer without it names none."""
    pfc = wire.attribute(2, struct.pack("=BBBxH", 8, 0b11000, 0, 0) + bytes(130))
    head = bytes(4) + wire.attribute(1, b"eth2\0")
    assert dcb.of_answer(head + wire.attribute(13, wire.attribute(1, bytes(40)) + pfc)) == {3, 4}
    assert (
        dcb.of_answer(head + wire.attribute(13, b""))
        == dcb.of_answer(head)
        == dcb.of_answer(b"")
        == frozenset()
    )
    with pytest.raises(OSError):
        dcb.lossless_priorities("no-such-link0")


def test_after_a_driver_reload_what_it_shows_is_new() -> None:
    """A counter that went down was reset; one that appears is a baseline."""
    collector = NicCollector(CongestionOptions())
    unsent_events = events_of(
        collector, at(0.0, rx_crc_errors_phy=900), at(10.0, rx_crc_errors_phy=2, rx_out_of_buffer=7)
    )
    assert [(d.data["counter"], d.data["delta"]) for d in unsent_events] == [("rx_crc_errors_phy", 2)]


def test_a_pause_storm_shows_as_congestion_once_a_minute() -> None:
    """A minute above the bound is one fact, with its rate; the next minute is the next."""
    collector = NicCollector(CongestionOptions(congestion_per_s=1000.0))
    unsent_events = events_of(
        collector, *(at(10.0 * n, rx_prio3_pause=20_000 * n, rx_ecn_mark=5 * n) for n in range(13))
    )
    assert [(d.kind, d.data["counter"], d.data["per_s"], d.data["interval_s"]) for d in unsent_events] == [
        ("link.congestion", "rx_prio3_pause", 2000.0, 60.0)
    ] * 2


@given(st.dictionaries(st.text(max_size=32), st.integers(0, 2**64 - 1), max_size=20), st.floats(0, 1e9))
def test_any_counters_are_taken(counters: dict[str, int], at_s: float) -> None:
    """A driver with odd names or values never raises."""
    collector = NicCollector(CongestionOptions())
    events_of(collector, at(0.0), NicCounters(name="eth2", counters=counters, mono_s=at_s), at(at_s + 1))


def test_rdma_interfaces_are_found() -> None:
    """Ethernet ports of RDMA devices; not IPoIB, whose port has its own counters."""

    def links(machine: str) -> tuple[str, ...]:
        return rdma_links(Host(root=FIXTURES / "machines" / machine), "/sys/class/infiniband")

    assert links("roce-node") == ("eth0", "eth1", "eth2", "eth3")
    assert links("h100-node") == ("eth0", "eth1")
    assert links("cpu-node") == ()
