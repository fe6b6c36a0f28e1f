"""A real agent on a node with GPUs of our own library, and `gpuward-agent check` as Slurm calls it."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fixtures.nvml_fake import FakeNvml

ROOT = Path(__file__).parents[2]
NODE = "gpu1"


@contextlib.contextmanager
def agent(folder: Path, fake: FakeNvml, *more: str, socket: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A running agent without a broker, whose socket is there; killed at the end."""
    options = [
        f"node={NODE}",
        f"data_dir={folder}/agent",
        f"check_socket={socket}",
        "nats_url=nats://127.0.0.1:1",
        "nvml_interval_s=0.1",
        *more,
    ]
    argv = [sys.executable, "-m", "agent", "run", *(word for one in options for word in ("--set", one))]
    socket.unlink(missing_ok=True)
    with (folder / "agent.log").open("ab") as log:
        process = subprocess.Popen(
            argv, cwd=ROOT, env={**os.environ, **fake.env}, stdout=subprocess.DEVNULL, stderr=log
        )
        try:
            until(lambda: socket.exists() or process.poll() is not None, "the agent does not answer")
            assert process.poll() is None, (folder / "agent.log").read_text()
            yield process
        finally:
            process.kill()
            process.wait(60)


def seen(fake: FakeNvml) -> None:
    """Until the agent has sampled the GPUs once: it knows then which one is lost later."""
    for _ in range(2):
        fake.hang("nvmlDeviceGetUtilizationRates")
        until(fake.is_hanging, "NVML is not asked")
        fake.resume()


def check(socket: Path, *argv: str, timeout: str = "20s") -> subprocess.CompletedProcess[str]:
    """What `gpuward-agent check` prints. Its own timeout is 0.1 s: a machine under load is given more."""
    return subprocess.run(
        [sys.executable, "-m", "agent", "check", "--socket", str(socket), "--timeout", timeout, *argv],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def until(holds: Callable[[], bool], why: str, within_s: float = 90.0) -> None:
    """Waits for it."""
    end_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end_s, why
        time.sleep(0.05)
