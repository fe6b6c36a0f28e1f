"""Traces of a real brain to a real collector, and to one that is not there: then nothing else suffers."""

import re
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from brain.cli.checkup import counterparts
from brain.cli.checkup.lines import Health
from brain.traces.ids import trace_id
from tests import people
from tests.brain.traces.kit import look_over
from tests.real.brain_kit import Lab, Node, lab
from tests.real.collector_kit import rotel, rotel_program, sink
from tests.real.nats import free_port
from tests.real.test_doctor import of, site

pytestmark = pytest.mark.component("nats-server")
LINE = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
PAGED_WITHIN_S = 10.0  # on a loaded machine


async def gpu_lost(whole: Lab, node: Node) -> dict[str, Any]:
    """An incident of which people are told."""
    await node.event("gpu.xid", "gpu/0000:3b:00", LINE, code=79, name="x", action="RESTART_BM", message="x")
    found = await whole.until(
        lambda answer: [
            one for one in answer["incidents"] if one["pages"]["sent"] and not one["pages"]["undelivered"]
        ],
        "a page",
        "/api/v1/incidents",
    )
    (incident,) = found["incidents"]
    return dict(incident)


async def metrics(whole: Lab) -> dict[str, float]:
    """Those of traces."""
    assert whole.running is not None
    async with (
        aiohttp.ClientSession(whole.running.console_url, headers=people.bearer(whole.ann)) as session,
        session.get("/metrics") as answer,
    ):
        text = await answer.text()
    found = re.findall(r'(?m)^(gpuward_trace_\w+)\{output="otlp_url"\} (\S+)$', text)
    return {name: float(value) for name, value in found}


async def complete(whole: Lab, collector: Any, trace: str) -> None:
    """Until the collector has the whole trace, which fits together."""
    await whole.until(lambda _: any(not span.parent for span in collector.of(trace)), "the trace is complete")
    look_over(collector.of(trace))


@pytest.mark.skipif(rotel_program() is None, reason="no collector is packaged for this Python")
async def test_a_real_collector_takes_it_and_passes_it_on(tmp_path: Path) -> None:
    """What it understood comes out of it in protobuf, as we meant it."""
    with sink() as collector, rotel(tmp_path, collector.url) as url:
        async with lab(tmp_path, traces={"otlp_url": url}) as whole:
            incident = await gpu_lost(whole, await whole.node("n1"))
            status, _ = await whole.say("close", id=incident["id"], why="replaced")
            assert status == 200
            await complete(whole, collector, trace_id(incident["id"]))
            found = await metrics(whole)
        assert found["gpuward_trace_spans_total"] == len(collector.spans)
        assert found["gpuward_trace_incidents_waiting"] == 0


async def test_nothing_suffers_while_the_collector_is_away(tmp_path: Path) -> None:
    """People are told as fast as ever, operators are answered, the brain stops at once; and the collector gets it all later."""
    port = free_port()
    async with lab(tmp_path, traces={"otlp_url": f"http://127.0.0.1:{port}/v1/traces"}) as whole:
        node = await whole.node("n1")
        began = time.monotonic()
        incident = await gpu_lost(whole, node)
        took = time.monotonic() - began
        print(f"paged after {took:.2f} s")
        assert took < PAGED_WITHIN_S
        waiting = await metrics(whole)
        assert (waiting["gpuward_trace_spans_total"], waiting["gpuward_trace_incidents_waiting"]) == (0, 1)
        status, _ = await whole.say("close", id=incident["id"], why="replaced")
        assert status == 200
        with sink(port) as collector:
            await complete(whole, collector, trace_id(incident["id"]))
        began = time.monotonic()
    assert time.monotonic() - began < PAGED_WITHIN_S


async def test_the_doctor_looks_at_the_collector_and_the_file(tmp_path: Path) -> None:
    """Each has its line; nothing is sent or written."""
    file = tmp_path / "traces.jsonl"
    with sink() as collector:
        keys = {"otlp_url": f"{collector.url}/v1/traces", "file": str(file)}
        found = [line async for line in counterparts.traces(site(tmp_path, traces=keys))]
        assert of("traces otlp_url", found).health is Health.OK
        assert of("traces file", found).health is Health.OK
        assert collector.spans == []
        assert not file.exists()
    found = [line async for line in counterparts.traces(site(tmp_path, traces=keys))]
    away = of("traces otlp_url", found)
    assert away.health is Health.FAIL
    assert "Connect call failed" in away.text
    (line,) = [line async for line in counterparts.traces(site(tmp_path, traces={"file": "/nowhere/x"}))]
    assert (line.health, line.text) == (Health.FAIL, "traces.file: there is no folder /nowhere")
    assert [line async for line in counterparts.traces(site(tmp_path))] == []
