"""An agent waits for its key and authorities (a late mount, a tool that sets the node up): nobody need start it again."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.real.nats import free_port
from tests.real.test_agent_metrics import wait_for

SEED = "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU\n"


@contextmanager
def running(folder: Path, keys: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """An agent, and the file with its log."""
    config, log = folder / "agent.toml", folder / "log"
    url = f"nats://127.0.0.1:{free_port()}"
    config.write_text(f'node = "n1"\ndata_dir = "{folder}/data"\nnats_url = "{url}"\n{keys}\n')
    argv = [sys.executable, "-m", "agent", "run", "--config", str(config)]
    with log.open("wb") as output, subprocess.Popen(argv, stderr=output) as process:
        try:
            yield process, log
        finally:
            if process.poll() is None:
                process.kill()


@pytest.mark.parametrize("key", ["nats_seed_file", "nats_ca_file"])
def test_what_comes_later_is_used(tmp_path: Path, key: str) -> None:
    """It says once what it waits for, and goes on by itself."""
    late = tmp_path / "late"
    with running(tmp_path, f'{key} = "{late}"') as (process, log):
        wait_for(lambda: f"waiting: {key}: {late} cannot be read" in log.read_text(), "it says so")
        late.write_text(SEED if key == "nats_seed_file" else "")
        wait_for(lambda: "session" in log.read_text(), "it has begun")
        assert log.read_text().count("waiting:") == 1
        assert process.poll() is None


def test_it_can_be_stopped_meanwhile(tmp_path: Path) -> None:
    """With status 0, as whenever it is asked to stop."""
    with running(tmp_path, f'nats_seed_file = "{tmp_path}/late"') as (process, log):
        wait_for(lambda: "waiting:" in log.read_text(), "it waits")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
