"""InfiniBand ports: timelines of samples for the collector, a tree of files for the source."""

import json
from dataclasses import replace

import pytest

from agent.collectors.congestion import CongestionOptions
from agent.collectors.infiniband import LIMITS, MISSING_SAMPLES, InfinibandCollector
from agent.collectors.samples import IbDevices, IbPort
from agent.contract.messages import Severity
from tests.agent.infiniband_kit import events_of, port


def test_growth_is_reported_with_its_interval() -> None:
    """Old errors are a baseline; each sample that shows more is reported with how many, and in what time."""
    collector = InfinibandCollector(CongestionOptions())
    assert events_of(collector, port(1.0, symbol_error=7)) == []
    assert events_of(collector, port(2.0, symbol_error=7)) == []
    (unsent,) = events_of(collector, port(3.5, symbol_error=247))
    assert (unsent.kind, unsent.component, unsent.severity) == (
        "ib.errors",
        "port/mlx5_0.1",
        Severity.WARNING,
    )
    assert unsent.data == {
        "counter": "symbol_error", "delta": 240, "value": 247, "interval_s": 1.5, "rate_gbps": 400.0, "corrects": True,
        "spec_s": 600.0,
    }  # fmt: skip
    assert unsent.evidence == "mlx5_0 port 1 symbol_error 7 -> 247"


@pytest.mark.parametrize(
    ("rate", "an_hour"),
    [
        ("25 Gb/sec (1X EDR)", 90),
        ("50 Gb/sec (2X EDR)", 180),
        ("100 Gb/sec (4X EDR)", 360),
        ("200 Gb/sec (4X HDR)", 720),
        ("400 Gb/sec (4X NDR)", 1440),
        ("800 Gb/sec (4X XDR)", 2880),
        ("", 120),
    ],
)
def test_symbol_errors_weigh_by_the_rate(rate: str, an_hour: int) -> None:
    """An hour of the specification's bit error rate is 3600 s at any rate."""
    collector = InfinibandCollector(CongestionOptions())
    samples = [
        replace(port(at_s, symbol_error=errors), rate=rate) for at_s, errors in ((1.0, 0), (2.0, an_hour))
    ]
    (unsent,) = events_of(collector, *samples)
    assert unsent.data["spec_s"] == 3600.0


def test_what_an_ethernet_port_serves_as_infiniband_counters_is_told_apart() -> None:
    """Those that stand for what Ethernet does not have; the retransmissions of RoCE are its own."""
    collector = InfinibandCollector(CongestionOptions())
    samples = [
        replace(port(at_s, symbol_error=value, out_of_sequence=value), link_layer="Ethernet")
        for at_s, value in ((1.0, 0), (2.0, 9))
    ]
    told = {unsent.data["counter"]: unsent.data.get("ethernet") for unsent in events_of(collector, *samples)}
    assert told == {"symbol_error": True, "out_of_sequence": None}


@pytest.mark.parametrize("away", ["the agent starts again", "the device comes back"])
def test_a_full_counter_that_was_cleared_unseen_is_told(away: str) -> None:
    """Else its incident would stay open for a week. One that is still full is no reset, nor ends it."""
    collector = InfinibandCollector(CongestionOptions())
    full = port(1.0, symbol_error=0xFFFF, link_downed=0xFF, port_rcv_errors=7)
    assert [unsent.kind for unsent in events_of(collector, full)] == ["ib.saturated"] * 2
    if away == "the device comes back":
        events_of(collector, IbDevices(names=("mlx5_0",)), *[IbDevices(names=())] * MISSING_SAMPLES)
    else:
        known = json.loads(json.dumps(collector.remembered()))
        collector = InfinibandCollector(CongestionOptions(), before=known)
        assert collector.remembered() == known  # until the port is seen

    def resets(sample: IbPort) -> list[dict[str, object]]:
        return [
            dict(unsent.data) for unsent in events_of(collector, sample) if unsent.kind == "ib.counter_reset"
        ]

    assert resets(port(2.0, symbol_error=3, link_downed=0xFF, port_rcv_errors=0)) == [
        {"counter": "symbol_error", "before": 0xFFFF, "value": 3, "blind": 1}
    ]
    assert resets(port(3.0, symbol_error=3, link_downed=0, port_rcv_errors=0)) == [
        {"counter": "link_downed", "before": 0xFF, "value": 0, "blind": 0}
    ]
    assert collector.remembered() == {}


@pytest.mark.parametrize(
    "spoilt", [{"mlx5_0": ["x"]}, {"mlx5_0.1": 7}, {"mlx5_0.1": ["x", 3, None]}, {"": []}]
)
def test_a_spoilt_memory_of_full_counters_does_no_harm(spoilt: dict[str, object]) -> None:
    """What is no counter of a port is forgotten."""
    collector = InfinibandCollector(CongestionOptions(), before=spoilt)
    assert collector.remembered() == {}
    assert events_of(collector, port(1.0, symbol_error=0)) == []


def test_a_counter_that_was_cleared_goes_on_from_zero() -> None:
    """A lower value is a reset; what it shows after that is new errors."""
    collector = InfinibandCollector(CongestionOptions())
    events_of(collector, port(1.0, link_downed=9))
    assert [(d.kind, d.data.get("delta")) for d in events_of(collector, port(2.0, link_downed=2))] == [
        ("ib.counter_reset", None),
        ("ib.errors", 2),
    ]
    assert [d.kind for d in events_of(collector, port(3.0, link_downed=0))] == ["ib.counter_reset"]


@pytest.mark.parametrize(("counter", "limit"), sorted(LIMITS.items()))
def test_a_legacy_counter_at_its_end_is_a_state_of_its_own(counter: str, limit: int) -> None:
    """Reported once, when it gets there or at start; reported again only after it was cleared and filled up again.

    One of four bits that is full at the start says nothing: it is after weeks on any port.
    """
    collector = InfinibandCollector(CongestionOptions())
    events_of(collector, port(1.0, of={counter: limit - 1}))
    assert [d.kind for d in events_of(collector, port(2.0, of={counter: limit}))] == [
        "ib.errors",
        "ib.saturated",
    ]
    assert events_of(collector, port(3.0, of={counter: limit})) == []
    assert [d.kind for d in events_of(collector, port(4.0, of={counter: 0}))] == ["ib.counter_reset"]
    assert [d.kind for d in events_of(collector, port(5.0, of={counter: limit}))] == [
        "ib.errors",
        "ib.saturated",
    ]
    assert [
        d.kind for d in events_of(InfinibandCollector(CongestionOptions()), port(1.0, of={counter: limit}))
    ] == (["ib.saturated"] if limit > 0xF else [])


def test_a_reset_says_what_is_still_full() -> None:
    """Of the same port: another counter's reset is no way to see it count again."""
    collector = InfinibandCollector(CongestionOptions())
    full = {"symbol_error": 0xFFFF, "link_downed": 0xFF}
    events_of(collector, port(1.0, of=full), replace(port(1.0, of=full), port=2))
    one = events_of(collector, port(2.0, of={"symbol_error": 0, "link_downed": 0xFF}))
    assert [(d.kind, d.data.get("blind")) for d in one] == [("ib.counter_reset", 1)]
    both = events_of(collector, port(3.0, of={"symbol_error": 0, "link_downed": 0}))
    assert [(d.kind, d.data.get("blind")) for d in both] == [("ib.counter_reset", 0)]


def test_all_counters_are_reset_at_once() -> None:
    """The last event says that none is full any more."""
    collector = InfinibandCollector(CongestionOptions())
    events_of(collector, port(1.0, of={"symbol_error": 0xFFFF, "link_downed": 0xFF}))
    both = events_of(collector, port(2.0, of={"symbol_error": 0, "link_downed": 0}))
    assert [d.data.get("blind") for d in both] == [1, 0]


def test_an_ethernet_port_has_no_legacy_counters() -> None:
    """Cards serve the files for RoCE too; what stands there is never full."""
    collector = InfinibandCollector(CongestionOptions())
    samples = [
        replace(port(n, of={"symbol_error": v}), link_layer="Ethernet") for n, v in ((1.0, 1), (2.0, 0xFFFF))
    ]
    assert [d.kind for d in events_of(collector, *samples)] == ["ib.errors"]


@pytest.mark.parametrize(
    ("rate", "fields"),
    [
        ("400 Gb/sec (4X NDR)", {"rate_gbps": 400.0, "corrects": True}),
        ("100 Gb/sec (2X HDR)", {"rate_gbps": 100.0, "corrects": True}),
        ("100 Gb/sec (4X EDR)", {"rate_gbps": 100.0, "corrects": False}),
        ("2.5 Gb/sec (1X SDR)", {"rate_gbps": 2.5, "corrects": False}),
        ("10 Gb/sec", {"rate_gbps": 10.0, "corrects": False}),
        ("", {}),
        ("fast", {}),
        ("0 Gb/sec (0X SDR)", {}),
        ("0 Gb/sec", {}),
        ("0.0 Gb/sec (4X NDR)", {}),
        (".. Gb/sec", {}),
        ("1e999 Gb/sec (4X NDR)", {}),
        ("400 Gb/sec (0X NDR)", {"rate_gbps": 400.0, "corrects": True}),
    ],
)
def test_errors_are_judged_by_the_rate(rate: str, fields: dict[str, object]) -> None:
    """Each event of an error has the rate, and whether the link corrects errors before it counts them."""
    collector = InfinibandCollector(CongestionOptions())
    samples = [replace(port(n, of={"symbol_error": v}), rate=rate) for n, v in ((1.0, 1), (2.0, 9))]
    (unsent,) = events_of(collector, *samples)
    assert {name: unsent.data[name] for name in ("rate_gbps", "corrects") if name in unsent.data} == fields


def test_a_wide_counter_passes_the_legacy_limit() -> None:
    """Adapters that serve wider counters under the old names are not taken for saturated."""
    collector = InfinibandCollector(CongestionOptions())
    events_of(collector, port(1.0, link_downed=200))
    assert [d.kind for d in events_of(collector, port(2.0, link_downed=300))] == ["ib.errors"]


def test_a_counter_that_cannot_be_read_for_a_while_is_no_reset() -> None:
    """A file that answers N/A is left out of a sample; when it is back, it has grown since it was read last."""
    collector = InfinibandCollector(CongestionOptions())
    (grown,) = events_of(collector, port(1.0, symbol_error=5), port(2.0), port(3.0, symbol_error=900))
    assert (grown.kind, grown.data["delta"], grown.data["interval_s"]) == ("ib.errors", 895, 2.0)


def test_saturation_is_reported_once_although_the_file_comes_and_goes() -> None:
    """A counter that is at its end when it can be read (again) is reported, but not twice."""
    collector = InfinibandCollector(CongestionOptions())
    full = {"symbol_error": 0xFFFF}
    samples = [port(1.0), port(2.0, of=full), port(3.0), port(4.0, of=full)]
    assert [d.kind for d in events_of(collector, *samples)] == ["ib.saturated"]


def test_a_full_counter_that_is_cleared_while_it_cannot_be_read_is_told() -> None:
    """Else its incident would stay open for a week."""
    collector = InfinibandCollector(CongestionOptions())
    events_of(collector, port(1.0, symbol_error=0xFFFF))
    (reset,) = events_of(collector, port(2.0), port(3.0, symbol_error=0))
    assert (reset.kind, reset.data["before"], reset.data["value"]) == ("ib.counter_reset", 0xFFFF, 0)
    collector = InfinibandCollector(CongestionOptions(), before={"mlx5_0.1": ["symbol_error"]})
    (reset,) = events_of(collector, port(4.0), port(5.0, symbol_error=7))
    assert reset.data == {"counter": "symbol_error", "before": 0xFFFF, "value": 7, "blind": 0}


def test_a_counter_that_stopped_at_the_limit_and_is_wider_counts_again() -> None:
    """One sample shows it just there; the next takes back that it is full."""
    collector = InfinibandCollector(CongestionOptions())
    samples = [port(1.0, link_downed=254), port(2.0, link_downed=255), port(3.0, link_downed=256)]
    told = [(unsent.kind, unsent.data.get("value")) for unsent in events_of(collector, *samples)]
    assert told == [
        ("ib.errors", 255),
        ("ib.saturated", 255),
        ("ib.counter_reset", 256),
        ("ib.errors", 256),
    ]
    assert events_of(collector, port(4.0, link_downed=256)) == []
    assert collector.remembered() == {}


def test_a_small_counter_that_was_told_to_be_full_is_kept_over_restarts() -> None:
    """One that fills up while the agent runs is told, and so is its end, however many restarts later."""
    small, large = "local_link_integrity_errors", "symbol_error"
    collector = InfinibandCollector(CongestionOptions())
    events_of(collector, port(1.0, of={small: 14, large: 0xFFFF}), port(2.0, of={small: 15, large: 0xFFFF}))

    def restarted() -> InfinibandCollector:
        return InfinibandCollector(CongestionOptions(), before=json.loads(json.dumps(collector.remembered())))

    collector = restarted()
    events_of(collector, port(3.0, of={small: 15, large: 0xFFFF}))
    assert collector.remembered() == {"mlx5_0.1": [small, large]}
    (reset,) = events_of(collector, port(4.0, of={small: 15, large: 0}))
    assert reset.data == {"counter": large, "before": 0xFFFF, "value": 0, "blind": 1}
    collector = restarted()
    (reset,) = events_of(collector, port(5.0, of={small: 0, large: 0}))
    assert reset.data == {"counter": small, "before": 15, "value": 0, "blind": 0}
