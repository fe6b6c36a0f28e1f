"""Unit states from a real systemd in a container."""

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from agent.collectors.samples import Unit
from agent.collectors.service import ServiceCollector
from agent.contract import kinds
from agent.host import Host
from agent.sources.systemd import SystemdSource
from tests.agent.following import Emitted, following, once
from tests.real import nspawn

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.skipif(bool(nspawn.missing()), reason=nspawn.missing()),
]
UNIT = "nvidia-persistenced.service"
CRASHING = "[Service]\nType=simple\nExecStart=/bin/false\n"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nspawn.Machine]:
    units = {UNIT: nspawn.SLEEPER, "broken.service": CRASHING}
    with nspawn.machine(tmp_path_factory.mktemp("nspawn"), units) as machine:
        yield machine


def states(emitted: Emitted, name: str) -> list[str]:
    return [sample.active for sample in emitted if isinstance(sample, Unit) and sample.name == name]


async def test_a_unit_that_dies_is_emitted(box: nspawn.Machine) -> None:
    """State at start, then SIGKILL, then a restart: each change arrives with its result."""
    source = SystemdSource(
        Host(), units=(UNIT, "broken.service", "absent.service"), bus_address=box.bus_address
    )
    async with following(source) as emitted:
        await emitted.until(lambda h: len(h) == 3)
        assert all(isinstance(sample, Unit) and sample.first for sample in emitted)
        assert [states(emitted, name) for name in (UNIT, "broken.service", "absent.service")] == [
            ["active"],
            ["failed"],
            ["inactive"],
        ]
        again = Emitted()
        await source.look(again.emit)
        assert [states(again, name) for name in (UNIT, "broken.service", "absent.service")] == [
            ["active"],
            ["failed"],
            ["inactive"],
        ], "agent.look: although nothing has changed"
        await asyncio.to_thread(box.run, "systemctl", "kill", "-s", "KILL", UNIT)
        await emitted.until(lambda h: states(h, UNIT)[-1] == "failed")
        failed = emitted[-1]
        assert isinstance(failed, Unit)
        assert (failed.result, failed.first) == ("signal", False)
        await asyncio.to_thread(box.run, "systemctl", "restart", UNIT)
        await emitted.until(lambda h: states(h, UNIT)[-1] == "active")
    steps = [(r.active, r.sub) for r in emitted if isinstance(r, Unit) and r.name == UNIT]
    assert all(step != before for before, step in pairwise(steps)), "only changes are said"
    collector = ServiceCollector()
    unsent_events = [kinds.check(unsent) for sample in emitted for unsent in collector.feed(sample, 0.0)]
    reported = [unsent.data["active"] for unsent in unsent_events if unsent.component == f"service/{UNIT}"]
    assert reported[0] == "failed"
    assert reported[-1] == "active"
    assert [
        unsent.data["result"] for unsent in unsent_events if unsent.component == "service/broken.service"
    ] == ["exit-code"]


async def test_once_reports_the_states(box: nspawn.Machine) -> None:
    """`once` queries and ends."""
    emitted = await once(SystemdSource(Host(), units=("dbus",), bus_address=box.bus_address))
    assert states(emitted, "dbus.service") == ["active"]


async def test_without_systemd_the_source_fails(tmp_path: Path) -> None:
    """No bus: an OSError that names the address and what is not watched."""
    source = SystemdSource(Host(), units=(UNIT,), bus_address=f"unix:path={tmp_path}/none")
    with pytest.raises(OSError, match=r"no D-Bus at unix:path=.*none.*not watched"):
        await source.run(lambda _: None)


async def test_a_lost_bus_is_an_error(tmp_path_factory: pytest.TempPathFactory) -> None:
    """When the machine's bus goes away the source ends with an OSError, to be opened again."""
    with nspawn.machine(tmp_path_factory.mktemp("nspawn"), {UNIT: nspawn.SLEEPER}) as box:
        source = SystemdSource(Host(), units=(UNIT,), bus_address=box.bus_address)
        async with following(source) as emitted:
            await emitted.until(lambda h: len(h) == 1)
            await asyncio.to_thread(box.run, "systemctl", "stop", "dbus.socket", "dbus.service")
            assert emitted.task is not None
            with pytest.raises(OSError, match="systemd"):
                await asyncio.wait_for(emitted.task, 60)
