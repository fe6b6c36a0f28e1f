"""Whenever nobody leads, somebody is told within 15 s, once, and told when it is over: real brains on a real broker."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
import pytest
from aiohttp import web
from nats.js.api import StreamConfig

from agent.contract import subjects
from agent.contract.errors import BugError
from brain.core.engine import Engine
from tests.real.brain_kit import Lab, lab
from tests.real.nats import NatsServer, free_port, nats_server

pytestmark = pytest.mark.component("nats-server")
TOLD_WITHIN_S = 15.0
SLACK_S = 15.0  # for a loaded machine: what is measured is printed


@dataclass(slots=True, kw_only=True)
class Outside:
    """What is outside of the cell: people who are paged, and something that misses calls."""

    url: str
    pages: list[dict[str, Any]] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)

    def told(self, cause: str) -> list[str]:
        """What people were told of it, in order."""
        return [page["what"] for page in self.pages if page["cause"] == cause]

    @property
    def config(self) -> dict[str, Any]:
        """For a brain's configuration."""
        return {
            "channels": {"hook": {"type": "webhook", "url": f"{self.url}/page"}},
            "dead_mans_switches": {
                "checks": {"type": "url", "url": f"{self.url}/alive", "every_s": 1},
                "am": {"type": "alertmanager", "urls": [self.url], "every_s": 1, "labels": {"site": "x"}},
            },
            "lease_ttl_s": 2,
        }


@contextlib.asynccontextmanager
async def outside() -> AsyncIterator[Outside]:
    """A receiver of all three."""
    found = Outside(url=f"http://127.0.0.1:{free_port()}")

    async def page(request: web.Request) -> web.Response:
        found.pages.append(await request.json())
        return web.json_response({})

    async def alive(request: web.Request) -> web.Response:
        assert await request.json() == {"gpuward": "default"}
        found.calls.append(time.monotonic())
        return web.Response(text="OK")

    async def alerts(request: web.Request) -> web.Response:
        found.alerts += await request.json()
        return web.json_response({})

    app = web.Application()
    app.add_routes([web.post("/page", page), web.post("/alive", alive), web.post("/api/v2/alerts", alerts)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(found.url.rpartition(":")[2])).start()
    try:
        yield found
    finally:
        await runner.cleanup()


async def until(look: Callable[[], bool], what: str, within_s: float = 60.0) -> float:
    """Waits; returns how long."""
    began = time.monotonic()
    while not look():
        assert time.monotonic() - began < within_s, f"not within {within_s} s: {what}"
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def told(found: Outside, cause: str, what: str = "open") -> float:
    """Until people were told; in time."""
    took = await until(lambda: what in found.told(cause), f"{what} of {cause}", TOLD_WITHIN_S + SLACK_S)
    print(f"{cause} {what} after {took:.1f} s")
    return took


async def test_the_broker_is_gone_and_comes_back(tmp_path: Path) -> None:
    """One page, one resolution; the switch is called before and after, and not in between."""
    with nats_server(tmp_path) as server:
        async with outside() as out, lab(tmp_path, nats={"url": server.url}, **out.config) as whole:
            await until(lambda: bool(out.calls) and bool(out.alerts), "the switches are called")
            assert out.alerts[0]["labels"] == {"site": "x", "alertname": "GpuwardWatchdog", "cell": "default"}
            server.kill()
            assert await told(out, "brain_disconnected") < TOLD_WITHIN_S
            (trouble,) = (await whole.get("/api/v1/status"))["troubles"]
            assert trouble["cause"] == "brain_disconnected"
            quiet = len(out.calls)
            await asyncio.sleep(3)  # longer than the switch's pause
            assert len(out.calls) == quiet
            server.start()
            await told(out, "brain_disconnected", "resolve")
            await whole.until(lambda status: status["leads"] and not status["troubles"], "it leads again")
            await until(lambda: len(out.calls) > quiet, "the switch is called again")
            assert out.told("brain_disconnected") == ["open", "resolve"]
            assert out.told("nobody_leads") == []


async def test_a_calm_cell_is_no_trouble(tmp_path: Path) -> None:
    """A leader in whose cell nothing happens: pulses go round, nobody is told anything, and a standby knows it too."""
    with nats_server(tmp_path) as server:
        async with outside() as out, lab(tmp_path / "a", nats={"url": server.url}, **out.config) as leader:
            before = (await leader.get("/api/v1/status"))["seq"]
            async with standby(tmp_path, server, out) as second:
                await asyncio.sleep(12)  # longer than the time after which people are told
                assert out.pages == []
                assert (await second.get("/api/v1/status"))["troubles"] == []
            after = (await leader.get("/api/v1/status"))["seq"]
            assert 2 <= after - before <= 8, "a pulse every few seconds"


@contextlib.asynccontextmanager
async def standby(folder: Path, server: NatsServer, out: Outside) -> AsyncIterator[Lab]:
    """A second brain on the same log."""
    config = out.config | {"brain": "second", "nats": {"url": server.url}}
    config["signing_key_file"] = str(folder / "a/brain/signing.key")
    whole = Lab(folder / "b", config)
    try:
        await whole.start(leads=False)
        await whole.until(lambda status: status["caught_up"], "the standby has read the log")
        yield whole
    finally:
        await whole.stop()


async def test_the_log_takes_nothing_more(tmp_path: Path) -> None:
    """The lease is held, but nothing comes round: every brain says so, with the reason, and again when it is over."""
    with nats_server(tmp_path) as server:
        async with (
            outside() as out,
            lab(tmp_path / "a", nats={"url": server.url}, **out.config) as leader,
            standby(tmp_path, server, out) as second,
        ):
            client = await nats.connect(server.url)
            name = subjects.stream("default")
            info = await client.jsm().stream_info(name)

            async def sealed(subjects_: list[str]) -> None:
                config: StreamConfig = info.config
                await client.jsm().update_stream(config.evolve(subjects=subjects_))

            await sealed(["elsewhere.>"])
            assert await told(out, "nobody_leads") < TOLD_WITHIN_S
            await until(lambda: out.told("nobody_leads").count("open") == 2, "both say so")
            for whole, reason in ((leader, "holds the lease"), (second, "does not get the lease")):
                (trouble,) = (await whole.get("/api/v1/status"))["troubles"]
                assert reason in trouble["text"], trouble
            await sealed(list(info.config.subjects or ()))
            await until(lambda: out.told("nobody_leads").count("resolve") == 2, "both say that it is over")
            await client.close()


async def test_after_a_broken_invariant_people_hear_that_nobody_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only brain has stopped acting: the switch is not called any more."""
    handle = Engine.handle

    def broken(self: Engine, given: Any, now: float) -> Any:
        if getattr(given, "verb", "") == "hold":
            raise BugError("an incident without a rule")
        return handle(self, given, now)

    async with outside() as out, lab(tmp_path, **out.config) as whole:
        monkeypatch.setattr(Engine, "handle", broken)
        await until(lambda: bool(out.calls), "the switch is called")
        await whole.say("hold", scope="all", why="wait")
        await until(lambda: out.told("brain_bug") == ["open"], "the page of the bug")
        took = await told(out, "nobody_leads")
        assert took < TOLD_WITHIN_S
        (text,) = (
            one["text"]
            for one in (await whole.get("/api/v1/status"))["troubles"]
            if one["cause"] == "nobody_leads"
        )
        assert "an incident without a rule" in text
        quiet = len(out.calls)
        await asyncio.sleep(3)
        assert len(out.calls) == quiet


async def test_a_switch_that_does_not_answer_is_noted_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without its address, which is a secret; and it hinders nothing."""
    port = free_port()
    switch = {"checks": {"type": "url", "url": f"http://127.0.0.1:{port}/secret-word", "every_s": 1}}
    async with lab(tmp_path, dead_mans_switches=switch) as whole:
        await until(lambda: "switch.unreachable" in caplog.text, "it is noted")
        await asyncio.sleep(2.5)  # two more calls
        assert caplog.text.count("switch.unreachable") == 1
        assert f"dead_mans_switches.checks: http://127.0.0.1:{port}" in caplog.text
        assert "secret-word" not in caplog.text
        assert (await whole.get("/api/v1/status"))["leads"]
