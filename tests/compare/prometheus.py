"""Debian's Prometheus, Alertmanager and node_exporter: a kernel line → textfile collector → scrape → rule → webhook."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tests.compare import kit, textfile
from tests.compare.kit import Result
from tests.real.kernel_log import FACILITY
from tests.real.nats import free_port

PROGRAMS = ("prometheus", "prometheus-alertmanager", "prometheus-node-exporter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How it is configured, and how its latency is measured."""

    name: str
    # Of scrapes and of rules, seconds.
    interval_s: int
    # Before the first notification of an alert, and between two of a group, seconds.
    group_wait_s: int
    group_interval_s: int
    lines: int
    # Between two lines, seconds.
    pause_s: tuple[float, float]
    # Whether a line is written only when the one before was paged.
    wait: bool


# The intervals of the configuration files that Debian's packages (and the upstream's archive, for Prometheus) ship.
SHIPPED = Setup(
    name="Prometheus + Alertmanager, as shipped", interval_s=15, group_wait_s=30, group_interval_s=300,
    lines=24, pause_s=(1.0, 3.0), wait=False,
)  # fmt: skip
TUNED = Setup(
    name="Prometheus + Alertmanager, tuned", interval_s=1, group_wait_s=0, group_interval_s=1,
    lines=40, pause_s=(0.1, 1.1), wait=True,
)  # fmt: skip
WITHIN_S = 90.0


def missing() -> str:
    """What must be installed first; empty: nothing."""
    wanted = [name for name in PROGRAMS if not shutil.which(name)]
    return f"apt-get install {' '.join(wanted)}" if wanted else ""


def fired(pages: Iterable[str]) -> dict[str, float]:
    """GPU → when its alert began to fire by Prometheus' own account (s since 1970), of the bodies that Alertmanager posted."""
    found: dict[str, float] = {}
    for body in pages:
        for alert in json.loads(body)["alerts"]:
            # Python reads six digits of a second.
            head, _, rest = str(alert["startsAt"]).partition(".")
            at = datetime.fromisoformat(f"{head}.{rest.rstrip('Z')[:6]:0<6}+00:00" if rest else head)
            found.setdefault(alert["labels"]["gpu"], at.timestamp())
    return found


def configure(folder: Path, setup: Setup, pager: str, ports: Mapping[str, int]) -> None:
    """Writes prometheus.yml, rules.yml and alertmanager.yml. Each GPU is an alert group of its own, or those that fail after
    the first one would wait for `group_interval_s`.
    """
    every = f"{setup.interval_s}s"
    (folder / "rules.yml").write_text(
        "groups:\n- name: gpus\n  rules:\n  - alert: GpuFails\n    expr: gpu_last_xid == 64\n    labels: {severity: page}\n"
    )
    (folder / "prometheus.yml").write_text(
        f"global: {{scrape_interval: {every}, evaluation_interval: {every}, scrape_timeout: {min(setup.interval_s, 10)}s}}\n"
        f"rule_files: [rules.yml]\n"
        f'alerting: {{alertmanagers: [{{static_configs: [{{targets: ["127.0.0.1:{ports["alertmanager"]}"]}}]}}]}}\n'
        f'scrape_configs: [{{job_name: node, static_configs: [{{targets: ["127.0.0.1:{ports["exporter"]}"]}}]}}]\n'
    )
    (folder / "alertmanager.yml").write_text(
        f"route: {{receiver: hook, group_by: [gpu], group_wait: {setup.group_wait_s}s,"
        f" group_interval: {setup.group_interval_s}s, repeat_interval: 3h}}\n"
        f'receivers: [{{name: hook, webhook_configs: [{{url: "{pager}", send_resolved: false}}]}}]\n'
    )


def run(setup: Setup) -> Result:
    """Needs root (the kernel log)."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        receiver = stack.enter_context(kit.pager(free_port()))
        pids = _start(stack, folder, setup, receiver.url)
        time.sleep(kit.SETTLE_S)
        memory = kit.Memory(pids)
        with memory.watched():
            failed, paged = kit.lines(receiver, setup.lines, setup.pause_s, WITHIN_S, wait=setup.wait)
            began = time.time()
            textfile.write(folder / "metrics" / "burst.prom", kit.burst_gpus())
            burst_paged, burst_s = kit.burst(receiver, began)
        decided = fired(body for _, body in receiver.pages)
    return Result(
        name=setup.name,
        version=", ".join(map(_version, PROGRAMS)),
        lines=len(failed),
        decided_s=kit.spans(failed, decided),
        paged_s=kit.spans(failed, paged),
        burst_paged=burst_paged,
        burst_s=burst_s,
        idle_mb=memory.idle,
        load_mb=memory.most,
    )


def _start(stack: ExitStack, folder: Path, setup: Setup, pager: str) -> dict[str, int]:
    """Starts all of it until it is ready; the process ids. The reader of the kernel log, which is ours, is not among them."""
    ports = {name: free_port() for name in ("exporter", "alertmanager", "prometheus")}
    configure(folder, setup, pager, ports)
    metrics = folder / "metrics"
    metrics.mkdir()
    at = {name: f"--web.listen-address=127.0.0.1:{port}" for name, port in ports.items()}
    commands = {
        "exporter": ["prometheus-node-exporter", f"--collector.textfile.directory={metrics}"],
        "alertmanager": [
            "prometheus-alertmanager", f"--config.file={folder}/alertmanager.yml", f"--storage.path={folder}/alertmanager",
            "--cluster.listen-address=",  # or it opens a port on every address
        ],
        "prometheus": [
            "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/prometheus"
        ],
    }  # fmt: skip
    ready = {"exporter": "", "alertmanager": "-/ready", "prometheus": "-/ready"}
    pids = {}
    for name, argv in commands.items():
        log = folder / f"{name}.log"
        process = stack.enter_context(kit.child([*argv, at[name]], log))
        url = f"http://127.0.0.1:{ports[name]}/{ready[name]}"
        assert kit.until(lambda: _answers(url), 60, 0.1), f"{name} is not ready:\n{log.read_text()[-2000:]}"  # noqa: B023
        pids[name] = process.pid
    argv = [sys.executable, "-m", "tests.compare.textfile", str(FACILITY), str(metrics / "kernel.prom")]
    reader = stack.enter_context(kit.child(argv, folder / "reader.log"))
    assert reader.stdout is not None
    assert reader.stdout.readline() == "ready\n"
    return pids


def _answers(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  our own child on loopback
        return bool(answer.status == 200)
    return False


def _version(program: str) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=60)
    words = (said.stdout + said.stderr).split()
    return f"{words[0].rstrip(',')} {words[words.index('version') + 1].partition('+')[0]}"
