"""Switch ports by a tool of the site: a real script as the management host's command, and a cable map."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import ActionError, ConfigError, Refused, TimedOut, Unreachable
from brain.actions.base import Action, Order
from brain.actions.switch import port_actions
from brain.actions.switch_command import build

CABLES = """
n1:
  mlx5_0.1: {switch: leaf-1, port: "12"}
  eth2: {switch: tor-7, port: Ethernet1/3}
leaf-1:
  "33": {switch: spine-1, port: "1"}
"""
# Keeps the ports' states as files; what it was asked stands in calls.
SCRIPT = """#!/bin/sh
cd {folder} || exit 9
echo "$*" >> calls
file=$(echo "port-$1-$2" | tr / _)
case $3 in
  state) if [ -s busy ]; then sed -i 1d busy; echo "mad_rpc failed" >&2; exit 1; fi
    if [ -e "$file" ]; then cat "$file"; else echo "Ethernet1/3 is up, line protocol is up"; fi ;;
  disable) [ -e broken ] && {{ echo "no such port" >&2; exit 3; }}
    [ -e slow ] && sleep 30
    echo "is administratively down" > "$file" ;;
  enable) if [ -e nolink ]; then echo "is down" > "$file"; else rm -f "$file"; fi ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the script and the map."""
    (tmp_path / "cables.yaml").write_text(CABLES)
    script = tmp_path / "switch-port"
    script.write_text(SCRIPT.format(folder=tmp_path))
    script.chmod(0o755)
    return tmp_path


def actions(folder: Path, **more: Any) -> dict[str, Action]:
    """The three."""
    table = {
        "type": "command",
        "command": [str(folder / "switch-port"), "{switch}", "{port}", "{do}"],
        "cables": folder / "cables.yaml",
        "disabled": "administratively down",
    }
    backend = build(table | more, "switches.eth", {})
    return {action.name: action for action in port_actions([backend], poll_s=0.02, pause_s=0.02)}


def order(node: str = "n1", component: str = "link/eth2", timeout_s: float = 60) -> Order:
    """About a port."""
    return Order(
        id="s1", incident="i1", node=node, params={"component": component}, timeout_s=timeout_s, why="errors"
    )


async def test_down_up_and_bounced(folder: Path) -> None:
    """Each by one call, read back by another; a port that is as it shall be is left alone."""
    act = actions(folder)
    assert (await act["switch.port_disable"].run(order())).text == "tor-7 port Ethernet1/3 is disabled"
    await act["switch.port_disable"].run(order())
    assert (await act["switch.port_enable"].run(order())).text == "tor-7 port Ethernet1/3 is up"
    await act["switch.port_bounce"].run(order(component="port/mlx5_0.1"))
    calls = [call for call in (folder / "calls").read_text().splitlines() if not call.endswith("state")]
    assert calls == [
        "tor-7 Ethernet1/3 disable",
        "tor-7 Ethernet1/3 enable",
        "leaf-1 12 disable",
        "leaf-1 12 enable",
    ]


async def test_a_port_without_a_known_cable_or_between_switches_is_refused(folder: Path) -> None:
    """Unless the site allows links between switches; a map that changes is read again, a broken one refuses."""
    act = actions(folder)["switch.port_disable"]
    with pytest.raises(Refused, match="knows no cable of n1 eth9"):
        await act.run(order(component="link/eth9"))
    with pytest.raises(Refused, match="knows no cable of n2 eth2"):
        await act.run(order("n2"))
    with pytest.raises(Refused, match="leaf-1 33 is a link between switches"):
        await act.run(order("leaf-1", "port/33"))
    assert not (folder / "calls").exists()
    allowed = actions(folder, switch_links=True)["switch.port_disable"]
    assert await allowed.plan(order("leaf-1", "port/33")) == ["disable spine-1 port 1 (now up)"]
    (folder / "cables.yaml").write_text("n2: {eth2: {switch: tor-8, port: p1}}\n")
    assert await act.plan(order("n2")) == ["disable tor-8 port p1 (now up)"]
    (folder / "cables.yaml").write_text("n2: {eth2: {switch: tor-8}}\n" + "#" * 50)
    with pytest.raises(Refused, match=r"cables\.yaml: n2\.eth2\.port"):
        await act.run(order("n2"))


async def test_a_query_that_fails_is_repeated_before_a_harder_remedy_is_tried(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost packet or a busy switch; one that fails for good is reported, and nothing was done."""
    monkeypatch.setattr("brain.actions.switch_command.RETRY_S", 0.01)
    act = actions(folder)["switch.port_bounce"]
    (folder / "busy").write_text("once\ntwice\n")
    assert "tor-7 port Ethernet1/3" in (await act.run(order())).text
    (folder / "busy").write_text("again\n" * 9)
    (folder / "calls").unlink()
    with pytest.raises(Unreachable, match="its state could not be read: mad_rpc failed"):
        await act.run(order())
    assert set((folder / "calls").read_text().splitlines()) == {"tor-7 Ethernet1/3 state"}


async def test_what_the_tool_does_wrong(folder: Path) -> None:
    """It fails, it hangs, its answer is not understood, its port has no link afterwards."""
    act = actions(folder)
    (folder / "broken").touch()
    with pytest.raises(ActionError, match=r"tor-7 port Ethernet1/3: no such port \(exit status 3\)"):
        await act["switch.port_disable"].run(order())
    (folder / "broken").unlink()
    (folder / "slow").touch()
    with pytest.raises(TimedOut, match=r"did not end within 0\.5 s"):
        await actions(folder, timeout_s=0.5)["switch.port_disable"].run(order())
    (folder / "slow").unlink()
    (folder / "port-tor-7-Ethernet1_3").write_text("% Invalid input")
    with pytest.raises(Unreachable, match="none of disabled, up, down: '% Invalid input'"):
        await act["switch.port_disable"].run(order())
    (folder / "port-tor-7-Ethernet1_3").unlink()
    (folder / "nolink").touch()
    with pytest.raises(ActionError, match="is enabled again and has no link"):
        await act["switch.port_bounce"].run(order(timeout_s=3.3))
    (folder / "switch-port").chmod(0o600)
    with pytest.raises(Refused, match="cannot be started: Permission denied"):
        await act["switch.port_disable"].run(order())


async def test_a_bounce_that_fails_half_way_sets_the_port_up_again(folder: Path) -> None:
    """Also when the step is cancelled while the port is down."""
    backend = build(
        {
            "command": [str(folder / "switch-port"), "{switch}", "{port}", "{do}"],
            "cables": folder / "cables.yaml",
        },
        "switches.eth",
        {},
    )
    (bounce, *_) = port_actions([backend], poll_s=0.02, pause_s=30)
    task = asyncio.create_task(bounce.run(order(timeout_s=60)))
    async with asyncio.timeout(60):
        while not (folder / "port-tor-7-Ethernet1_3").exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (folder / "calls").read_text().splitlines()[-1] == "tor-7 Ethernet1/3 enable"


def test_a_wrong_table_or_map_is_refused_by_name(folder: Path) -> None:
    """No name can be an option of the tool or a part of a shell command; one switch port has one cable."""
    good = {"command": ["/bin/x", "{switch}", "{port}", "{do}"], "cables": folder / "cables.yaml"}
    for more, why in (
        (
            {"command": ["ssh", "{switch}", "{port}", "{do}"]},
            r"switches\.e\.command: must begin with an absolute path",
        ),
        ({"command": ["/bin/x", "{switch}", "{do}"]}, r"switches\.e\.command: has no \{port\}"),
        ({"up": "("}, "is not a regular expression"),
        ({"cables": folder / "none"}, r"switches\.e\.cables: .*No such file"),
    ):
        with pytest.raises(ConfigError, match=why):
            build(good | more, "switches.e", {})
    for text, why in (
        ('n1: {eth2: {switch: "-oProxyCommand=x", port: "1"}}', "must be letters, digits"),
        ('n1: {eth2: {switch: t, port: "1;reboot"}}', "must be letters, digits"),
        ('n1: {eth2: {switch: t, port: "$(x)"}}', "must be letters, digits"),
        (
            'n1: {eth2: {switch: t, port: "1"}, eth3: {switch: t, port: "1"}}',
            r"has the cable of n1\.eth2 already",
        ),
        ("n1: [", "not YAML"),
    ):
        (folder / "cables.yaml").write_text(text)
        with pytest.raises(ConfigError, match=why):
            build(good, "switches.e", {})
