"""ib.port_reset with the real ibportstate and subnet manager on a simulated fabric (ibsim).

The simulator's ports store what they are told and do not train: a helper pulls and plugs the cable where a real port
would train. /sys is the fabric's mirror; the tool is wrapped, since it must be told of the simulator.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agent.actions.ib_port_reset import IbPortReset
from agent.contract.errors import ActionError, Refused
from agent.host import Host
from tests.real import ibsim_fabric

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("ibsim opensm"),
    pytest.mark.slow,
    pytest.mark.skipif(bool(ibsim_fabric.missing()), reason=ibsim_fabric.missing() or "-"),
]
PORT = {"port": "port/ibsim0.1"}


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ibsim_fabric.Fabric]:
    """A fabric whose master runs on H1; the node is H3."""
    with ibsim_fabric.fabric(tmp_path_factory.mktemp("fabric")) as net:
        net.subnet_manager("H1", priority=10)
        net.until(lambda: active(net), "H3 did not become active")
        yield net


def active(net: ibsim_fabric.Fabric) -> bool:
    """Is the port of H3 ACTIVE and trained?"""
    words = net.ask("H3", "smpquery", "portinfo", "-D", "0", "1")
    return re.search(r"^LinkState:\.*Active$", words, re.M) is not None and "LinkUp" in words


def action(net: ibsim_fabric.Fabric, *, active_s: float = 15.0, ib_root: str = "") -> IbPortReset:
    """As the agent of H3 has it."""
    tool = net.folder / "ibportstate"
    words = " ".join(f"{key}='{net._client[key]}'" for key in ("LD_PRELOAD", "IBSIM_SOCKNAME"))
    tool.write_text(
        f'#!/bin/sh\necho "$@" >> {net.folder}/calls\nexec env {words} SIM_HOST=H3 ibportstate "$@"\n'
    )
    tool.chmod(0o755)
    root = ib_root or str(net.mirror("H3") / "sys/class/infiniband")
    return IbPortReset(
        Host(), lambda: ("127.0.0.1", 4222), ibportstate=str(tool), ib_root=root, active_s=active_s
    )


@contextlib.asynccontextmanager
async def wire(net: ibsim_fabric.Fabric, *, trains: bool) -> AsyncIterator[None]:
    """Mirrors the port, and trains it when it was told to."""

    async def live() -> None:
        while True:
            words = await asyncio.to_thread(net.ask, "H3", "smpquery", "portinfo", "-D", "0", "1")
            await asyncio.to_thread(net.mirror, "H3")
            if trains and "PhysLinkState:...................Polling" in words:
                net.console('Unlink "H3"[1]')
                net.console('Relink "H3"[1]')
            await asyncio.sleep(0.02)

    task = asyncio.create_task(live())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_port_trains_anew(net: ibsim_fabric.Fabric) -> None:
    """Its firmware is told, it goes down, the subnet manager makes it ACTIVE again. A plan only says so."""
    reset = action(net)
    assert await reset.plan(PORT) == [
        f"{net.folder}/ibportstate -C ibsim0 -P 1 -D 0 1 reset (now ACTIVE, LinkUp)",
        "wait up to 15 s until it is ACTIVE again",
    ]
    assert not (net.folder / "calls").exists()
    async with wire(net, trains=True):
        done = await reset.run(PORT)
    assert "ibsim0 port 1 was reset and is ACTIVE again" in done.text
    assert (net.folder / "calls").read_text().splitlines() == ["-C ibsim0 -P 1 -D 0 1 reset"]
    net.until(lambda: active(net), "H3 is not active")


async def test_a_port_whose_cable_is_bad(net: ibsim_fabric.Fabric) -> None:
    """It does not train: said so, after the bound."""
    async with wire(net, trains=False):
        with pytest.raises(ActionError, match=r"has not come up to stay after 2 s: \w+, Polling"):
            await action(net, active_s=2).run(PORT)
    mend(net)


async def test_the_agent_died_between_disable_and_enable(net: ibsim_fabric.Fabric) -> None:
    """The port that was left disabled is enabled; one that is not is left alone."""
    net.ask("H3", "ibportstate", "-C", "ibsim0", "-P", "1", "-D", "0", "1", "disable")
    reset = action(net)
    calls = net.folder / "calls"
    calls.unlink(missing_ok=True)
    await reset.recover(PORT)
    assert calls.read_text().splitlines() == ["-C ibsim0 -P 1 -D 0 1 enable"]
    net.mirror("H3")
    await reset.recover(PORT)
    assert len(calls.read_text().splitlines()) == 1
    mend(net)


def mend(net: ibsim_fabric.Fabric) -> None:
    """A good cable again."""
    net.console('Unlink "H3"[1]')
    net.console('Relink "H3"[1]')
    net.until(lambda: active(net), "H3 did not become active")


@pytest.mark.parametrize(
    ("component", "file", "text", "why"),
    [
        ("port/ibsim0.1", "link_layer", "Ethernet", "is an Ethernet port"),
        ("port/ibsim0.1", "phys_state", "3: Disabled", "is disabled: whoever did that"),
        ("port/ibsim0.1", "sm_lid", "0x4", "a subnet manager of the fabric runs on"),
        ("port/ibsim0.1", "cap_mask", "0x0050c04a", "a subnet manager of the fabric runs on"),
        ("port/ibsim0.2", "", "", "this node has no port/ibsim0.2"),
        ("port/ibsim0.1/../1", "", "", "this node has no"),
        ("link/ib0", "", "", "port must be port/..."),
    ],
)
async def test_what_is_refused(
    net: ibsim_fabric.Fabric, tmp_path: Path, component: str, file: str, text: str, why: str
) -> None:
    """Ports that do not train this way, that carry the fabric's subnet manager, that are not there."""
    folder = tmp_path / "ibsim0/ports/1"
    folder.mkdir(parents=True)
    known = {
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "link_layer": "InfiniBand",
        "lid": "0x4",
        "sm_lid": "0x1",
    }
    for name, value in (known | ({file: text} if file else {})).items():
        (folder / name).write_text(value)
    reset = action(net, ib_root=str(tmp_path))
    for what in (reset.plan, reset.run):
        with pytest.raises(Refused, match=why):
            await what({"port": component})


async def test_the_port_of_the_control_path(
    net: ibsim_fabric.Fabric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interface on the port leads to the broker: refused."""
    folder = tmp_path / "ibsim0/ports/1"
    folder.mkdir(parents=True)
    (tmp_path / "ibsim0/device/net/ib0").mkdir(parents=True)
    for name, value in {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "link_layer": "InfiniBand"}.items():
        (folder / name).write_text(value)
    monkeypatch.setattr("agent.actions.ib_port_reset.carriers", lambda *_: frozenset({"ib0"}))
    with pytest.raises(Refused, match=r"carries the control path \(ib0\)"):
        await action(net, ib_root=str(tmp_path)).run(PORT)
