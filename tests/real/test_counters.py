"""Counters of a node: a real Prometheus is asked, with a real node_exporter and a page as dcgm-exporter writes it."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from agent.contract.errors import ConfigError
from brain import config
from brain.console.counters.panels import PANELS
from brain.console.counters.prometheus import Prometheus
from brain.outgoing import DIRECT
from tests import people
from tests.real.brain_kit import Lab, lab
from tests.real.exporter_kit import exporter
from tests.real.nats import free_port

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.component("prometheus")]
DCGM = Path(__file__).parents[1] / "fixtures/dcgm_exporter.txt"
GPUS = {
    "gpu/0000:1b:00": "GPU-5c1b2f7e-0a33-4c68-9f1d-2b7a60a4e911",
    "gpu/0000:3b:00": "GPU-8d0c3a90-4b17-4e55-8a8e-6f2b1f1f0c02",
}
TOKEN = "t0ken"
COUNTERS = "/api/v1/nodes/n1/counters?hours=1"


@contextmanager
def site(folder: Path, dcgm: int) -> Iterator[str]:
    """node_exporter, and a Prometheus that scrapes both every second under the node's name; its URL."""
    programs = {name: shutil.which(name) or "" for name in ("prometheus", "prometheus-node-exporter")}
    if not all(programs.values()):
        pytest.skip("needs prometheus and prometheus-node-exporter: deploy/dev/components.sh installs them")
    exporter, port = free_port(), free_port()
    targets = [
        {"targets": [f"127.0.0.1:{one}"], "labels": {"instance": "n1.example.org:9100"}}
        for one in (exporter, dcgm)
    ]
    jobs = [
        {"job_name": name, "static_configs": [one]}
        for name, one in zip(("node", "dcgm"), targets, strict=True)
    ]
    (folder / "prometheus.yml").write_text(
        yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs})
    )
    argvs = [
        [programs["prometheus-node-exporter"], f"--web.listen-address=127.0.0.1:{exporter}"],
        [programs["prometheus"], f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
         f"--web.listen-address=127.0.0.1:{port}"],
    ]  # fmt: skip
    with (folder / "site.log").open("wb") as sink:
        started = [subprocess.Popen(argv, stdout=sink, stderr=sink) for argv in argvs]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        for process in started:
            process.kill()
            process.wait(60)


def console(**prometheus: Any) -> dict[str, Any]:
    """`[console]` with it."""
    return {"port": 0, "prometheus": prometheus} | people.ANN


async def told(whole: Lab, path: str, *names: str) -> dict[str, Any]:
    """The panels, when these are there; asked again as long as Prometheus has scraped nothing."""
    found = await whole.until(
        lambda found: set(names) <= {one["name"] for one in found["panels"]},
        f"{names} are plotted",
        path,
        within_s=120,
    )
    return {one["name"]: one for one in found["panels"]}


async def test_a_nodes_counters_are_those_of_its_exporters(tmp_path: Path) -> None:
    """Each GPU by our name for it, nothing of another node whose name begins alike; of one GPU its own alone."""
    async with exporter(DCGM.read_text) as dcgm:
        with site(tmp_path, dcgm) as url:
            async with lab(tmp_path / "brain", console=console(url=url)) as whole:
                node = await whole.node("n1")
                for component, uuid in GPUS.items():
                    await node.event(
                        "node.inventory.gpu", component, uuid=uuid, serial=uuid[-4:], model="H100"
                    )
                await whole.until(
                    lambda found: len(found.get("cards", ())) == 2, "its cards", "/api/v1/nodes/n1"
                )
                panels = await told(
                    whole,
                    COUNTERS,
                    "gpu-temperature",
                    "gpu-power",
                    "gpu-memory",
                    "gpu-xid",
                    "node-load",
                    "node-memory",
                )
                temperature = {
                    line["label"]: max(filter(None, line["values"]))
                    for line in panels["gpu-temperature"]["lines"]
                }
                assert temperature == {"gpu/0000:1b:00": 41.0, "gpu/0000:3b:00": 78.0}
                assert panels["gpu-temperature"]["unit"] == "°C"
                assert max(filter(None, panels["gpu-memory"]["lines"][0]["values"])) == 2.0
                assert max(filter(None, panels["gpu-xid"]["lines"][0]["values"])) == 79.0
                assert [line["label"] for line in panels["node-load"]["lines"]] == [""]
                memory = max(filter(None, panels["node-memory"]["lines"][0]["values"]))
                assert 0 < memory < 100_000
                whole_answer = await whole.get(COUNTERS)
                steps = round(3600 / whole_answer["step_s"]) + 1
                assert {len(line["values"]) for one in panels.values() for line in one["lines"]} == {steps}
                one = await told(whole, f"{COUNTERS}&component=gpu/0000:3b:00", "gpu-temperature")
                assert {line["label"] for panel in one.values() for line in panel["lines"]} == {
                    "gpu/0000:3b:00"
                }
                other = await whole.get("/api/v1/nodes/n2/counters")
                assert (other["panels"], other["failed"], other["configured"]) == ([], [], True)
                assert (await whole.get("/api/v1/nodes/n1%22%7D/counters"))["status"] == 404


async def test_a_prometheus_that_does_not_answer_takes_nothing_else_away(tmp_path: Path) -> None:
    """The page says so, once; and without one it says who must do what."""
    async with lab(tmp_path, console=console(url=f"http://127.0.0.1:{free_port()}")) as whole:
        found = await whole.get(COUNTERS)
        assert (found["configured"], found["panels"], len(found["failed"])) == (True, [], 1)
        assert "Prometheus" in found["failed"][0]
    async with lab(tmp_path) as whole:
        found = await whole.get(COUNTERS)
        assert (found["configured"], found["panels"], found["failed"]) == (False, [], [])


async def test_what_another_server_answers(tmp_path: Path) -> None:
    """A token is shown, and asked once for many who look; errors, nonsense and silence are told, and no line is made of them."""
    asked: list[tuple[str | None, str]] = []
    answers: list[tuple[int, str]] = []

    async def query(request: web.Request) -> web.Response:
        form = await request.post()
        asked.append((request.headers.get("Authorization"), str(form["query"])))
        status, text = answers[0]
        return web.Response(status=status, text=text, content_type="application/json")

    app = web.Application()
    app.router.add_post("/prom/api/v1/query_range", query)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    (tmp_path / "token").write_text(TOKEN)
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/prom/"
    given = console(url=url, token_file=str(tmp_path / "token"), gpu_node_label="node")
    try:
        async with lab(tmp_path / "brain", console=given) as whole:
            for number, (answer, says) in enumerate(
                {
                    (401, '{"status": "error", "error": "no"}'): "Prometheus answered 401: no",
                    (200, "<html>"): "Prometheus answered 200, and nothing that can be read",
                    (
                        200,
                        '{"status": "success", "data": {"result": [{"metric": {}, "values": [[1]]}]}}',
                    ): "nothing that can be read",
                    (200, "[]"): "nothing that can be read",
                }.items()
            ):
                answers[:] = [answer]
                found = await whole.get(f"/api/v1/nodes/n1/counters?hours={number + 1}")
                assert found["panels"] == []
                assert len(found["failed"]) == 1
                assert says in found["failed"][0]
            answers[:] = [
                (200, '{"status": "success", "data": {"result": [{"metric": {}, "values": [[1, "NaN"]]}]}}')
            ]
            asked.clear()
            for _ in range(3):
                found = await whole.get("/api/v1/nodes/n1/counters?hours=9")
                assert (found["panels"], found["failed"]) == ([], [])
            assert len(asked) <= 2 * len(PANELS), "kept for some seconds"
            assert {shown for shown, _ in asked} == {f"Bearer {TOKEN}"}
            assert any('{node=~"n1([.:].*)?"}' in one for _, one in asked)
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    "given",
    [{"url": "prometheus:9090"}, {"url": "http://p/?x=1"}, {"url": "http://p", "node_label": "a-b"}, {}],
)
def test_what_is_refused(given: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"console\.prometheus"):
        config.parse({"console": {"prometheus": given}}, "brain.toml", tmp_path)


def test_its_files_are_read_at_the_start(tmp_path: Path) -> None:
    for key in ("token_file", "ca_file"):
        found = config.parse(
            {"console": {"prometheus": {"url": "https://p", key: "gone"}}}, "brain.toml", tmp_path
        ).console
        assert found.prometheus is not None
        with pytest.raises(ConfigError, match=rf"console\.prometheus\.{key}"):
            Prometheus(found.prometheus, DIRECT)


def test_a_name_is_matched_whole() -> None:
    """Each panel's query has the matcher, and the step; `n11` is another node (above)."""
    for panel in PANELS:
        query = panel.query('instance=~"n1([.:].*)?"', 720.0)
        assert query.count('n1([.:].*)?"') == 1
        assert "[720s]" in query
