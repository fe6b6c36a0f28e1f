"""InfiniBand ports: timelines of samples for the collector, a tree of files for the source."""

import asyncio
import itertools
import json
import os
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from agent.collectors.congestion import CongestionOptions
from agent.collectors.infiniband import ERROR_COUNTERS, LIMITS, MISSING_SAMPLES, InfinibandCollector
from agent.collectors.samples import IbDevices, IbPort, Sample
from agent.contract import kinds
from agent.contract.messages import Severity, UnsentEvent
from agent.host import Host
from agent.sources.infiniband import InfinibandSource, InfinibandSourceOptions
from tests.agent.following import following, once
from tests.yardstick import slowness

NODE = Path(__file__).parents[1] / "fixtures/machines/ib-node"


def port(
    at_s: float,
    state: str = "ACTIVE",
    phys: str = "LinkUp",
    sm: int = 1,
    *,
    of: dict[str, int] | None = None,
    **counters: int,
) -> IbPort:
    return IbPort(
        device="mlx5_0",
        port=1,
        state=state,
        phys_state=phys,
        rate="400 Gb/sec (4X NDR)",
        lid=47,
        sm_lid=sm,
        link_layer="InfiniBand",
        counters=of or counters,
        mono_s=at_s,
    )


def events_of(collector: InfinibandCollector, *samples: Sample) -> list[UnsentEvent]:
    unsent_events = [unsent for sample in samples for unsent in collector.feed(sample, 0.0)]
    for unsent in unsent_events:
        kinds.check(unsent)
        assert unsent.kind in InfinibandCollector.kinds
    return unsent_events


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
    """A file that answers N/A is left out of a sample; when it is back, it is a baseline."""
    collector = InfinibandCollector(CongestionOptions())
    assert events_of(collector, port(1.0, symbol_error=5), port(2.0), port(3.0, symbol_error=900)) == []


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


def test_a_port_goes_down_and_comes_back() -> None:
    """Each change of the logical state is reported; ACTIVE is good news."""
    collector = InfinibandCollector(CongestionOptions())
    unsent_events = events_of(
        collector,
        port(1.0),
        port(2.0, "DOWN", "Polling", sm=0),
        port(3.0, "DOWN", "Disabled", sm=0),
        port(4.0, "INIT", "LinkUp"),
        port(5.0),
    )
    assert [(d.data["before"], d.data["state"], d.severity) for d in unsent_events] == [
        ("ACTIVE", "DOWN", Severity.WARNING),
        ("DOWN", "DOWN", Severity.WARNING),
        ("DOWN", "INIT", Severity.WARNING),
        ("INIT", "ACTIVE", Severity.INFO),
    ]


def test_a_disabled_port_is_told_from_one_without_a_link() -> None:
    """By its physical state; the drivers of Ethernet cards report that one for every port without a carrier."""
    states = [port(1.0), port(2.0, "DOWN", "Disabled", sm=0), port(3.0, "DOWN", "Polling", sm=0)]
    for layer, said in (("InfiniBand", [True, None]), ("Ethernet", [None, None])):
        samples = [replace(one, link_layer=layer) for one in states]
        found = events_of(InfinibandCollector(CongestionOptions()), *samples)
        assert [one.data.get("disabled") for one in found] == said


def test_an_uncabled_port_is_quiet() -> None:
    """A port that has never been up may change between physical states without an event."""
    collector = InfinibandCollector(CongestionOptions())
    phases = ["Polling", "Sleep", "Polling", "Disabled", "Polling"]
    assert events_of(collector, *(port(n, "DOWN", phys, sm=0) for n, phys in enumerate(phases, 1))) == []


def test_another_subnet_manager() -> None:
    """A change is reported once with both LIDs, also when the port knew none in between."""
    collector = InfinibandCollector(CongestionOptions())
    unsent_events = events_of(
        collector, port(1.0, sm=1), port(2.0, sm=0), port(3.0, sm=1), port(4.0, sm=0), port(5.0, sm=7)
    )
    assert [(d.kind, dict(d.data)) for d in unsent_events] == [("ib.sm_lid", {"sm_lid": 7, "before": 1})]


def test_a_device_is_gone_after_three_samples() -> None:
    """A driver reload is not a loss; a loss is reported once, and so is the return, without false resets."""
    collector = InfinibandCollector(CongestionOptions())
    both, one = IbDevices(names=("mlx5_0", "mlx5_1")), IbDevices(names=("mlx5_1",))
    assert events_of(collector, both, port(1.0, symbol_error=50), one, one, both) == []
    (gone,) = events_of(collector, one, one, one, one, one)
    assert (gone.component, gone.data, gone.severity) == ("nic/mlx5_0", {"present": False}, Severity.ERROR)
    (back,) = events_of(collector, both, port(9.0, symbol_error=0), both)
    assert (back.component, back.data, back.severity) == ("nic/mlx5_0", {"present": True}, Severity.INFO)


def test_a_device_in_another_network_namespace_is_not_gone() -> None:
    """A container has it: an information, once; and so is its return."""
    collector = InfinibandCollector(CongestionOptions())
    here = IbDevices(names=("mlx5_0", "mlx5_1"))
    moved = IbDevices(names=("mlx5_1",), moved=("mlx5_0",))
    (said,) = events_of(collector, here, port(1.0), *[moved] * 5)
    assert (said.component, said.data) == ("nic/mlx5_0", {"present": False, "moved": True})
    (back,) = events_of(collector, here, port(9.0))
    assert {said.severity, back.severity} == {Severity.INFO}
    assert back.data == {"present": True}


@pytest.mark.parametrize(
    ("beside", "goes"),
    [
        (["mlx5_core.rdma.0/driver", "mlx5_core.eth.0/driver"], "mlx5_core.rdma.0"),
        (["ice.roce.3/driver"], "ice.roce.3/driver"),
        (["i40e.iwarp.1/driver"], "i40e.iwarp.1"),
        (["infiniband_verbs/uverbs0"], "infiniband_verbs"),  # a card without auxiliary devices, e.g. efa
        ([], "driver"),
    ],
)
async def test_a_device_whose_function_has_all_that_it_had_is_in_another_namespace(
    tmp_path: Path, beside: list[str], goes: str
) -> None:
    """Whichever driver: what depends on the device stays when it goes into a namespace, and goes with it when it is removed."""
    shutil.copytree(NODE / "sys/class/infiniband", tmp_path / "sys/class/infiniband", symlinks=True)
    function = tmp_path / "sys/devices/0000:1a:00.0"
    for name in ("driver", "msi_irqs", *beside):
        (function / name).mkdir(parents=True)
    device = tmp_path / "sys/class/infiniband/mlx5_0"
    shutil.rmtree(device / "device", ignore_errors=True)
    (device / "device").symlink_to(function)
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions())

    async def moved() -> tuple[str, ...]:
        return next(one for one in await once(source) if isinstance(one, IbDevices)).moved

    assert await moved() == ()
    device.rename(tmp_path / "away")
    (function / "msi_irqs").rmdir()
    assert await moved() == ("mlx5_0",)
    (function / goes).rename(tmp_path / "removed")
    assert await moved() == ()


def test_the_service_level_to_the_subnet_manager() -> None:
    """A change is reported; while no subnet manager is known the file means nothing."""
    collector = InfinibandCollector(CongestionOptions())
    levels = [
        port(1.0),
        replace(port(2.0), sm_sl=2),
        replace(port(3.0, sm=0), sm_sl=0),
        replace(port(4.0), sm_sl=2),
    ]
    unsent_events = events_of(collector, *levels)
    assert [(d.kind, dict(d.data)) for d in unsent_events] == [("ib.sm_sl", {"sm_sl": 2, "before": 0})]


def test_congestion_is_reported_by_the_minute_and_only_when_it_is_fast() -> None:
    """Slow growth is normal; ticks of waiting are counted with a bound of their own."""
    collector = InfinibandCollector(CongestionOptions(congestion_per_s=100.0))
    samples = [
        replace(
            port(10.0 * n),
            congestion={"rp_cnp_handled": 2000 * n, "np_cnp_sent": 10 * n, "port_xmit_wait": 1_000_000 * n},
            congestion_s=10.0 * n,
        )
        for n in range(7)
    ]
    again = [replace(samples[-1], mono_s=61.0)]  # the same reading of the counters, with newer errors
    unsent_events = events_of(collector, *samples, *again)
    assert [(d.kind, d.data["counter"], d.data["per_s"]) for d in unsent_events] == [
        ("ib.congestion", "rp_cnp_handled", 200.0)
    ]


async def test_a_recorded_roce_node_is_read_whole() -> None:
    """Model, congestion counters apart from the errors, and another folder for the devices."""
    root = str(NODE.parent / "roce-node/sys/class/infiniband")
    emitted = await once(InfinibandSource(Host(), InfinibandSourceOptions(), root=root))
    first = emitted[1]
    assert isinstance(first, IbPort)
    assert (first.model, first.rate, first.link_layer) == ("MT4129", "400 Gb/sec (4X NDR)", "Ethernet")
    assert first.congestion["np_ecn_marked_roce_packets"] == 773311
    assert "np_ecn_marked_roce_packets" not in first.counters
    assert first.counters["packet_seq_err"] == 14


async def test_a_port_that_changes_between_two_of_its_files_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state was read as ACTIVE, then the link went: no sample has ACTIVE and Disabled."""
    shutil.copytree(NODE / "sys/class/infiniband", tmp_path / "sys/class/infiniband", symlinks=True)
    folder = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    pread, reads = os.pread, 0

    def torn(fd: int, count: int, offset: int) -> bytes:
        nonlocal reads
        reads += 1
        if reads == 2:  # the first was the state of the first port
            (folder / "state").write_text("1: DOWN\n")
            (folder / "phys_state").write_text("3: Disabled\n")
        return pread(fd, count, offset)

    monkeypatch.setattr("agent.sources.infiniband.os.pread", torn)
    ports = [
        emitted
        for emitted in await once(InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions()))
        if isinstance(emitted, IbPort)
    ]
    assert [(one.state, one.phys_state) for one in ports if one.device == "mlx5_0"] == [("DOWN", "Disabled")]


async def test_a_recorded_node_is_read_whole() -> None:
    """State words, LIDs and error counters of both devices; no traffic counters, nothing for N/A."""
    emitted = await once(InfinibandSource(Host(root=NODE), InfinibandSourceOptions()))
    devices, healthy, sick = emitted
    assert isinstance(devices, IbDevices)
    assert devices.names == ("mlx5_0", "mlx5_1")
    assert isinstance(healthy, IbPort)
    assert (healthy.state, healthy.phys_state, healthy.rate) == ("ACTIVE", "LinkUp", "400 Gb/sec (4X NDR)")
    assert (healthy.lid, healthy.sm_lid, healthy.link_layer) == (47, 1, "InfiniBand")
    assert set(healthy.counters) < ERROR_COUNTERS
    assert {"symbol_error", "out_of_sequence"} < set(healthy.counters)
    assert isinstance(sick, IbPort)
    assert (sick.state, sick.counters["symbol_error"]) == ("DOWN", 65535)
    assert "VL15_dropped" not in sick.counters
    collector = InfinibandCollector(CongestionOptions())
    assert [d.kind for d in events_of(collector, *emitted)] == ["ib.saturated"]


async def test_a_live_tree_is_followed(tmp_path: Path) -> None:
    """Counters that grow, a port that fails and a device that vanishes and returns are all seen."""
    shutil.copytree(NODE / "sys", tmp_path / "sys")
    folder = tmp_path / "sys/class/infiniband/mlx5_0"
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions(ib_interval_s=0.01))
    collector = InfinibandCollector(CongestionOptions())
    unsent_events: list[UnsentEvent] = []

    def kinds_of(component: str) -> list[str]:
        return [unsent.kind for unsent in unsent_events if unsent.component.endswith(component)]

    async with following(source) as emitted:
        seen = 0

        async def until(kind: str, component: str) -> None:
            def reported(_: object) -> bool:
                nonlocal seen
                while seen < len(emitted):
                    unsent_events.extend(events_of(collector, emitted[seen]))
                    seen += 1
                return kind in kinds_of(component)

            await emitted.until(reported)

        await emitted.until(lambda h: len(h) > 2)
        (folder / "ports/1/counters/symbol_error").write_text("120\n")
        await until("ib.errors", "port/mlx5_0.1")
        (folder / "ports/1/state").write_text("1: DOWN\n")
        await until("ib.port_state", "port/mlx5_0.1")
        shutil.move(folder, tmp_path / "away")
        await until("ib.device", "nic/mlx5_0")
        unsent_events.clear()
        shutil.move(tmp_path / "away", folder)
        await until("ib.device", "nic/mlx5_0")
    assert kinds_of("port/mlx5_0.1") == []


async def test_a_port_that_is_as_it_was_says_nothing(tmp_path: Path) -> None:
    """When it changes, its last reading comes before the new one: growth is counted over one interval."""
    shutil.copytree(NODE / "sys", tmp_path / "sys")
    counter = tmp_path / "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error"
    polls: list[int] = []
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions(ib_interval_s=0.01))
    poll = source._poller._poll
    source._poller._poll = lambda: polls.append(0) or poll()  # type: ignore[func-returns-value]
    async with following(source) as emitted:
        await emitted.until(lambda h: len(h) > 2)
        first = len(emitted)
        seen = len(polls)
        await emitted.until(lambda _: len(polls) > seen + 50)
        assert len(emitted) == first, "fifty polls without news"
        counter.write_text("120\n")
        await emitted.until(lambda h: len(h) > first + 1)
        before, now = emitted[first : first + 2]
    assert isinstance(before, IbPort)
    assert isinstance(now, IbPort)
    assert (before.counters["symbol_error"], now.counters["symbol_error"]) == (0, 120)
    assert 0 < now.mono_s - before.mono_s < 5, "the interval, however long nothing was said"


def test_the_devices_own_counters_rest_while_nothing_happens(tmp_path: Path) -> None:
    """The port's are read in every poll, the device's in each fifth; one that grows brings the others back."""
    shutil.copytree(NODE / "sys/class/infiniband/mlx5_0", tmp_path / "sys/class/infiniband/mlx5_0")
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions())

    def polls_until(name: str, value: int) -> int:
        """How many polls it takes until a counter's new value is seen."""
        (port / name).write_text(f"{value}\n")
        for number in range(1, 20):
            for sample in source._poll():
                if isinstance(sample, IbPort) and sample.counters[name.rpartition("/")[2]] == value:
                    return number
        raise AssertionError("never")

    own = "hw_counters/out_of_sequence"
    (port / "hw_counters").mkdir(exist_ok=True)
    (port / own).write_text("0\n")
    source._poll()
    assert polls_until(own, 5) == 1
    for _ in range(70):
        source._poll()
    assert polls_until("counters/symbol_error", 7) == 1, "calm or not"
    assert [polls_until(own, value) for value in (6, 7, 8)] == [1, 1, 1], "for a minute"
    for _ in range(70):
        source._poll()
    assert 1 <= polls_until(own, 9) <= 5
    assert polls_until(own, 10) == 1
    for _ in range(70):
        source._poll()
    (port / own).write_text("11\n")
    source._forget()
    assert [one.counters["out_of_sequence"] for one in source._poll() if isinstance(one, IbPort)] == [11], (
        "a look reads everything"
    )


def test_growth_in_calm_times_says_since_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reading before is that of the last time when the device's own counters were read."""
    shutil.copytree(NODE / "sys/class/infiniband/mlx5_0", tmp_path / "sys/class/infiniband/mlx5_0")
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    (port / "hw_counters").mkdir(exist_ok=True)
    (port / "hw_counters/out_of_sequence").write_text("0\n")
    clock = itertools.count(1000)
    monkeypatch.setattr(Host, "mono_s", lambda _: float(next(clock)))  # one poll, one or two seconds
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions())
    for _ in range(64):
        source._poll()
    for grown in range(1, 6):  # wherever in the five polls it comes
        (port / "hw_counters/out_of_sequence").write_text(f"{500 * grown}\n")
        found: list[IbPort] = []
        waited = 0
        while not found:
            waited += 1
            found = [one for one in source._poll() if isinstance(one, IbPort)]
        *before, now = found
        assert now.counters["out_of_sequence"] == 500 * grown
        assert before
        assert now.mono_s - before[0].mono_s >= waited, "no shorter than it took"
        for _ in range(61 + grown):
            source._poll()


def test_ports_that_come_after_their_device_are_read(tmp_path: Path) -> None:
    """The kernel makes the folder of the device first."""
    root = tmp_path / "sys/class/infiniband"
    (root / "mlx5_0").mkdir(parents=True)
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions())
    assert not [one for one in source._poll() if isinstance(one, IbPort)]
    shutil.copytree(NODE / "sys/class/infiniband/mlx5_0/ports", root / "mlx5_0/ports")
    assert [one.port for one in source._poll() if isinstance(one, IbPort)] == [1]


async def test_no_infiniband_is_no_error(tmp_path: Path) -> None:
    """Where there is no /sys/class/infiniband there are no devices, and that is all."""
    (devices,) = await once(InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions()))
    assert isinstance(devices, IbDevices)
    assert devices.names == ()


async def test_a_hung_read_is_reported_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An adapter whose firmware hangs blocks its own thread only; the source reports it, again when retried."""
    release = threading.Event()

    def hang(_: InfinibandSource) -> list[Sample]:
        release.wait()
        return []

    monkeypatch.setattr(InfinibandSource, "_poll", hang)
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions(ib_interval_s=0.01), hang_s=0.05)
    try:
        for _ in range(2):
            with pytest.raises(OSError, match="infiniband: reading has not returned"):
                await asyncio.wait_for(source.run(lambda _: None), 60)  # it would hang until `release`
        assert sum(thread.name == "infiniband" for thread in threading.enumerate()) == 1
    finally:
        release.set()


async def test_nine_devices_cost_little(tmp_path: Path) -> None:
    """A poll of nine devices a second stays below 0.5 % of a core (the kernel's own work not counted)."""
    for number in range(9):
        shutil.copytree(
            NODE / "sys/class/infiniband/mlx5_0", tmp_path / f"sys/class/infiniband/mlx5_{number}"
        )
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions())
    collector = InfinibandCollector(CongestionOptions())
    source._poll()
    began_s = time.process_time()
    for _ in range(20):
        for sample in source._poll():
            list(collector.feed(sample, 0.0))
    assert (time.process_time() - began_s) / 20 / slowness() < 0.005
