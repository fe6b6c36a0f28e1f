"""The same sources on a recorded machine: they read what there is, open no socket and run nothing."""

from pathlib import Path

import pytest

from agent.collectors.link import LinkCollector
from agent.collectors.samples import Line, LinkState
from agent.host import Host
from agent.sources.kmsg import KmsgSource, KmsgSourceOptions
from agent.sources.netlink import NetlinkSource
from agent.sources.systemd import SystemdSource
from agent.sources.udev import UdevSource
from tests.agent.following import once

NODE = Host(root=Path(__file__).parents[1] / "fixtures/machines/ib-node")


async def test_links_come_from_sysfs() -> None:
    """State of each interface; an interface that has no carrier at start is no fact."""
    emitted = await once(NetlinkSource(NODE))
    states = {
        r.name: (r.admin_up, r.carrier, r.operstate, r.first) for r in emitted if isinstance(r, LinkState)
    }
    assert states == {
        "eth0": (True, True, "up", True),
        "ib0": (True, True, "up", True),
        "ib1": (True, False, "down", True),
        "lo": (True, True, "unknown", True),
    }
    collector = LinkCollector()
    assert [unsent for sample in emitted for unsent in collector.feed(sample, 0.0)] == []


async def test_the_recorded_kernel_log_is_read() -> None:
    """Each record with its text; the property lines between them are none."""
    emitted = await once(KmsgSource(NODE, KmsgSourceOptions()))
    assert [sample.seq for sample in emitted if isinstance(sample, Line)] == [811, 812, 1490]


@pytest.mark.parametrize(
    "source", [UdevSource(NODE), SystemdSource(NODE, units=("a.service",)), NetlinkSource(NODE)]
)
async def test_nothing_live_is_opened(source: UdevSource | SystemdSource | NetlinkSource) -> None:
    """Following a recording is refused by name; its present state may simply be unknown."""
    with pytest.raises(OSError, match=f"{source.name}: a recorded machine"):
        await source.run(lambda _: None)
    if not isinstance(source, NetlinkSource):
        assert await once(source) == []
