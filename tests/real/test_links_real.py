"""rtnetlink and kernel uevents, in a network namespace of the test's own."""

import asyncio
import subprocess
import time
from collections.abc import Iterator

import pytest

from agent.collectors.device import DeviceCollector
from agent.collectors.link import LinkCollector
from agent.collectors.samples import Device, LinkState, Sample
from agent.contract import kinds
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.sources.netlink import NetlinkSource
from agent.sources.udev import UdevSource
from tests.agent.following import Emitted, following, once
from tests.real import netns

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("netns"),
    pytest.mark.skipif(bool(netns.missing()), reason=netns.missing()),
]


@pytest.fixture
def space() -> Iterator[netns.Namespace]:
    with netns.namespace() as made:
        made.ip("link", "add", "a0", "type", "veth", "peer", "name", "b0")
        made.ip("link", "set", "a0", "up")
        made.ip("link", "set", "b0", "up")
        while made.ip("-o", "link", "show").count("state UP") < 2:  # the kernel says so a moment later
            time.sleep(0.01)
        yield made


def judged(emitted: list[Sample]) -> list[UnsentEvent]:
    """The collector's events for everything that was emitted."""
    collector = LinkCollector()
    return [kinds.check(unsent) for sample in emitted for unsent in collector.feed(sample, 0.0)]


def edges(emitted: list[Sample]) -> list[tuple[str, object]]:
    """(component, is it up) of each edge; that an interface was set up and has no carrier yet is none."""
    return [
        (unsent.component, unsent.data["up"])
        for unsent in judged(emitted)
        if unsent.kind == "link.state" and "set_up" not in unsent.data
    ]


def down(name: str) -> tuple[str, object]:
    return f"link/{name}", False


async def dumped(emitted: Emitted, count: int = 3) -> None:
    """The dump at start is complete: lo and the pair."""
    await emitted.until(lambda h: len(h) >= count)


async def test_a_lost_carrier_is_emitted_within_50_ms(space: netns.Namespace) -> None:
    """The peer of a link goes down and up: one edge each, quickly; the dump at start reports nothing.

    The quickest of five times: a busy machine may be late now and then, a slow agent always is.
    """
    with space.inside():
        async with following(NetlinkSource(Host())) as emitted:
            await dumped(emitted)
            assert {sample.name for sample in emitted if isinstance(sample, LinkState)} == {"lo", "a0", "b0"}
            assert all(isinstance(sample, LinkState) and sample.first for sample in emitted)
            assert judged(emitted) == []
            waits_s = []
            for number in range(1, 6):
                await asyncio.to_thread(space.ip, "link", "set", "b0", "down")
                told_s = time.monotonic()
                await emitted.until(lambda h, n=number: edges(h).count(down("a0")) == n)  # type: ignore[misc]
                at_s = next(
                    at
                    for n, at in enumerate(emitted.at_s, 1)
                    if edges(emitted[:n]).count(down("a0")) == number
                )
                waits_s.append(at_s - told_s)
                await asyncio.to_thread(space.ip, "link", "set", "b0", "up")
                await emitted.until(lambda h, n=number: len(edges(h)) == 4 * n)  # type: ignore[misc]
            assert min(waits_s) < 0.05
    each = [down("a0"), ("link/a0", True), down("b0"), ("link/b0", True)]
    assert sorted(edges(emitted)) == sorted(5 * each)


async def test_a_removed_and_a_renamed_interface(space: netns.Namespace) -> None:
    """A removed interface is reported as gone; a renamed one is neither gone nor new."""
    with space.inside():
        async with following(NetlinkSource(Host())) as emitted:
            await dumped(emitted)
            await asyncio.to_thread(space.ip, "link", "set", "a0", "down")
            await asyncio.to_thread(space.ip, "link", "set", "a0", "name", "c0")
            await emitted.until(lambda h: any(isinstance(r, LinkState) and r.before == "a0" for r in h))
            await asyncio.to_thread(space.ip, "link", "del", "b0")
            await emitted.until(lambda h: sum(isinstance(r, LinkState) and r.removed for r in h) == 2)
    gone = {unsent.component for unsent in judged(emitted) if unsent.kind == "link.removed"}
    assert gone == {"link/b0", "link/c0"}


async def test_an_interface_that_goes_into_a_container_is_not_gone(space: netns.Namespace) -> None:
    """It works there; when it comes back it is a new interface, which has lost nothing."""
    with netns.namespace() as container, space.inside():
        async with following(NetlinkSource(Host())) as emitted:
            await dumped(emitted)
            await asyncio.to_thread(space.ip, "link", "set", "a0", "netns", container.name)
            await emitted.until(lambda h: any(isinstance(r, LinkState) and r.moved for r in h))
            await asyncio.to_thread(container.ip, "link", "set", "a0", "netns", space.name)
            await emitted.until(
                lambda h: isinstance(h[-1], LinkState) and h[-1].name == "a0" and not h[-1].removed
            )
    found = [unsent for unsent in judged(emitted) if unsent.component == "link/a0"]
    assert {unsent.kind for unsent in found} == {"link.state", "link.moved"}
    assert not any(unsent.data.get("admin_up") for unsent in found if unsent.kind == "link.state")


async def test_a_flood_of_changes_loses_no_final_state(space: netns.Namespace) -> None:
    """When messages are dropped, the state is requested again: after the flood all that is known is true."""
    batch = "".join(f"link add f{n} type veth peer name g{n}\nlink set f{n} up\n" for n in range(60))
    batch += "".join(f"link del f{n}\n" for n in range(30))
    with space.inside():
        async with following(NetlinkSource(Host(), buffer_bytes=4096)) as emitted:
            await dumped(emitted)
            # Nobody reads while this runs: the loop is held up.
            command = ["ip", "-n", space.name, "-batch", "-"]
            subprocess.run(command, input=batch.encode(), check=True, timeout=60)
            await emitted.until(
                lambda h: known(h) >= {f"f{n}" for n in range(30, 60)} and "f29" not in known(h)
            )


def known(emitted: Emitted) -> set[str]:
    names: set[str] = set()
    for sample in emitted:
        if isinstance(sample, LinkState):
            (names.discard if sample.removed else names.add)(sample.name)
    return names


async def test_once_reports_the_present_state(space: netns.Namespace) -> None:
    """`once` is a dump and nothing more."""
    with space.inside():
        emitted = await once(NetlinkSource(Host()))
    found = {sample.name: sample for sample in emitted if isinstance(sample, LinkState)}
    assert found["a0"].kind == "veth"
    assert (found["a0"].admin_up, found["a0"].carrier, found["a0"].operstate) == (True, True, "up")
    assert not found["lo"].admin_up


async def test_uevents_of_interfaces_are_emitted(space: netns.Namespace) -> None:
    """The kernel's own uevents arrive without udevd; added and removed devices become facts."""
    with space.inside():
        async with following(UdevSource(Host())) as emitted:
            await asyncio.to_thread(space.ip, "link", "add", "u0", "type", "veth", "peer", "name", "u1")
            await emitted.until(lambda h: len(h) >= 2)
            await asyncio.to_thread(space.ip, "link", "del", "u0")
            await emitted.until(lambda h: len(h) >= 4)
    reported = {
        (sample.change, sample.subsystem, sample.sysname) for sample in emitted if isinstance(sample, Device)
    }
    assert reported >= {
        ("add", "net", "u0"),
        ("add", "net", "u1"),
        ("remove", "net", "u0"),
        ("remove", "net", "u1"),
    }
    collector = DeviceCollector()
    unsent_events = [kinds.check(unsent) for sample in emitted for unsent in collector.feed(sample, 0.0)]
    assert ("device.changed", "link/u0") in {(unsent.kind, unsent.component) for unsent in unsent_events}
