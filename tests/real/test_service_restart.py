"""service.restart against a real systemd."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.actions.service import ServiceRestart
from agent.contract.errors import ActionError, Refused, Unreachable
from tests.real import nspawn

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.skipif(bool(nspawn.missing()), reason=nspawn.missing() or "-"),
]

FAILS = "[Service]\nType=exec\nExecStart=/bin/false-that-is-not-there\n"
SOON = "[Service]\nType=exec\nExecStart=/bin/sh -c 'sleep 0.5; exit 3'\n"
LOOPS = SOON + "Restart=always\nRestartSec=0.1\nStartLimitIntervalSec=0\n"
UNITS = {"good.service": nspawn.SLEEPER, "fails.service": FAILS, "soon.service": SOON, "loops.service": LOOPS}


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nspawn.Machine]:
    """One container for all tests here."""
    with nspawn.machine(tmp_path_factory.mktemp("box"), UNITS) as machine:
        yield machine


def pid(box: nspawn.Machine, unit: str) -> str:
    """Its main process."""
    return box.run("systemctl", "show", "-P", "MainPID", unit).stdout.strip()


async def test_a_service_is_restarted(box: nspawn.Machine) -> None:
    """A listed unit has a new main process afterwards; the plan says what it is now and changes nothing."""
    action = ServiceRestart(box.bus_address, ("good.service",))
    before = pid(box, "good.service")
    plan = await action.plan({"unit": "good.service", "stay_s": 1})
    assert plan == ["restart good.service (now active (running))", "wait until it has been active for 1 s"]
    assert pid(box, "good.service") == before
    done = await action.run({"unit": "good.service", "stay_s": 0.2})
    assert done.text == "good.service restarted, active for 0.2 s"
    assert pid(box, "good.service") not in (before, "0")


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        ("fails.service", "ended with 'failed'"),
        ("soon.service", "did not stay active: it is failed"),
        ("loops.service", "did not stay active"),
    ],
)
async def test_a_service_that_does_not_come_back(box: nspawn.Machine, unit: str, says: str) -> None:
    """A unit that cannot start, ends soon, or is started again and again is a failure that says how."""
    with pytest.raises(ActionError, match=says):
        await ServiceRestart(box.bus_address, tuple(UNITS)).run({"unit": unit, "stay_s": 2})


async def test_what_is_refused(box: nspawn.Machine) -> None:
    """A unit that is not listed is not even asked about; a listed one that does not exist is refused too."""
    action = ServiceRestart(box.bus_address, ("nope.service",))
    with pytest.raises(Refused, match="not among this node's `services`"):
        await action.run({"unit": "good.service"})
    with pytest.raises(Refused, match=r"nope\.service"):
        await action.run({"unit": "nope.service"})
    with pytest.raises(Refused, match=r"nope\.service"):
        await action.plan({"unit": "nope.service"})
    with pytest.raises(Refused, match="stay_s"):
        await action.run({"unit": "nope.service", "stay_s": 1e9})


async def test_no_bus(tmp_path: Path) -> None:
    """Without D-Bus nothing was done, and it may be tried again."""
    for address in (f"unix:path={tmp_path}/nobody", "nonsense"):
        with pytest.raises(Unreachable):
            await ServiceRestart(address, ("good.service",)).run({"unit": "good.service"})
