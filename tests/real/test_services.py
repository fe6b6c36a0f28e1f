"""service.restart, service.start and service.stop against a real systemd."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.actions.service import ServiceRestart, ServiceStart, ServiceStop
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
STUBBORN = "[Service]\nType=exec\nExecStart=/bin/sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'\nTimeoutStopSec=0.3\n"
UNITS = {
    "stubborn.service": STUBBORN,
    "good.service": nspawn.SLEEPER,
    "fails.service": FAILS,
    "soon.service": SOON,
    "loops.service": LOOPS,
}


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


async def test_a_service_is_stopped_and_started(box: nspawn.Machine) -> None:
    """Stopped: no process any more. Started: it runs; started again: the same process, left alone. Plans say so first."""
    stop = ServiceStop(box.bus_address, ("good.service",))
    start = ServiceStart(box.bus_address, ("good.service",))
    params = {"unit": "good.service"}
    assert await stop.plan(params) == ["stop good.service (now active (running))"]
    done = await stop.run(params)
    assert done.text == "good.service stopped: it is inactive (dead) (was active (running))"
    assert pid(box, "good.service") == "0"
    assert (await stop.run(params)).text.endswith("(was inactive (dead))"), "stopped is stopped"
    assert (await start.plan(params))[0] == "start good.service (now inactive (dead))"
    done = await start.run({"unit": "good.service", "stay_s": 0.1})
    assert done.text == "good.service started (was inactive (dead)), active for 0.1 s"
    before = pid(box, "good.service")
    assert (await start.plan(params))[0] == "leave good.service (now active (running))"
    assert (await start.run({"unit": "good.service", "stay_s": 0})).text.startswith(
        "good.service was active already"
    )
    assert pid(box, "good.service") == before != "0"


async def test_a_service_that_does_not_want_to_stop(box: nspawn.Machine) -> None:
    """systemd kills it in the end: it does not run, and the result says how that was."""
    action = ServiceStop(box.bus_address, ("stubborn.service",))
    await ServiceStart(box.bus_address, ("stubborn.service",)).run({"unit": "stubborn.service", "stay_s": 0})
    assert "failed (failed, timeout)" in (await action.run({"unit": "stubborn.service"})).text
    assert pid(box, "stubborn.service") == "0"


async def test_starting_what_cannot_start(box: nspawn.Machine) -> None:
    """As for a restart; and only listed units may be touched."""
    with pytest.raises(ActionError, match=r"starting fails\.service ended with 'failed'"):
        await ServiceStart(box.bus_address, ("fails.service",)).run({"unit": "fails.service"})
    for action in (ServiceStart(box.bus_address, ()), ServiceStop(box.bus_address, ())):
        with pytest.raises(Refused, match="not among this node's `services`"):
            await action.run({"unit": "good.service"})


async def test_a_cancelled_restart_leaves_the_service_running(box: nspawn.Machine) -> None:
    """Cancelled while systemd still stops it: systemd's job goes on, and the service is there again."""
    params: dict[str, str | float] = {"unit": "stubborn.service", "stay_s": 0}
    await ServiceStart(box.bus_address, ("stubborn.service",)).run(params)
    before = pid(box, "stubborn.service")
    task = asyncio.create_task(ServiceRestart(box.bus_address, ("stubborn.service",)).run(params))
    await until(lambda: state(box, "stubborn.service") == "deactivating")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: state(box, "stubborn.service") == "active")
    assert pid(box, "stubborn.service") not in (before, "0")


def state(box: nspawn.Machine, unit: str) -> str:
    """active, deactivating, ..."""
    return box.run("systemctl", "show", "-P", "ActiveState", unit).stdout.strip()


async def until(true: Callable[[], bool]) -> None:
    """Waits for a condition, with a bound."""
    deadline = time.monotonic() + 60
    while not await asyncio.to_thread(true):
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)
