"""BMCs asked how their nodes are: our Redfish server with old and new resources, sushy-emulator, and OpenIPMI's simulator."""

import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from brain.actions import bmc_poll
from brain.actions.bmc_poll import BmcPoll
from brain.bmc_poll_config import BmcPollConfig
from brain.core.inputs import Reported
from tests.real.bmc_kit import QUICK, certificate, password_file, server_tls
from tests.real.brain_kit import lab
from tests.real.ipmi_host import Host, ipmi_host, missing
from tests.real.redfish_fake import RedfishFake
from tests.real.redfish_resources import chassis_of
from tests.real.sushy_emulator import UUID, sushy_emulator

pytestmark = pytest.mark.component("openssl")
_SYSTEM, _BASE = "/redfish/v1/Systems/1", "/redfish/v1/Chassis/1U"


class Watch:
    """A poller of one node, and what it publishes."""

    def __init__(self, table: dict[str, Any], **want: Any) -> None:
        self.got: list[Reported] = []
        (self.poll,) = bmc_poll.listeners(
            {"racks": table},
            BmcPollConfig.model_validate({"every_s": 300.0, "within_s": 30.0} | want),
            put=self.got.append,
            note=lambda _, __: None,
            leads=lambda: True,
            known=lambda: {"gpu01"},
            standing=lambda _: (),
        )
        assert isinstance(self.poll, BmcPoll)

    async def told(self) -> dict[str, dict[str, Any]]:
        """What one more look publishes: kind -> data."""
        self.got.clear()
        await self.poll.look("gpu01")
        assert {one.node for one in self.got} <= {"gpu01"}
        return {one.kind: dict(one.data) for one in self.got}


@pytest.fixture(name="tls", scope="module")
def _tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    cert, key = certificate(tmp_path_factory.mktemp("tls"))
    return cert, server_tls(cert, key)


@pytest.fixture(name="bmc")
async def _bmc(tls: tuple[Path, ssl.SSLContext]) -> AsyncIterator[RedfishFake]:
    async with RedfishFake(tls[1]) as fake:
        yield fake


def redfish(
    bmc: RedfishFake, tls: tuple[Path, ssl.SSLContext], folder: Path, **changes: Any
) -> dict[str, Any]:
    """A table of this BMC."""
    return {
        "type": "redfish",
        "address": bmc.url,
        "nodes": "gpu01",
        "user": "admin",
        "password_file": str(password_file(folder)),
        "ca_file": str(tls[0]),
        **QUICK,
        **changes,
    }


@pytest.mark.parametrize(
    "newer", [False, True], ids=["Thermal and Power", "ThermalSubsystem and PowerSubsystem"]
)
async def test_redfish_parts_fail_and_are_replaced(
    bmc: RedfishFake, tls: tuple[Path, ssl.SSLContext], tmp_path: Path, *, newer: bool
) -> None:
    """Supply, fan, inlet, memory, and with the newer resources a leak: each told once, with its name, and its end."""
    bmc.extra = chassis_of(newer=newer)
    watch = Watch(redfish(bmc, tls, tmp_path))
    assert await watch.told() == {}
    assert not bmc.open_sessions
    assert len(bmc.log) < 45, "one look is so many requests, not more"
    bmc.extra = chassis_of(newer=newer, ill=True)
    told = await watch.told()
    assert told["bmc.power"]["parts"] == "PSU 2, redundancy 0"
    assert (told["bmc.power"]["failed"], told["bmc.power"]["redundant"]) == (1, False)
    assert told["bmc.fan"]["parts"] == "Fan 3"
    assert (told["bmc.inlet"]["celsius"], told["bmc.inlet"]["critical"]) == (47.0, True)
    assert told["bmc.dimm"] == {
        "active": True,
        "parts": "DIMM 9",
        "uncorrected": True,
        "text": "DIMM 9 12: uncorrectable errors",
    }
    assert ("bmc.leak" in told) == newer
    assert told["bmc.entry"]["about"] == "processor"
    assert set(told) <= {"bmc.power", "bmc.fan", "bmc.inlet", "bmc.dimm", "bmc.leak", "bmc.entry"}
    assert await watch.told() == {}
    bmc.extra = chassis_of(newer=newer)
    over = (
        await watch.told() | await watch.told() | await watch.told()
    )  # a module is read when it is its turn
    assert {kind for kind, data in over.items() if not data["active"]} == set(told) - {"bmc.entry"}
    assert bmc.asked == [], "nothing was switched"


async def test_redfish_that_is_slow_or_refuses(
    bmc: RedfishFake, tls: tuple[Path, ssl.SSLContext], tmp_path: Path
) -> None:
    """A BMC that hangs is given up in its time; a wrong password is told at once and tried once."""
    bmc.extra = chassis_of()
    bmc.answers.clear()
    watch = Watch(redfish(bmc, tls, tmp_path, answer_s=0.3, connect_s=0.3))
    began_s = time.monotonic()
    assert [await watch.told() for _ in range(2)] == [{}, {}]
    dead = await watch.told()
    assert (dead["bmc.unreachable"]["active"], dead["bmc.unreachable"]["refused"]) == (True, False)
    assert time.monotonic() - began_s < 20.0
    bmc.answers.set()
    assert not (await watch.told())["bmc.unreachable"]["active"]
    wrong = Watch(redfish(bmc, tls, tmp_path, password_file=str(password_file(tmp_path, "wrong"))))
    before = bmc.logins
    assert (await wrong.told())["bmc.unreachable"]["refused"]
    assert await wrong.told() == await wrong.told() == {}
    assert bmc.logins - before == 1, "or the account would be locked"


async def test_a_node_that_is_off_has_no_broken_fans(
    bmc: RedfishFake, tls: tuple[Path, ssl.SSLContext], tmp_path: Path
) -> None:
    """Its supplies and its memory are still what they are."""
    bmc.extra = chassis_of(ill=True)
    bmc.power = "Off"
    told = await Watch(redfish(bmc, tls, tmp_path)).told()
    assert "bmc.fan" not in told
    assert told["bmc.power"]["parts"].startswith("PSU 2")


@pytest.mark.component("sushy-emulator")
async def test_sushy_emulator(tmp_path: Path) -> None:
    """A Redfish service that we did not write: all that it has is read, and all of it is well."""
    with sushy_emulator(tmp_path) as (url, cert):
        table = {
            "type": "redfish",
            "address": url,
            "nodes": "gpu01",
            "system": UUID,
            "user": "admin",
            "password_file": str(password_file(tmp_path)),
            "ca_file": str(cert),
            **QUICK,
        }
        watch = Watch(table)
        assert await watch.told() == {}
        async with watch.poll._bmcs.open("gpu01") as bmc:
            found = await bmc.health(30.0, 0)
        assert {one.kind.value for one in found.parts} >= {"fan", "inlet", "sensor", "system"}
        assert {one.state.value for one in found.parts} <= {"well", "unknown"}


@pytest.fixture(name="host", scope="module")
def _host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    if why := missing():
        pytest.skip(why)
    with ipmi_host(tmp_path_factory.mktemp("ipmi")) as host:
        host.fresh()
        yield host


@pytest.mark.component("ipmi_sim ipmitool")
async def test_ipmi_sensors_and_event_log(host: Host) -> None:
    """A sensor beyond its limit; an entry that comes later is told, those of before are not; then the BMC dies."""
    table = {
        "type": "ipmi",
        "address": f"127.0.0.1:{host.port}",
        "nodes": "gpu01",
        "user": "admin",
        "password_file": str(host.password),
        "cipher_suite": 3,
        "tries": 2,
        **QUICK,
        "connect_s": 2.0,
    }
    watch = Watch(table)
    told = await watch.told()
    assert set(told) == {"bmc.sensor"}
    assert told["bmc.sensor"]["parts"] == "GPU Temp"
    assert await watch.told() == {}
    argv = ["ipmitool", "-I", "lanplus", "-H", "127.0.0.1", "-p", str(host.port), "-U", "admin"]
    argv += ["-f", str(host.password), "-C", "3", "sel", "add"]
    events = host.folder / "events"
    # Memory (0x0c), uncorrectable ECC (sensor-specific, offset 1), by the format of `ipmitool sel add`.
    events.write_text("0x04 0x0c 0x05 0x6f 0x01 0xff 0xff # uncorrectable\n")
    subprocess.run([*argv, str(events)], check=True, capture_output=True, timeout=60)
    told = await watch.told()
    assert set(told) == {"bmc.entry"}
    assert (told["bmc.entry"]["about"], told["bmc.entry"]["uncorrected"]) == ("memory", True)
    assert await watch.told() == {}
    host.stop()
    assert [await watch.told() for _ in range(2)] == [{}, {}]
    assert (await watch.told())["bmc.unreachable"]["active"]


@pytest.mark.component("nats-server")
async def test_from_the_bmc_to_the_incident_and_its_end(
    bmc: RedfishFake, tls: tuple[Path, ssl.SSLContext], tmp_path: Path
) -> None:
    """A whole brain over real NATS: a lost supply and a leak are incidents of that node, over when the parts are well, and over
    too when a brain that has restarted finds them well.
    """
    bmc.extra = chassis_of(newer=True)
    poll = {"every_s": 1.0}
    table = redfish(bmc, tls, tmp_path)
    async with lab(tmp_path, bmc={"racks": table}, bmc_poll=poll, settings={"hold_off_s": 0}) as whole:
        node = await whole.node("gpu01")
        await node.event("agent.started", version="1", kernel="6.1.0", gpus=8)
        bmc.extra = chassis_of(newer=True, ill=True)

        def open_now(found: Any) -> set[str]:
            assert {one["node"] for one in found["incidents"]} <= {"gpu01"}
            return {one["cause"] for one in found["incidents"] if one["state"] not in ("closed", "explained")}

        await whole.until(lambda found: "bmc-leak" in open_now(found), "the leak", "/api/v1/incidents?all=1")
        await whole.stop()
        bmc.extra = chassis_of(newer=True)
        await whole.start()
        await whole.until(
            lambda found: "bmc-leak" not in open_now(found), "its end", "/api/v1/incidents?all=1", 120
        )
    assert bmc.asked == [], "nothing was switched"
