"""Alert rules and dashboards: the rules' own tests by promtool, and each panel's query asked of a real Prometheus that scrapes
a real `gpuward up`, and a real node_exporter that reads its agent's file.
"""

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.metrics_file import AGENT_METRICS
from brain.console.metrics import METRICS
from docs.panels import BOARDS, Panel
from tests.e2e.up import Up, running
from tests.real.nats import free_port
from tests.real.test_agent_metrics import exporter

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "deploy/prometheus/alerts.yaml"
ALERT_TESTS = ROOT / "deploy/prometheus/alerts.test.yaml"
GRAFANA = ROOT / "deploy/grafana"
DATA_WITHIN_S = 120.0
# What Grafana puts in the place of its variables: everything.
VARIABLES = {"$cell": ".*", "$instance": ".*", "$__rate_interval": "10s"}
# A number that is 0 where there are no samples would show data of a metric that nobody has; and no agent here is cut off.
HARDER = {" or vector(0)": "", " == 0)": " >= 0)"}
METRIC = re.compile(r"\bgpuward_\w+")


def declared() -> set[str]:
    """All metrics that brain and agent have."""
    brain = {one.name + "_total" * (one.kind == "counter") for one in METRICS}
    return brain | {one.name for one in AGENT_METRICS}


def rules() -> list[dict[str, Any]]:
    """Every alert."""
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def panels() -> list[tuple[str, Panel]]:
    """Every panel of every dashboard."""
    return [(name, panel) for name, board in BOARDS.items() for row in board.rows.values() for panel in row]


def shown(name: str) -> list[dict[str, Any]]:
    """The panels in a dashboard's file, without its rows."""
    board = json.loads((GRAFANA / name).read_text())
    return [panel for panel in board["panels"] if panel["type"] != "row"]


@pytest.mark.component("promtool")
def test_the_rules_pass_their_own_tests() -> None:
    """As anybody can run them."""
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("needs promtool: deploy/dev/components.sh installs it with prometheus")
    for argv in (["check", "rules", "--lint-fatal", str(ALERTS)], ["test", "rules", str(ALERT_TESTS)]):
        done = subprocess.run([tool, *argv], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_seen_to_fire_and_to_be_quiet() -> None:
    """And says in full sentences what to do."""
    cases = [
        (case["alertname"], bool(case["exp_alerts"]))
        for test in yaml.safe_load(ALERT_TESTS.read_text())["tests"]
        for case in test["alert_rule_test"]
    ]
    for rule in rules():
        assert (rule["alert"], True) in cases, f"{rule['alert']} is never seen to fire"
        assert (rule["alert"], False) in cases, f"{rule['alert']} is never seen to be quiet"
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert set(rule["annotations"]) == {"summary", "description"}
        assert all(text.endswith(".") for text in rule["annotations"].values())


def test_alerts_and_panels_use_metrics_that_there_are() -> None:
    """A name that nobody has would never fire, and show nothing."""
    used = {rule["alert"]: rule["expr"] for rule in rules()}
    used |= {
        f"{name}: {panel.title}": " ".join(one.expr for one in panel.queries) for name, panel in panels()
    }
    for where, text in used.items():
        assert set(METRIC.findall(text)) <= declared(), where


@pytest.mark.parametrize("name", list(BOARDS))
def test_the_files_show_these_panels(name: str) -> None:
    """What Grafana gets is what docs/panels.py says (`make dashboards`), each with its meaning and a data source to choose."""
    assert {path.name for path in GRAFANA.glob("*.json")} == set(BOARDS)
    board, wanted = BOARDS[name], [panel for where, panel in panels() if where == name]
    found = shown(name)
    assert [one["title"] for one in found] == [panel.title for panel in wanted]
    for one, panel in zip(found, wanted, strict=True):
        assert [target["expr"] for target in one["targets"]] == [query.expr for query in panel.queries]
        assert one["description"] == panel.about
        assert one["datasource"]["uid"] == "${datasource}"
    whole = json.loads((GRAFANA / name).read_text())
    assert whole["uid"] == f"gpuward-{name.removesuffix('.json')}"
    assert [one["name"] for one in whole["templating"]["list"]] == ["datasource", *board.variables]
    places = [(one["gridPos"]["y"], one["gridPos"]["x"]) for one in found]
    assert len(set(places)) == len(places), "no panel lies on another"
    assert all(one["gridPos"]["x"] + one["gridPos"]["w"] <= 24 for one in found)


@contextmanager
def prometheus(folder: Path, targets: dict[str, str]) -> Iterator[str]:
    """Debian's Prometheus with our alert rules, that scrapes each target every second; its URL."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("needs prometheus: deploy/dev/components.sh installs it")
    jobs = [{"job_name": name, "static_configs": [{"targets": [target]}]} for name, target in targets.items()]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": jobs,
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    argv = [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "prometheus.log").open("wb") as sink:
        process = subprocess.Popen([*argv, f"--web.listen-address={address}"], stdout=sink, stderr=sink)
    try:
        yield f"http://{address}"
    finally:
        process.kill()
        process.wait(60)


def asked(url: str, path: str, **values: str) -> Any:
    """What Prometheus answers; nothing while it does not."""
    query = urllib.parse.urlencode(values)
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}?{query}", timeout=10) as answer:  # noqa: S310  our own child
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        pytest.fail(f"{values}: {error.read().decode()}")
    except OSError:
        return {}


def has_data(url: str, expr: str, since_s: float) -> bool:
    """Would its panel show something of the time since then?"""
    for text, instead in (VARIABLES | HARDER).items():
        expr = expr.replace(text, instead)
    found = asked(url, "query_range", query=expr, start=f"{since_s}", end=f"{time.time()}", step="1")
    return bool(found.get("result"))


def exercise(up: Up) -> None:
    """A fault that is healed, and another whose remedy waits."""
    up.until(lambda: len(up.get("/api/v1/nodes")["nodes"]) >= 3, "all nodes are heard")
    up.gpuward("drill", "link-down", "--node", "sim-01", "--wait")
    up.gpuward("mode", "reset-gpu", "approve")
    up.gpuward("drill", "gpu-needs-reset", "--node", "sim-02")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.component("nats-server")
@pytest.mark.component("prometheus")
@pytest.mark.component("prometheus-node-exporter")
def test_each_panel_has_data_of_a_real_cell(tmp_path: Path) -> None:
    """Every query of every panel; and no alert of ours fires in a cell that is well."""
    with running(tmp_path / "up", nodes=2) as up, exporter(tmp_path / "up/agent") as agents:
        began_s = time.time()
        node = agents.removeprefix("http://").removesuffix("/metrics")
        with prometheus(tmp_path, {"gpuward": f"127.0.0.1:{up.port}", "node": node}) as url:
            exercise(up)
            wanted = {(name, panel.title, one.expr) for name, panel in panels() for one in panel.queries}
            deadline = time.monotonic() + DATA_WITHIN_S
            while missing := {one for one in wanted if not has_data(url, one[2], began_s)}:
                assert time.monotonic() < deadline, sorted(missing)
                time.sleep(2)
            fired = [
                one["labels"]["alertname"]
                for one in asked(url, "alerts")["alerts"]
                if one["state"] == "firing"
            ]
            assert fired == []
