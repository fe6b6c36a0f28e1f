"""Debian's Alertmanager: alerts open, stay while they are refreshed, follow their severity, survive its restart, end."""

import asyncio
import contextlib
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import Refused, Unreachable
from brain.core.pack.spec import Pack, Priority
from brain.core.state import Incident, Run, RunState, State
from brain.notify.alertmanager import build as build_channel
from brain.notify.compose import compose
from brain.notify.notifier import Notifier, build
from tests.brain.notify.pages import LINE, incident, page, rule, run
from tests.real.brain_kit import lab
from tests.real.nats import free_port
from tests.real.test_brain import gpu_lost

pytestmark = [
    pytest.mark.component("alertmanager"),
    pytest.mark.skipif(
        not shutil.which("prometheus-alertmanager"), reason="needs apt: prometheus-alertmanager"
    ),
]
HOLD_S = 4.0
CONFIG = "global: {resolve_timeout: 1s}\nroute: {receiver: nobody}\nreceivers: [{name: nobody}]\n"


class Server:
    """One Alertmanager on a free loopback port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{free_port()}"
        (folder / "am.yml").write_text(CONFIG)

    def start(self) -> None:
        """Until it is ready."""
        self._process = subprocess.Popen(
            [
                "prometheus-alertmanager",
                f"--config.file={self._folder}/am.yml",
                f"--storage.path={self._folder}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
                "--cluster.listen-address=",  # or it opens a port on every address
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while not self._ready():
            assert self._process.poll() is None, "Alertmanager died"
            assert time.monotonic() < deadline, "Alertmanager is not ready"
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _ready(self) -> bool:
        with contextlib.suppress(OSError, urllib.error.URLError):
            return bool(urllib.request.urlopen(f"{self.url}/-/ready", timeout=10).status == 200)  # noqa: S310 - loopback
        return False

    def active(self) -> list[dict[str, Any]]:
        """What its people see: amtool reads the API."""
        tool = ["amtool", f"--alertmanager.url={self.url}", "alert", "query", "--output=json"]
        said = subprocess.run(tool, capture_output=True, check=True, timeout=60)
        return list(json.loads(said.stdout or b"[]"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests of this file."""
    it = Server(tmp_path_factory.mktemp("alertmanager"))
    it.start()
    yield it
    it.kill()


def site(server: Server, folder: Path, **more: Any) -> Notifier:
    """The notifier as an operator configures it: two instances, one of them away."""
    away = f"http://127.0.0.1:{free_port()}"
    table = {
        "type": "alertmanager",
        "urls": [away, server.url],
        "refresh_s": 0.3,
        "hold_s": HOLD_S,
        "language": "en",
    }
    return build({"am": table | more}, {}, folder)


def engine_state(about: Incident, runs: list[Run]) -> State:
    """What the engine remembers of an incident whose alert this channel took."""
    about.pages.by["oncall"] = ["am"]
    about.runs = [one.id for one in runs]
    pack = Pack(version="p", symptoms=(), rules=(rule(),), runbooks=())
    return State(incidents={about.id: about}, runs={one.id: one for one in runs}, pack=pack)


async def until(
    what: Callable[[], bool], within_s: float = 60.0, meanwhile: Callable[[], Any] | None = None
) -> None:
    """Waits for a condition; `meanwhile` is awaited between looks."""
    deadline = time.monotonic() + within_s
    while not await asyncio.to_thread(what):
        assert time.monotonic() < deadline, "it did not come about"
        if meanwhile is not None:
            await meanwhile()
        await asyncio.sleep(0.1)


async def test_an_alert_lives_as_long_as_its_incident(server: Server, tmp_path: Path) -> None:
    """Longer than its own end and Alertmanager's memory while it is refreshed, and not a moment after the resolution."""
    notifier = site(server, tmp_path)
    about = incident()
    state = engine_state(about, [run(RunState.APPROVAL, why="disrupts the node")])

    async def refresh() -> None:
        assert await notifier.refresh(lambda: state, time.monotonic()) == []

    opened = page(about=about, text="needs an approval")
    assert (await notifier.send(compose(opened, rule=rule(), runs=list(state.runs.values()))))[:3] == (
        True,
        "am",
        "",
    )
    (alert,) = server.active()
    assert alert["labels"] == {
        "alertname": "gpu_lost", "incident": "inc-1", "severity": "P1", "group": "oncall", "node": "n1",
    }  # fmt: skip
    assert alert["startsAt"].startswith("2023-11-14T22:13:15")
    assert LINE in alert["annotations"]["description"]
    assert "gpuward approve inc-1.r1" in alert["annotations"]["type"]

    began = time.monotonic()
    await until(lambda: time.monotonic() - began > HOLD_S + 1.5, meanwhile=refresh)
    assert [one["labels"]["severity"] for one in server.active()] == ["P1"], "it is kept beyond its own end"

    about.severity, about.pages.severities = Priority.P0, [Priority.P1]
    about.pages.acked_by = "ann"
    await notifier.send(
        compose(page("update", about=about, text="raised from P1 to P0"), rule=rule()), ["am"]
    )
    (alert,) = server.active()
    assert (alert["labels"]["severity"], alert["annotations"]["acknowledged_by"]) == ("P0", "ann")

    server.kill()
    server.start()
    assert server.active() == [], "Alertmanager remembers no alert over its restart"
    await until(lambda: len(server.active()) == 1, meanwhile=refresh)

    about.pages.resolved = True
    assert (await notifier.send(compose(page("resolve", about=about), rule=rule()), ["am"]))[0]
    assert server.active() == []
    await asyncio.sleep(0.4)
    await refresh()
    assert server.active() == [], "a refresh does not bring back what is over"
    await notifier.close()


async def test_without_gpuward_an_alert_ends_by_itself(server: Server, tmp_path: Path) -> None:
    """A brain that died for good leaves no alert that nobody can close."""
    notifier = site(server, tmp_path)
    await notifier.send(compose(page()))
    assert len(server.active()) == 1
    await until(lambda: server.active() == [], within_s=HOLD_S + 60)
    await notifier.close()


async def test_a_refusal_and_an_absence_are_told_apart(server: Server, tmp_path: Path) -> None:
    """A label that Alertmanager does not take is an error of ours, for ever; a dead cluster is not."""
    odd = build_channel("am", {"urls": [server.url], "labels": {"no label": "x"}}, "channels.am")
    with pytest.raises(Refused, match="400"):
        await odd.send(compose(page()))
    await odd.close()
    gone = build_channel("am", {"urls": [f"http://127.0.0.1:{free_port()}"]}, "channels.am")
    with pytest.raises(Unreachable):
        await gone.send(compose(page()))
    await gone.close()


async def test_a_whole_brain_keeps_its_alerts_over_its_own_and_alertmanagers_restart(
    server: Server, tmp_path: Path
) -> None:
    """What was told is on the log: the brain that comes after knows what to refresh, to acknowledge and to end."""
    table = {"type": "alertmanager", "urls": [server.url], "refresh_s": 0.3, "hold_s": 60.0}
    async with lab(tmp_path, channels={"am": table}, groups={"oncall": ["am"]}) as whole:
        node = await whole.node("n1")
        found = await gpu_lost(whole, node)
        await until(lambda: len(server.active()) == 1)
        await whole.stop()
        server.kill()
        server.start()
        assert server.active() == []
        await whole.start()
        await until(lambda: [one["labels"]["incident"] for one in server.active()] == [found["id"]])
        await whole.say("ack", id=found["id"])
        await until(lambda: bool(server.active()[0]["annotations"].get("acknowledged_by")))
        await whole.say("close", id=found["id"])
        await until(lambda: server.active() == [])
