"""The BMC actions against a Redfish service that we did not write, over TLS with a password."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import Refused
from tests.real.bmc_kit import QUICK, Slurm, built, order, password_file, perform
from tests.real.sushy_emulator import UUID, sushy_emulator

pytestmark = pytest.mark.component("sushy-emulator")


@pytest.fixture(name="table", scope="module")
def _table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("sushy")
    with sushy_emulator(folder) as (url, cert):
        yield {
            "type": "redfish",
            "address": url,
            "nodes": "gpu01",
            "system": UUID,
            "user": "admin",
            "password_file": str(password_file(folder)),
            "ca_file": str(cert),
            **QUICK,
        }


async def test_a_power_cycle_and_isolation(table: dict[str, Any]) -> None:
    """The emulator has no PowerCycle and changes state late: off, seen off, on, seen on; then fenced."""
    actions = built({"racks": table | {"system": UUID[:-1] + "2"}}, Slurm())  # the other test's node stays on
    done = await perform(actions["bmc.power_cycle"])
    assert "seen off and is on" in done.text
    done = await perform(actions["node.isolate"], timeout_s=300.0, shutdown_s=60.0)
    assert "its operating system shut down: gpu01 is off" in done.text
    assert "gpu01 is off" in (await actions["bmc.evidence"].plan(order()))[0]


async def test_evidence_and_refusals(table: dict[str, Any], tmp_path: Path) -> None:
    """What it has of sensors; "not implemented", a wrong password and two systems are refusals."""
    actions = built({"racks": table})
    done = await perform(actions["bmc.evidence"])
    assert done.data["Manufacturer"] == "Sushy Emulator"
    assert done.data["sensor CPU Temp"] == "41 °C"
    with pytest.raises(Refused, match="501"):
        await perform(actions["bmc.nmi"])
    with pytest.raises(Refused, match="2 systems"):
        await perform(built({"racks": table | {"system": ""}})["bmc.power_off"])
    wrong = table | {"password_file": str(password_file(tmp_path, "wrong"))}
    with pytest.raises(Refused, match="password"):
        await perform(built({"racks": wrong})["bmc.power_off"])
