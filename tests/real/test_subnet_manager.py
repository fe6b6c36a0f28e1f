"""Real subnet managers on a simulated fabric: what the node action sees, and what the brain's remedies do about it."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.actions.ib_sm_state import IbSmState
from agent.collectors.samples import Sample, SmAnswer
from agent.contract import subnet
from agent.contract.errors import Refused, Unreachable
from agent.host import Host
from agent.sources.subnet import SubnetSource, SubnetSourceOptions
from brain.actions.base import Action, Order
from brain.actions.subnet_manager import subnet_managers
from tests.real import ibsim_fabric
from tests.real.sm_site import Site

pytestmark = [pytest.mark.root, pytest.mark.component("ibsim opensm"), pytest.mark.slow]

TABLE = {"default": {"hosts": [{"node": "H1"}, {"node": "H2"}], "ask": ["H3", "H4"], "look_s": 0.1}}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Four hosts, no subnet manager yet."""
    if why := ibsim_fabric.missing():
        pytest.skip(why)
    with ibsim_fabric.fabric(tmp_path) as net:
        yield Site(net)


def order(name: str, step: str, timeout_s: float = 60.0) -> Order:
    """One attempt of one step."""
    params = {"fabric": "fabric/default"}
    return Order(
        id=f"inc-1.r1.{step}.a1", incident="inc-1", node="", params=params, timeout_s=timeout_s, why=name
    )


def remedies(site: Site) -> dict[str, Action]:
    """The brain's actions, with this site as their fleet."""
    return {action.name: action for action in subnet_managers(TABLE, site)}


def master(site: Site, host: str) -> bool:
    """Does H3's port follow a master on `host`?"""
    return f"sm guid {GUIDS[host]}," in (reported := site.net.ask("H3", "sminfo")) and "MASTER" in reported


def led_by(site: Site, host: str) -> None:
    """Returns when it is, and the files of the host's port say so."""
    site.net.until(lambda: master(site, host), f"{host} did not become master")
    site.net.mirror(host)


GUIDS = {"H1": "0x100001", "H2": "0x100003", "H3": "0x100005", "H4": "0x100007"}


async def test_what_a_node_sees_of_the_managers(site: Site) -> None:
    """Without any: no working SM. With two: both, the standby too, and which one is on the node itself."""
    see = IbSmState(Host(root=site.net.mirror("H3")), tools=site.net.tools("H3"))
    done = await see.run({})
    assert done.text.splitlines() == ["no working SM", "port=ibsim0.1 lid=0 sm_lid=0 sm=none"]
    site.start("H1", priority=10)
    led_by(site, "H1")
    site.start("H2", priority=5)
    site.net.mirror("H3")
    view = subnet.read((await see.run({})).text)
    for _ in range(1200):
        if len(view.managers) == 2:
            break
        await asyncio.sleep(0.05)
        view = subnet.read((await see.run({})).text)
    assert view.works
    assert [(sm.guid, sm.priority, sm.state, sm.here) for sm in view.managers] == [
        (GUIDS["H1"], 10, "MASTER", False),
        (GUIDS["H2"], 5, "STANDBY", False),
    ]
    here = IbSmState(Host(root=site.net.mirror("H2")), tools=site.net.tools("H2"))
    standby = subnet.read((await here.run({})).text).here
    assert standby is not None
    assert (standby.guid, standby.state) == (GUIDS["H2"], "STANDBY")
    port = site.net.mirror("H3") / "sys/class/infiniband/ibsim0/ports/1"
    (port / "link_layer").write_text("Ethernet")
    with pytest.raises(Refused, match="no InfiniBand port"):
        await see.plan({})


async def test_a_frozen_master_is_noticed_and_replaced(site: Site) -> None:
    """The agent's source gets no answer any more; the standby is started and becomes master; twice is nothing."""
    site.start("H2", priority=5)
    led_by(site, "H2")
    source = SubnetSource(Host(root=site.net.mirror("H3")), SubnetSourceOptions(), tools=site.net.tools("H3"))
    emitted: list[Sample] = []
    await source.once(emitted.append)
    assert [r.state for r in emitted if isinstance(r, SmAnswer)] == ["MASTER"]
    site.net.console('Error "H2"[1] 100')  # it lives and receives nothing: no standby, and its unit is active
    site.net.until(lambda: not master(site, "H2"), "H2 still answers")
    await source.once(emitted.append)
    assert [r.state for r in emitted if isinstance(r, SmAnswer)] == ["MASTER", ""]
    act = remedies(site)
    status = await act["sm.status"].run(order("look", "s1"))
    assert status.text.startswith("no working SM; H1: none answers; H2: MASTER priority 5")
    assert status.data == {"works": False}
    assert await act["sm.start_standby"].plan(order("plan", "s2")) == [
        "start opensm.service on H1",
        "after each: wait until a master answers",
    ]
    assert site.orders == []
    done = await act["sm.start_standby"].run(order("start", "s2"))
    assert done.text.startswith("started opensm.service on H1: a master answers; H1: MASTER")
    assert master(site, "H1")
    await source.once(emitted.append)
    again = await act["sm.start_standby"].run(order("start", "s2"))
    assert again.text.startswith("nothing to start: a master answers")
    nothing = await act["sm.stop_master"].run(order("stop", "s3"))
    assert nothing.text.startswith("nothing to stop: a master answers")
    assert site.orders == [("H1", "service.start")]


async def test_a_sick_master_is_stopped_when_another_can_take_over(site: Site) -> None:
    """Not before another host runs a manager; then it is stopped as a service, and the other one is master."""
    site.start("H2", priority=5)
    led_by(site, "H2")
    site.net.console('Error "H2"[1] 100')
    site.net.until(lambda: not master(site, "H2"), "H2 still answers")
    act = remedies(site)
    site.unreachable = {"H1"}
    with pytest.raises(Refused, match="no other host can take over from H2"):
        await act["sm.stop_master"].run(order("stop", "s3"))
    assert site.units["H2"] is not None
    assert site.units["H2"].poll() is None
    site.unreachable = set()
    lines = await act["sm.stop_master"].plan(order("plan", "s3"))
    assert lines[:2] == ["start opensm.service on H1, to take over", "stop opensm.service on H2"]
    done = await act["sm.stop_master"].run(order("stop", "s3"))
    assert "a master answers" in done.text
    led_by(site, "H1")


async def test_a_killed_master_without_a_standby_is_started_again(site: Site) -> None:
    """Its own host is the only one that can: it is started there, although the ports still follow it."""
    process = site.start("H1", priority=10)
    led_by(site, "H1")
    process.send_signal(signal.SIGKILL)
    process.wait()
    site.net.until(lambda: not master(site, "H1"), "H1 still answers")
    site.unreachable = {"H2"}
    done = await remedies(site)["sm.start_standby"].run(order("start", "s2"))
    assert done.text.startswith("started opensm.service on H1")
    assert "H2 could not be asked (unreachable: H2: no agent listens there)" in done.text
    site.unreachable = {"H1", "H2", "H3", "H4"}
    with pytest.raises(Unreachable, match="no node could be asked"):
        await remedies(site)["sm.status"].run(order("look", "s1"))
