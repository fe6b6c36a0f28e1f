"""BMCs by IPMI: real ipmitool against OpenIPMI's simulator, whose chassis switches a real process on and off."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import Refused, TimedOut, Unreachable
from brain.actions.base import Action, Unwell
from brain.actions.marks import Mark
from tests.real.bmc_kit import QUICK, Slurm, built, order, password_file, perform
from tests.real.ipmi_host import Host, free_udp_port, ipmi_host, missing

pytestmark = pytest.mark.component("ipmi_sim ipmitool")
Actions = dict[str, Action]


@pytest.fixture(name="shared", scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    if why := missing():
        pytest.skip(why)
    with ipmi_host(tmp_path_factory.mktemp("ipmi")) as host:
        yield host


@pytest.fixture(name="host")
def _host(shared: Host) -> Host:
    shared.fresh()
    return shared


@pytest.fixture(name="site")
def _site(host: Host) -> Callable[..., Actions]:
    return lambda **changes: built({"racks": table(host, **changes)})


def table(host: Host, **changes: Any) -> dict[str, Any]:
    """A table of this BMC."""
    return {
        "type": "ipmi",
        "address": f"127.0.0.1:{host.port}",
        "nodes": "gpu01",
        "user": "admin",
        "password_file": str(host.password),
        "cipher_suite": 3,
        "tries": 2,
        **QUICK,
        **changes,
    }


def wrapper(folder: Path, line: str) -> str:
    """The path of an ipmitool that runs a line of shell before it is itself."""
    path = folder / "ipmitool"
    path.write_text(f'#!/bin/sh\n{line}\nexec ipmitool "$@"\n')
    path.chmod(0o755)
    return str(path)


async def test_off_and_on_end_and_start_the_node(host: Host, site: Callable[..., Actions]) -> None:
    """The process that stands for the node is really gone; what is so already is not asked for."""
    actions = site()
    assert "is off" in (await perform(actions["bmc.power_off"])).text
    assert host.node == 0
    assert "already" in (await perform(actions["bmc.power_off"])).text
    await perform(actions["bmc.power_on"])
    assert host.node
    assert host.asked() == ["set power 0", "set power 1"]


async def test_a_power_cycle_brings_another_process(host: Host, site: Callable[..., Actions]) -> None:
    """Seen off, and on again; asked for once."""
    before = host.node
    assert "seen off" in (await perform(site()["bmc.power_cycle"])).text
    assert host.node not in (0, before)


async def test_a_request_whose_answer_is_lost_is_unknown_and_sent_once(
    host: Host, site: Callable[..., Actions], tmp_path: Path
) -> None:
    """The BMC freezes after it has got the request: a repeat must first find out what became of it."""
    tool = wrapper(tmp_path, f'echo "$@" >> {tmp_path}/calls')
    host.set("freezes")
    with pytest.raises(TimedOut, match="may or may not"):
        await perform(site(tool=tool, answer_s=2.5, unseen_s=0.1)["bmc.power_cycle"])
    (host.folder / "freezes").unlink()
    await asyncio.to_thread(host.until, lambda: "is on" in host.ask("status"), "the cycle came to its end")
    assert host.asked() == ["set power 0", "set power 1"]
    calls = (tmp_path / "calls").read_text()
    (sent,) = [line for line in calls.splitlines() if line.endswith("power cycle")]
    assert " -R 1 " in sent, "ipmitool must not send it again by itself"
    assert "secret" not in calls


async def test_restart_and_a_refused_interrupt(host: Host, site: Callable[..., Actions]) -> None:
    """IPMI knows only the hard restart; the BMC's "no" is a refusal, not a riddle."""
    before = host.node
    await perform(site()["bmc.restart"])
    assert host.node not in (0, before)
    with pytest.raises(Refused, match="Invalid data field"):
        await perform(site()["bmc.nmi"])


async def test_isolating_shuts_the_system_down_before_the_power_goes(
    host: Host, site: Callable[..., Actions]
) -> None:
    """Drained, asked to shut down, off; and a second time there is nothing left to do."""
    slurm = Slurm()
    isolate = built({"racks": table(host)}, slurm)["node.isolate"]
    assert len(await isolate.plan(order())) == 4
    done = await perform(isolate, timeout_s=300.0, shutdown_s=60.0)
    assert host.node == 0
    assert done.text.startswith("drained in slurm; its operating system shut down: gpu01 is off")
    assert slurm.drains == [("gpu01", Mark(incident="inc1", why="XID 79"))]
    assert "off already" in (await perform(isolate, timeout_s=300.0)).text
    assert host.asked() == ["set shutdown 1"]


async def test_isolating_a_hung_node_cuts_its_power(host: Host) -> None:
    """A scheduler that is down and a system that hangs do not keep a sick node on."""
    host.set("hangs")

    async def down() -> None:
        raise Unreachable("slurmctld does not answer")

    isolate = built({"racks": table(host)}, Slurm(down))["node.isolate"]
    done = await perform(isolate, timeout_s=300.0, shutdown_s=0.5)
    assert host.node == 0
    assert "not drained, slurm failed: slurmctld" in done.text
    assert "switched off by its BMC" in done.text
    assert host.asked() == ["set shutdown 1", "set power 0"]


async def test_evidence(site: Callable[..., Actions]) -> None:
    """A sensor that is not well fails the step; what is too hot comes first; the newest event is told."""
    with pytest.raises(Unwell) as found:
        await perform(site()["bmc.evidence"])
    assert "unhealthy: GPU Temp" in str(found.value)
    assert "Failure detected" in str(found.value)
    assert found.value.data["sensor CPU Temp"] == "45 degrees C"
    assert found.value.data["Firmware Revision"] == "9.08"
    assert "Upper Critical going high" in str(found.value.data["event 2"])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"user": "nobody"}, "refuses our user or password"),
        ({"cipher_suite": 17}, "refuses the session"),
        ({"tool": "/nowhere/ipmitool"}, "cannot be started"),
    ],
)
async def test_what_the_operator_must_mend_is_refused(
    host: Host, site: Callable[..., Actions], changes: dict[str, Any], says: str
) -> None:
    """Not "unreachable": asking again would lock the account, or be in vain."""
    with pytest.raises(Refused, match=says):
        await perform(site(**changes)["bmc.power_off"])
    assert host.asked() == []


async def test_a_wrong_password_is_tried_once(host: Host, tmp_path: Path) -> None:
    """Until the file has another one."""
    wrong = password_file(tmp_path, "wrong")
    actions = built({"racks": table(host, password_file=str(wrong))})
    with pytest.raises(Refused, match="RAKP 2 HMAC is invalid"):
        await perform(actions["bmc.power_off"])
    with pytest.raises(Refused, match="not tried again"):
        await perform(actions["bmc.power_off"])
    wrong.write_text("secret")
    await perform(actions["bmc.power_off"])
    assert host.node == 0


async def test_a_bmc_that_is_dead_or_dies_before_the_request_is_unreachable(
    host: Host, site: Callable[..., Actions], tmp_path: Path
) -> None:
    """Without a session nothing was sent, so even a power cycle may be asked for again."""
    dead = free_udp_port()
    with pytest.raises(Unreachable, match="no answer"):
        await perform(site(address=f"127.0.0.1:{dead}", answer_s=0.3, connect_s=1.0)["bmc.power_cycle"])
    dies = wrapper(tmp_path, f'case "$*" in *cycle) set -- $(echo "$@" | sed s/{host.port}/{dead}/) ;; esac')
    with pytest.raises(Unreachable, match="Unable to establish"):
        await perform(site(tool=dies, connect_s=1.0, tries=1)["bmc.power_cycle"])
    assert host.asked() == []


async def test_ipmi_is_the_fallback_when_redfish_does_not_answer(host: Host, tmp_path: Path) -> None:
    """And it is said; a table that is somebody's fallback is not chosen by itself."""
    said: list[str] = []
    tables = {
        "lan": table(host),
        "web": {
            "type": "redfish",
            "address": "https://127.0.0.1:1",
            "nodes": "gpu01",
            "user": "admin",
            "password_file": str(host.password),
            "fallback": "lan",
            **QUICK,
        },
    }
    await built(tables)["bmc.power_off"].run(order(progress=said.append))
    assert host.node == 0
    assert "redfish https://127.0.0.1:1 does not answer" in said[0]
    assert f"continuing with ipmi 127.0.0.1:{host.port}" in said[0]
