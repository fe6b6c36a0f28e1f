"""What monitoring systems see of a brain: parsed by Prometheus' own library, and scraped and asked by a real Prometheus."""

import asyncio
import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from prometheus_client import openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from brain.console.brain_view import BrainView, NodeBeat
from brain.console.metrics import METRICS, OTHERS, VERSIONS
from brain.console_config import Role
from tests import people
from tests.real.brain_kit import Lab, lab
from tests.real.nats import free_port, nats_server

pytestmark = pytest.mark.component("nats-server")
GPU = "gpu/0000:3b:00"
UP_WITHIN_S = 60.0


async def fetch(whole: Lab, path: str, **headers: str) -> tuple[int, str, str]:
    """Status, content type and text of a path, with ann's token."""
    assert whole.running is not None
    async with (
        aiohttp.ClientSession(whole.running.console_url, headers=people.bearer(whole.ann)) as session,
        session.get(path, headers=headers) as answer,
    ):
        return answer.status, answer.headers["Content-Type"], await answer.text()


async def samples(whole: Lab) -> dict[tuple[str, ...], float]:
    """(name, values of its labels in their names' order) -> value."""
    _, _, text = await fetch(whole, "/metrics")
    return {(one.name, *one.labels.values()): one.value for family in parse(text) for one in family.samples}


async def test_a_fault_is_seen(tmp_path: Path) -> None:
    """An incident by severity, cause and state; its run; nodes; inputs; and what people are told."""
    async with lab(tmp_path) as whole:
        node = await whole.node("n1")
        await node.beat()
        before = await samples(whole)
        assert before["gpuward_brain_leads",] == before["gpuward_brain_connected",] == 1
        await node.event("gpu.lost", GPU, reason="lost")
        await whole.until(lambda found: found["incidents"], "the incident", "/api/v1/incidents")
        after = await samples(whole)
        assert (
            sum(
                value
                for labels, value in after.items()
                if labels[:3] == ("gpuward_incidents", "gpu-lost", "P1")
            )
            == 1
        )
        assert after["gpuward_notes_total", "incident.opened"] == 1
        assert after["gpuward_inputs_total",] > before["gpuward_inputs_total",]
        assert after["gpuward_agents", OTHERS] == after["gpuward_nodes", "reachable"] == 1


async def test_both_formats_have_every_metric(tmp_path: Path) -> None:
    """In the order of the table; no label is a node, an incident or a person."""
    async with lab(tmp_path) as whole:
        node = await whole.node("some-node")
        await node.beat()
        await node.event("gpu.lost", GPU, reason="lost")
        await whole.until(lambda found: found["incidents"], "the incident", "/api/v1/incidents")
        for accept, parser in (("", parse), (openmetrics.exposition.CONTENT_TYPE_LATEST, parse_openmetrics)):
            status, kind, text = await fetch(whole, "/metrics", Accept=accept)
            assert (status, "openmetrics" in kind) == (200, bool(accept))
            assert [family.name for family in parser(text)] == [one.name for one in METRICS]
            assert "some-node" not in text
            assert "inc-" not in text
            assert '"ann"' not in text


class Beats:
    """A leader that hears a thousand nodes, of which each makes up a version, and many pairs and three of one version."""

    live = SimpleNamespace(leads=lambda: True)

    def newest_beats(self) -> dict[str, NodeBeat]:
        """One for each node."""
        versions = [f"1.{number}" for number in range(1000)] + ["2.0"] * 3
        versions += [f"3.{number}" for number in range(100)] * 2 + ["\x1b[2J"] * 5 + ["v" * 41] * 5
        return {
            str(number): NodeBeat(age_s=0, version=version, spooled=0, dropped=0)
            for number, version in enumerate(versions)
        }


def test_versions_are_bounded() -> None:
    """The most common ones that several nodes have and that look like one, and all others together."""
    agents = next(metric for metric in METRICS if metric.name == "gpuward_agents")
    found = dict(agents.samples(cast(BrainView, Beats())))
    assert len(found) == VERSIONS + 1
    assert found["2.0",] == 3
    assert found[OTHERS,] == 1213 - 3 - 2 * (VERSIONS - 1)
    assert not [version for (version,) in found if version.startswith(("1.", "\x1b", "v"))]


async def test_health_and_readiness(tmp_path: Path) -> None:
    """Open to everybody; not ready without NATS, with the reason; alive all the same."""
    with nats_server(tmp_path) as server:
        async with lab(tmp_path, nats={"url": server.url}) as whole:
            for _ in range(40):  # no login's limit counts these
                assert await fetch(whole, "/healthz") == (200, "text/plain; charset=utf-8", "ok\n")
            assert (await fetch(whole, "/readyz"))[0] == 200
            server.kill()
            deadline = time.monotonic() + 60
            while (found := await fetch(whole, "/readyz"))[0] == 200:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.1)
            assert (found[0], found[2]) == (503, "NATS is not connected\n")
            assert (await fetch(whole, "/healthz"))[0] == 200
            server.start()


@contextmanager
def prometheus(folder: Path, target: str, token: Path) -> Iterator[str]:
    """Debian's Prometheus that scrapes the target every second; its URL."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("needs prometheus: deploy/dev/components.sh installs it")
    config = folder / "prometheus.yml"
    config.write_text(
        f"global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: gpuward\n  authorization: {{credentials_file: {token}}}\n"
        f"  static_configs: [{{targets: ['{target}']}}]\n"
    )
    port = free_port()
    argv = [program, f"--config.file={config}", f"--storage.tsdb.path={folder}/data"]
    with (folder / "prometheus.log").open("wb") as sink:
        process = subprocess.Popen(
            [*argv, f"--web.listen-address=127.0.0.1:{port}"], stdout=sink, stderr=sink
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(60)


def asked(url: str, query: str) -> list[Any]:
    """What Prometheus answers; nothing while it does not."""
    query = urllib.parse.quote(query)
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?query={query}", timeout=10) as answer:  # noqa: S310  our own child
            return list(json.load(answer)["data"]["result"])
    except OSError:
        return []


@pytest.mark.component("prometheus")
async def test_a_real_prometheus_scrapes_it(tmp_path: Path) -> None:
    """With a viewer's token from a file: every metric that always has a sample is there, where traces are told and
    the log is archived.
    """
    users = people.ANN["users"] | {"prometheus": {"role": "viewer"}}
    console = {"port": 0, "users": users, "open_reading": False}
    archive = {"url": str(tmp_path / "archive")}
    (tmp_path / "archive").mkdir()
    async with lab(tmp_path, console=console, traces={"file": "traces.jsonl"}, archive=archive) as whole:
        assert whole.running is not None
        node = await whole.node("n1")
        await node.beat()
        await node.event("gpu.lost", GPU, reason="lost")
        token = people.token_file(whole.config.data_dir, "prometheus", Role.VIEWER)
        target = whole.running.console_url.removeprefix("http://")
        with prometheus(tmp_path, target, token) as url:
            deadline = time.monotonic() + UP_WITHIN_S
            for awaited in ("gpuward_archive_behind_seconds", "gpuward_incidents"):
                while not (found := await asyncio.to_thread(asked, url, awaited)):
                    assert time.monotonic() < deadline, (tmp_path / "prometheus.log").read_text()[-2000:]
                    await asyncio.sleep(0.2)
            assert found[0]["metric"]["cause"] == "gpu-lost"
            for one in METRICS:
                if one.name in ("gpuward_runs", "gpuward_nats_account_max_bytes"):
                    continue  # only while one is under way; only where the account has a limit
                name = one.name + "_total" * (one.kind == "counter")
                assert await asyncio.to_thread(asked, url, name), name
            (up,) = await asyncio.to_thread(asked, url, "up")
            assert up["value"][1] == "1"
