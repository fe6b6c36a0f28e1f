"""The agent's metrics: written by a real agent, checked by promtool, and read by Debian's node_exporter."""

import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from agent import config_file
from agent.contract.errors import ConfigError
from agent.metrics_file import AGENT_METRICS
from tests.real.kernel_log import write_kernel_line
from tests.real.nats import free_port
from tests.real.test_agent_process import agent, bus

WITHIN_S = 60.0
EXPORTER = "prometheus-node-exporter"


def wait_for(look: Callable[[], bool], what: str) -> None:
    """Until it is so."""
    deadline = time.monotonic() + WITHIN_S
    while not look():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def samples(text: str) -> dict[tuple[str, ...], float]:
    """(name, values of its labels) -> value."""
    return {(one.name, *one.labels.values()): one.value for family in parse(text) for one in family.samples}


def read(file: Path) -> str:
    """What is in it now; empty: it is not there."""
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""


@contextmanager
def exporter(folder: Path) -> Iterator[str]:
    """Debian's node_exporter over one folder of text files; its URL."""
    program = shutil.which(EXPORTER)
    if program is None:
        pytest.skip(f"needs {EXPORTER}: deploy/dev/components.sh installs it")
    address = f"127.0.0.1:{free_port()}"
    argv = [
        program,
        f"--web.listen-address={address}",
        "--collector.disable-defaults",
        "--collector.textfile",
    ]
    with (folder.parent / "exporter.log").open("wb") as sink:
        process = subprocess.Popen(
            [*argv, f"--collector.textfile.directory={folder}"], stdout=sink, stderr=sink
        )
    try:
        yield f"http://{address}/metrics"
    finally:
        process.kill()
        process.wait(60)


def scraped(url: str) -> dict[tuple[str, ...], float]:
    """What a Prometheus would get; nothing while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as page:  # noqa: S310  our own child
            return samples(page.read().decode())
    except OSError:
        return {}


@pytest.mark.root
@pytest.mark.component("nats-server")
@pytest.mark.component("prometheus-node-exporter")
@pytest.mark.component("promtool")
def test_a_node_exporter_has_them(tmp_path: Path) -> None:
    """Every metric with its meaning, also for another user under a strict umask; a fault counts; a stopped agent leaves none."""
    folder = tmp_path / "textfile"
    folder.mkdir(mode=0o755)
    file = folder / "gpuward.prom"
    before = os.umask(0o077)  # as in the agent's unit
    try:
        with bus(tmp_path) as server, exporter(folder) as url:
            options = (f"metrics_file={file}", "metrics_interval_s=1")
            with agent(tmp_path, server, *options) as process:
                connected = ("gpuward_agent_connected",)
                wait_for(lambda: samples(read(file)).get(connected) == 1, "it is connected")
                assert file.stat().st_mode & 0o777 == 0o644
                write_kernel_line("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
                wait_for(
                    lambda: scraped(url).get(("gpuward_agent_events_total", "gpu.xid"), 0) >= 1, "it counts"
                )
                found = scraped(url)
                assert found["node_textfile_scrape_error",] == 0
                assert ("node_textfile_mtime_seconds", str(file)) in found
                text = read(file)
                tool = shutil.which("promtool")
                assert tool is not None, "deploy/dev/components.sh installs it with prometheus"
                linted = subprocess.run(
                    [tool, "check", "metrics"], input=text, capture_output=True, text=True
                )
                assert (linted.returncode, linted.stderr) == (0, "")
                assert [line.split()[2] for line in text.splitlines() if line.startswith("# HELP")] == [
                    one.name for one in AGENT_METRICS
                ]
                assert found["gpuward_agent_source_up", "kmsg"] == 1
                assert 5e6 < found["gpuward_agent_resident_memory_bytes",] < 100e6
                process.send_signal(signal.SIGTERM)
                process.wait(WITHIN_S)
            assert not file.exists()
            wait_for(lambda: connected not in scraped(url), "nobody takes them for new")
    finally:
        os.umask(before)


@pytest.mark.root
@pytest.mark.component("nats-server")
def test_a_folder_that_is_not_there_harms_nothing(tmp_path: Path) -> None:
    """The agent says what is wrong, and writes the file when there is a folder."""
    folder = tmp_path / "later"
    file = folder / "gpuward.prom"
    with bus(tmp_path) as server, agent(tmp_path, server, f"metrics_file={file}") as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "metrics failed" in line)
        assert "No such file or directory (needs metrics_file in a folder" in line
        folder.mkdir()
        wait_for(lambda: ("gpuward_agent_failures_total", "metrics") in samples(read(file)), "it is written")


@pytest.mark.parametrize(
    ("path", "says"),
    [("/a/gpuward.txt", "must end with .prom"), ("gpuward.prom", "must be an absolute path")],
)
def test_a_file_that_nobody_would_read(path: str, says: str) -> None:
    """It is refused at the start."""
    with pytest.raises(ConfigError, match=says):
        config_file.load(None, {"metrics_file": path})
