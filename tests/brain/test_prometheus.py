"""What is made of a Prometheus's answers, whatever it answers; and which way it is asked."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import orjson
import pytest
from aiohttp import web

from agent.contract.errors import Unreachable
from brain.console.counters import prometheus
from brain.console.counters.energy import EnergyMeter
from brain.console.counters.prometheus import PlottedLine, Prometheus
from brain.console_config import PrometheusConfig
from brain.outgoing import DIRECT, Outgoing

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
SERIES, STEPS, PIECE = 400, 120, 100_000


@asynccontextmanager
async def answering(handler: Handler) -> AsyncIterator[str]:
    """A server that answers every question so; its URL."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def lines(url: str, way: Outgoing = DIRECT) -> list[PlottedLine]:
    """What two hours of a query give."""
    asked = Prometheus(PrometheusConfig(url=url, timeout_s=60.0), way)
    async with aiohttp.ClientSession() as session:
        return await asked.lines(session, "up", 0, 60.0 * STEPS, 60.0)


def matrix() -> bytes:
    """Many tenants, or a node with many ports: more than a megabyte."""
    values = [[60.0 * step, f"{step}.123456789"] for step in range(STEPS)]
    found = [{"metric": {"namespace": f"tenant-{n}"}, "values": values} for n in range(SERIES)]
    return orjson.dumps({"status": "success", "data": {"resultType": "matrix", "result": found}})


async def test_a_large_answer_comes_in_pieces() -> None:
    """All of them are read: the network decides where they end."""
    whole = matrix()

    async def in_pieces(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for at in range(0, len(whole), PIECE):
            await answer.write(whole[at : at + PIECE])
        return answer

    async with answering(in_pieces) as url:
        found = await lines(url)
    assert len(found) == SERIES
    assert {len(one.values) for one in found} == {STEPS}


async def test_an_answer_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read up to its limit, and told as what it is."""
    monkeypatch.setattr(prometheus, "_MOST_BYTES", 1024**2)

    async def too_much(_: web.Request) -> web.StreamResponse:
        return web.Response(body=matrix())

    async with answering(too_much) as url:
        with pytest.raises(Unreachable, match="more than 1 MiB"):
            await lines(url)


@pytest.mark.parametrize("at", ['"inf"', '"-inf"', '"nan"', "null", '"x"', "1e400"])
async def test_a_time_that_is_none(at: str) -> None:
    """Is nothing that can be read, and no bug of ours."""

    async def odd(_: web.Request) -> web.StreamResponse:
        values = f'[[{at}, "1"]]'
        return web.Response(
            text='{"status": "success", "data": {"result": [{"metric": {}, "values": ' + values + "}]}}"
        )

    async with answering(odd) as url:
        with pytest.raises(Unreachable, match="nothing that can be read"):
            await lines(url)


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, "<html>Unauthorized", "Prometheus answered 401: console.prometheus.token_file"),
        (
            403,
            '{"status": "error", "error": "no"}',
            "Prometheus answered 403: no: console.prometheus.token_file",
        ),
        (302, "", "Prometheus answered 302: it leads elsewhere: console.prometheus.url"),
        (422, '{"status": "error", "error": "bad \\u001b[31m\\u202eword"}', r"422: bad \x1b[31m\u202eword"),
        (502, "<html>Bad Gateway", "Prometheus answered 502, and nothing that can be read"),
    ],
)
async def test_who_must_do_what_is_said(status: int, body: str, says: str) -> None:
    """A token that is not taken, a login page before it: the key that is wrong. What it writes does nothing where it is shown."""

    async def no(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body, headers={"Location": "/login"})

    async with answering(no) as url:
        with pytest.raises(Unreachable, match=re.escape(says)):
            await lines(url)


async def test_energy_is_asked_by_the_way_out() -> None:
    """Where only the proxy reaches Prometheus, reports have their energy as pages have their plots."""
    asked: list[str] = []

    async def proxy(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers["Host"])
        return web.Response(body=b'{"status": "success", "data": {"result": []}}')

    async with answering(proxy) as url:
        way = Outgoing(proxy=url)
        found = await EnergyMeter(PrometheusConfig(url="http://prometheus.invalid"), way).measured(0, 3600, 8)
    assert (found.configured, found.failed) == (True, [])
    assert set(asked) == {"prometheus.invalid"}
