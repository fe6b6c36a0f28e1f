"""The same sources on a recorded machine: they read what there is, open no socket and run nothing."""

from pathlib import Path

import pytest

from agent.collectors.link import LinkCollector
from agent.collectors.readings import Line, Link
from agent.host import Host
from agent.sources.kmsg import KmsgSource
from agent.sources.netlink import NetlinkSource
from agent.sources.systemd import SystemdSource
from agent.sources.udev import UdevSource
from tests.agent.following import once

NODE = Host(root=Path(__file__).parents[1] / "fixtures/machines/ib-node")


async def test_links_come_from_sysfs() -> None:
    """State of each interface; an interface that has no carrier at start is no fact."""
    heard = await once(NetlinkSource(NODE))
    states = {r.name: (r.admin_up, r.carrier, r.operstate, r.first) for r in heard if isinstance(r, Link)}
    assert states == {
        "eth0": (True, True, "up", True),
        "ib0": (True, True, "up", True),
        "ib1": (True, False, "down", True),
        "lo": (True, True, "unknown", True),
    }
    collector = LinkCollector()
    assert [draft for reading in heard for draft in collector.feed(reading, 0.0)] == []


async def test_the_recorded_kernel_log_is_read() -> None:
    """Each record with its text; the property lines between them are none."""
    heard = await once(KmsgSource(NODE))
    assert [reading.seq for reading in heard if isinstance(reading, Line)] == [811, 812, 1490]


@pytest.mark.parametrize(
    "source", [UdevSource(NODE), SystemdSource(NODE, units=("a.service",)), NetlinkSource(NODE)]
)
async def test_nothing_live_is_opened(source: UdevSource | SystemdSource | NetlinkSource) -> None:
    """Following a recording is refused by name; its present state may simply be unknown."""
    with pytest.raises(OSError, match=f"{source.name}: a recorded machine"):
        await source.run(lambda _: None)
    if not isinstance(source, NetlinkSource):
        assert await once(source) == []
