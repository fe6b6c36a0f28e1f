"""What an agent reports about its subnet manager: the text that both sides read, the facts, and the two tools' failures."""

import asyncio
from pathlib import Path

import pytest

from agent.actions.ib_sm_state import IbSmState
from agent.collectors.samples import Sample, SmAnswer
from agent.collectors.subnet import REPEAT_S, SubnetCollector
from agent.contract import subnet
from agent.contract.errors import Refused
from agent.contract.messages import MAX_TEXT, UnsentEvent
from agent.host import Host
from agent.sources.subnet import SubnetSource, SubnetSourceOptions

SAID = "sminfo: sm lid {lid} sm guid 0x{guid}, activity count 116 priority {priority} state {number} SMINFO_{state}"


def machine(root: Path, **files: str) -> Path:
    """A port under /sys; the machine's root."""
    port = root / "sys/class/infiniband/mlx5_0/ports/1"
    port.mkdir(parents=True, exist_ok=True)
    known = {
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "lid": "0x4",
        "sm_lid": "0x1",
        "link_layer": "InfiniBand",
    }
    for name, text in (known | files).items():
        (port / name).write_text(text + "\n")
    return root


def tools(folder: Path, *, sminfo: str, saquery: str = "exit 1") -> Path:
    """infiniband-diags as shell scripts."""
    folder.mkdir(exist_ok=True)
    for name, text in (("sminfo", sminfo), ("saquery", saquery)):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return folder


def say(number: int, state: str, lid: int = 1, guid: str = "100001", priority: int = 10) -> str:
    """A line of sminfo, as a script prints it."""
    return f"echo '{SAID.format(lid=lid, guid=guid, priority=priority, number=number, state=state)}'"


def test_the_text_is_read_as_it_was_reported() -> None:
    """Bounded also with many ports and managers; those without a master first; a cut text is read as far as it goes."""
    view = subnet.SubnetView(
        ports=(
            *(
                subnet.PortView(port=f"mlx5_{n}.1", lid=65000 + n, sm_lid=65100, sm="MASTER")
                for n in range(9)
            ),
            subnet.PortView(port="mlx5_9.1", lid=4, sm_lid=1, sm=subnet.NO_ANSWER),
        ),
        managers=tuple(
            subnet.Manager(guid=f"0x{n:016x}", lid=65000, priority=15, state="DISCOVERING", here=n == 7)
            for n in range(9)
        ),
    )
    text = view.text()
    assert len(text) <= MAX_TEXT
    assert text.startswith("no working SM\nport=mlx5_9.1 lid=4 sm_lid=1 sm=none\n")
    again = subnet.read(text)
    assert not again.works
    assert (len(again.ports), len(again.managers)) == (subnet.MOST_PORTS, subnet.MOST_MANAGERS)
    assert again.here is not None
    assert again.here.guid == "0x0000000000000007"
    assert subnet.read(again.text()) == again
    assert len(subnet.read(text[:-5]).managers) == subnet.MOST_MANAGERS - 1
    assert not subnet.read("").works
    assert subnet.sminfo("sminfo: iberror: failed: query") is None


async def test_a_node_asks_its_port_its_own_manager_and_the_others(tmp_path: Path) -> None:
    """The manager on the node is queried by its own route, which shows no LID; the master's list leads to the others."""
    script = f"""case "$*" in
      *"-D 0") {say(2, "STANDBY", lid=0, guid="100003", priority=5)} ;;
      *"-t 300") {say(3, "MASTER")} ;;
      *" 1") {say(3, "MASTER")} ;;
      *" 4") {say(2, "STANDBY", lid=4, guid="100003", priority=5)} ;;
    esac"""
    listed = "printf '\\t\\tEndPortLid..............1\\n\\t\\tbase_lid................4\\n'"
    folder = tools(tmp_path / "bin", sminfo=script, saquery=listed)
    done = await IbSmState(Host(root=machine(tmp_path)), tools=folder).run({})
    assert done.text.splitlines() == [
        "SM works",
        "port=mlx5_0.1 lid=4 sm_lid=1 sm=MASTER",
        "sm=0x100003 lid=4 priority=5 state=STANDBY here=yes",
        "sm=0x100001 lid=1 priority=10 state=MASTER here=no",
    ]


async def test_without_an_answer_there_is_no_working_manager(tmp_path: Path) -> None:
    """A manager that calls itself standby is no better than one that does not answer; missing tools and ports are refused."""
    host = Host(root=machine(tmp_path))
    silent = tools(tmp_path / "bin", sminfo="exit 255")
    assert (
        await IbSmState(host, tools=silent).run({})
    ).text == "no working SM\nport=mlx5_0.1 lid=4 sm_lid=1 sm=none"
    standby = tools(tmp_path / "bin", sminfo=say(2, "STANDBY"))
    text = (await IbSmState(host, tools=standby).run({})).text
    assert text.startswith("no working SM\nport=mlx5_0.1 lid=4 sm_lid=1 sm=STANDBY")
    with pytest.raises(Refused, match="sminfo cannot be started"):
        await IbSmState(host, tools=tmp_path / "none").run({})
    for files in ({"phys_state": "2: Polling"}, {"link_layer": "Ethernet", "phys_state": "5: LinkUp"}):
        with pytest.raises(Refused, match="no InfiniBand port with a link"):
            await IbSmState(Host(root=machine(tmp_path, **files)), tools=silent).plan({})


async def test_the_source_queries_active_infiniband_ports_once_for_each_manager(tmp_path: Path) -> None:
    """A port that is down, or Ethernet, or that knows no manager is not queried."""
    folder = tools(tmp_path / "bin", sminfo=say(3, "MASTER"))
    for files, states in (
        ({}, ["MASTER"]),
        ({"state": "1: DOWN"}, []),
        ({"sm_lid": "0x0"}, []),
        ({"link_layer": "Ethernet"}, []),
    ):
        root = machine(tmp_path, **files)
        emitted: list[Sample] = []
        await SubnetSource(Host(root=root), SubnetSourceOptions(), tools=folder).once(emitted.append)
        assert [one.state for one in emitted if isinstance(one, SmAnswer)] == states
    tools(tmp_path / "bin", sminfo="exit 255")
    machine(tmp_path)
    unanswered: list[Sample] = []
    source = SubnetSource(Host(root=tmp_path), SubnetSourceOptions(sm_interval_s=0.02), tools=folder)
    task = asyncio.create_task(source.run(unanswered.append))
    async with asyncio.timeout(60):
        while len(unanswered) < 2:
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert {one.state for one in unanswered if isinstance(one, SmAnswer)} == {""}


async def test_a_port_that_may_not_be_opened_says_nothing_about_the_manager(tmp_path: Path) -> None:
    """The source is blind, with what it needs: an agent that only observes may not write to /dev/infiniband."""
    refused = "echo \"sminfo: iberror: failed: Failed to open 'mlx5_0' port '1'\" >&2; exit 255"
    folder = tools(tmp_path / "bin", sminfo=refused)
    source = SubnetSource(Host(root=machine(tmp_path)), SubnetSourceOptions(), tools=folder)
    told: list[Sample] = []
    with pytest.raises(OSError, match="read and write on /dev/infiniband"):
        await source.once(told.append)
    assert told == []


def reported(*answers: tuple[float, str], port: int = 1) -> list[tuple[float, bool, str]]:
    """(time, answers, state) of the collector's events for these answers."""
    collector = SubnetCollector()
    found: list[tuple[float, bool, str]] = []
    for at, state in answers:
        unsent_events: list[UnsentEvent] = list(
            collector.feed(SmAnswer(device="mlx5_0", port=port, sm_lid=1, state=state, mono_s=at), at)
        )
        found += [(at, bool(unsent.data["answers"]), str(unsent.data["state"])) for unsent in unsent_events]
    return found


def test_a_manager_without_an_answer_is_reported_when_it_lasts_and_when_it_is_over() -> None:
    """One lost answer is no fact; an answer that is not a master's counts as none; what lasts is reported again."""
    assert reported((0, "MASTER"), (30, ""), (60, "MASTER"), (90, "")) == []
    assert reported((0, ""), (30, ""), (60, ""), (90, "MASTER"), (120, "MASTER")) == [
        (30, False, ""),
        (90, True, "MASTER"),
    ]
    assert reported((0, "STANDBY"), (30, "STANDBY")) == [(30, False, "STANDBY")]
    again = 30 + REPEAT_S
    assert reported((0, ""), (30, ""), (again - 1, ""), (again, "")) == [(30, False, ""), (again, False, "")]
