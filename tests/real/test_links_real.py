"""rtnetlink and kernel uevents, in a network namespace of the test's own."""

import asyncio
import subprocess
import time
from collections.abc import Iterator

import pytest

from agent.collectors.device import DeviceCollector
from agent.collectors.link import LinkCollector
from agent.collectors.readings import Device, Link, Reading
from agent.contract import kinds
from agent.contract.messages import Draft
from agent.host import Host
from agent.sources.netlink import NetlinkSource
from agent.sources.udev import UdevSource
from tests.agent.following import Heard, following, once
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
        yield made


def judged(heard: list[Reading]) -> list[Draft]:
    """What the collector says of all that was heard."""
    collector = LinkCollector()
    return [kinds.check(draft) for reading in heard for draft in collector.feed(reading, 0.0)]


def edges(heard: list[Reading]) -> list[tuple[str, object]]:
    """(component, is it up) of each edge."""
    return [(draft.component, draft.data["up"]) for draft in judged(heard) if draft.kind == "link.state"]


def down(name: str) -> tuple[str, object]:
    return f"link/{name}", False


async def dumped(heard: Heard, count: int = 3) -> None:
    """The dump at start is complete: lo and the pair."""
    await heard.until(lambda h: len(h) >= count)


async def test_a_lost_carrier_is_heard_within_50_ms(space: netns.Namespace) -> None:
    """The peer of a link goes down and up: one edge each, quickly; the dump at start reports nothing."""
    with space.inside():
        async with following(NetlinkSource(Host())) as heard:
            await dumped(heard)
            assert {reading.name for reading in heard if isinstance(reading, Link)} == {"lo", "a0", "b0"}
            assert all(isinstance(reading, Link) and reading.first for reading in heard)
            assert judged(heard) == []
            await asyncio.to_thread(space.ip, "link", "set", "b0", "down")
            told_s = time.monotonic()
            await heard.until(lambda h: down("a0") in edges(h))
            heard_s = next(at for n, at in enumerate(heard.at_s, 1) if down("a0") in edges(heard[:n]))
            assert heard_s - told_s < 0.05
            await asyncio.to_thread(space.ip, "link", "set", "b0", "up")
            await heard.until(lambda h: len(edges(h)) == 4)
    assert sorted(edges(heard)) == [down("a0"), ("link/a0", True), down("b0"), ("link/b0", True)]


async def test_a_removed_and_a_renamed_interface(space: netns.Namespace) -> None:
    """A removed interface is reported as gone; a renamed one is neither gone nor new."""
    with space.inside():
        async with following(NetlinkSource(Host())) as heard:
            await dumped(heard)
            await asyncio.to_thread(space.ip, "link", "set", "a0", "down")
            await asyncio.to_thread(space.ip, "link", "set", "a0", "name", "c0")
            await heard.until(lambda h: any(isinstance(r, Link) and r.before == "a0" for r in h))
            await asyncio.to_thread(space.ip, "link", "del", "b0")
            await heard.until(lambda h: sum(isinstance(r, Link) and r.removed for r in h) == 2)
    gone = {draft.component for draft in judged(heard) if draft.kind == "link.removed"}
    assert gone == {"link/b0", "link/c0"}


async def test_a_flood_of_changes_loses_no_final_state(space: netns.Namespace) -> None:
    """When messages are dropped, the state is asked anew: after the flood all that is known is true."""
    batch = "".join(f"link add f{n} type veth peer name g{n}\nlink set f{n} up\n" for n in range(60))
    batch += "".join(f"link del f{n}\n" for n in range(30))
    with space.inside():
        async with following(NetlinkSource(Host(), buffer_bytes=4096)) as heard:
            await dumped(heard)
            # Nobody reads while this runs: the loop is held up.
            command = ["ip", "-n", space.name, "-batch", "-"]
            subprocess.run(command, input=batch.encode(), check=True, timeout=60)
            await heard.until(
                lambda h: known(h) >= {f"f{n}" for n in range(30, 60)} and "f29" not in known(h)
            )


def known(heard: Heard) -> set[str]:
    names: set[str] = set()
    for reading in heard:
        if isinstance(reading, Link):
            (names.discard if reading.removed else names.add)(reading.name)
    return names


async def test_once_says_the_present_state(space: netns.Namespace) -> None:
    """`once` is a dump and nothing more."""
    with space.inside():
        heard = await once(NetlinkSource(Host()))
    found = {reading.name: reading for reading in heard if isinstance(reading, Link)}
    assert found["a0"].kind == "veth"
    assert (found["a0"].admin_up, found["a0"].carrier, found["a0"].operstate) == (True, True, "up")
    assert not found["lo"].admin_up


async def test_uevents_of_interfaces_are_heard(space: netns.Namespace) -> None:
    """The kernel's own uevents arrive without udevd; added and removed devices become facts."""
    with space.inside():
        async with following(UdevSource(Host())) as heard:
            await asyncio.to_thread(space.ip, "link", "add", "u0", "type", "veth", "peer", "name", "u1")
            await heard.until(lambda h: len(h) >= 2)
            await asyncio.to_thread(space.ip, "link", "del", "u0")
            await heard.until(lambda h: len(h) >= 4)
    said = {
        (reading.change, reading.subsystem, reading.sysname)
        for reading in heard
        if isinstance(reading, Device)
    }
    assert said >= {
        ("add", "net", "u0"),
        ("add", "net", "u1"),
        ("remove", "net", "u0"),
        ("remove", "net", "u1"),
    }
    collector = DeviceCollector()
    drafts = [kinds.check(draft) for reading in heard for draft in collector.feed(reading, 0.0)]
    assert ("device.changed", "link/u0") in {(draft.kind, draft.component) for draft in drafts}
