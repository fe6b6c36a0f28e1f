"""Ports and interfaces that are nearly full: what is read, what counts as five minutes, and when it is over."""

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent import config_file
from agent.collectors.samples_node import Traffic
from agent.collectors.traffic import TrafficCollector
from agent.contract import kinds
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.sources.base import SourceSetup
from agent.sources.traffic import TrafficSource, TrafficSourceOptions
from tests.agent.following import once

PORT = "port/mlx5_0.1"
GBPS = 400.0
FILES = {
    "sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)\n",
    "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data": "1000\n",
    "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data": "25\n",
    "sys/class/infiniband/mlx5_1/ports/1/rate": "400 Gb/sec (4X NDR)\n",
    "sys/class/infiniband/mlx5_1/ports/1/state": "1: DOWN\n",
    "sys/class/infiniband/mlx5_1/ports/1/counters/port_rcv_data": "1\n",
    "sys/class/infiniband/mlx5_1/ports/1/counters/port_xmit_data": "1\n",
    "sys/class/net/eth0/device/vendor": "0x15b3\n",
    "sys/class/net/eth0/type": "1\n",
    "sys/class/net/eth0/speed": "100000\n",
    "sys/class/net/eth0/statistics/rx_bytes": "7\n",
    "sys/class/net/eth0/statistics/tx_bytes": "18446744073709551615\n",
    "sys/class/net/eth1/device/vendor": "0x15b3\n",
    "sys/class/net/eth1/type": "1\n",
    "sys/class/net/eth1/speed": "-1\n",
    "sys/class/net/eth1/statistics/rx_bytes": "7\n",
    "sys/class/net/eth1/statistics/tx_bytes": "8\n",
    "sys/class/net/ib0/device/vendor": "0x15b3\n",
    "sys/class/net/ib0/type": "32\n",
    "sys/class/net/ib0/speed": "400000\n",
    "sys/class/net/bond0/type": "1\n",
    "sys/class/net/bond0/speed": "200000\n",
}


def carried(
    shares: Iterable[float], *, sent: bool = True, every_s: float = 30.0, gbps: float = GBPS
) -> list[Traffic]:
    """Readings of a port that carries these shares of its rate, 0 to 1, in one interval after the other."""
    now = Traffic(component=PORT, rate_gbps=gbps, received_bytes=0, sent_bytes=0, mono_s=1000.0)
    found = [now]
    for share in shares:
        more = math.ceil(share * gbps * 1e9 / 8 * every_s)
        now = replace(
            now,
            mono_s=now.mono_s + every_s,
            sent_bytes=now.sent_bytes + (more if sent else 0),
            received_bytes=now.received_bytes + (0 if sent else more),
        )
        found.append(now)
    return found


def told(samples: Iterable[Traffic]) -> list[UnsentEvent]:
    collector = TrafficCollector()
    events = [event for sample in samples for event in collector.feed(sample, sample.mono_s)]
    return [kinds.check(event) for event in events]


def levels(samples: Iterable[Traffic]) -> list[object]:
    return [event.data["percent"] for event in told(samples)]


async def test_what_is_read(tmp_path: Path) -> None:
    """Ports that are active, and Ethernet interfaces of cards; what is virtual, down, or InfiniBand's by another name is not."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    host = Host(root=tmp_path)
    found = await once(TrafficSource(host, TrafficSourceOptions(traffic_interval_s=30.0)))
    assert [replace(one, mono_s=0.0) for one in found if isinstance(one, Traffic)] == [
        Traffic(component=PORT, rate_gbps=400.0, received_bytes=4000, sent_bytes=100),
        Traffic(component="link/eth0", rate_gbps=100.0, received_bytes=7, sent_bytes=2**64 - 1),
    ]
    for text, wanted in (("", False), ("30", True)):
        config = config_file.load(None, {"node": "n1"} | ({"traffic_interval_s": text} if text else {}))
        assert (TrafficSource.of(SourceSetup(host=host, config=config)) is not None) is wanted


def test_five_minutes_and_no_less() -> None:
    """Nine intervals of 30 s are no five minutes; the tenth makes them. One pause starts them anew."""
    assert levels(carried([0.95] * 9)) == []
    (event,) = told(carried([0.95] * 10, sent=False))
    assert (event.component, event.data["percent"], event.data["direction"]) == (PORT, 90, "received")
    assert event.data["received_gbps"] == 380.0
    assert levels(carried([0.95] * 9 + [0.1] + [0.95] * 9)) == []


def test_from_four_fifths_to_nine_tenths_and_back() -> None:
    """Each step up is told once; the end when an interval is well below, not for a moment at the edge."""
    assert levels(carried([0.85] * 12 + [0.95] * 12)) == [80, 90]
    assert levels(carried([0.95] * 12 + [0.87] * 3 + [0.84])) == [90, 80]
    assert levels(carried([0.95] * 12 + [0.87] * 30)) == [90]
    assert levels(carried([0.95] * 12 + [0.2] * 3)) == [90, 0]


def test_counters_that_begin_anew_are_no_traffic() -> None:
    """A driver that was loaded again, or a link that came back with another rate."""
    before, after = carried([0.95] * 9), carried([0.95] * 9)
    later = [replace(one, mono_s=one.mono_s + 400) for one in after]
    assert levels([*before, *later]) == []
    other = [replace(one, rate_gbps=200.0, mono_s=one.mono_s + 400) for one in after]
    assert levels([*before, *other]) == []


@given(st.lists(st.sampled_from([0.0, 0.5, 0.78, 0.82, 0.88, 0.91, 0.99]), max_size=60))
def test_what_is_told_was_so_for_five_minutes(shares: list[float]) -> None:
    """By another count: a level is told only after ten intervals above it, and every such ten are told."""
    samples = carried(shares)
    collector, level = TrafficCollector(), 0
    for number, sample in enumerate(samples):
        for event in collector.feed(sample, sample.mono_s):
            level = int(str(event.data["percent"]))
            if level:
                assert number >= 10
                assert min(shares[number - 10 : number]) * 100 >= level
        if number >= 10 and min(shares[number - 10 : number]) >= 0.9:
            assert level == 90
        if number and shares[number - 1] < 0.75:
            assert level == 0
