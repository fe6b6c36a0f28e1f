"""One `gpuward up`, as a user starts it."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.real.nats import free_port

BIN = Path(sys.executable).parent


class Up:
    """One `gpuward up` in its own session."""

    def __init__(self, data: Path, *more: str, port: int = 0, nodes: int = 4) -> None:
        self.data = data
        self.port = port or free_port()
        self._out = data.with_name(f"{data.name}-{self.port}-{time.monotonic_ns()}.out")
        args = ["up", "--data", str(data), "--port", str(self.port), "--nodes", str(nodes), *more]
        with self._out.open("wb") as sink:
            self.process = subprocess.Popen(
                [str(BIN / "gpuward"), *args], stdout=sink, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def said(self) -> str:
        """All that it has printed."""
        return self._out.read_text()

    def ready(self) -> "Up":
        """Waits for the table."""
        self.until(lambda: "Try in another terminal" in self.said, "up prints its table")
        return self

    def until(self, look: Callable[[], Any], what: str, within_s: float = 120.0) -> Any:
        """The first true answer; fails with the logs when there is none in time, or when `up` has ended."""
        deadline = time.monotonic() + within_s
        while not (found := look()):
            assert self.process.poll() is None, f"up ended while waiting until {what}:\n{self.said}"
            assert time.monotonic() < deadline, f"not within {within_s} s: {what}\n{self.said}{self.logs()}"
            time.sleep(0.1)
        return found

    def logs(self) -> str:
        """The ends of the children's logs."""
        return "".join(
            f"\n--- {log.name}\n{log.read_text()[-1500:]}" for log in (self.data / "logs").glob("*.log")
        )

    def pid(self, name: str) -> int:
        """The pid of a part, as the table says."""
        found = re.search(rf"^  {name} .* (\d+)  /", self.said, re.MULTILINE)
        assert found, self.said
        return int(found[1])

    def get(self, path: str) -> Any:
        """A JSON answer of the API."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as answer:
            return json.load(answer)

    def gpuward(self, *args: str, ok: bool = True) -> str:
        """What a command prints to both streams; fails when its status is not as expected."""
        done = subprocess.run(
            [str(BIN / "gpuward"), *args], env=self.env(), capture_output=True, text=True, timeout=240
        )
        assert (done.returncode == 0) == ok, (
            f"{args}: {done.returncode}\n{done.stdout}{done.stderr}{self.logs()}"
        )
        return done.stdout + done.stderr

    def doctor(self) -> str:
        """What `gpuward doctor --json` prints, typed beside it."""
        done = subprocess.run(
            [str(BIN / "gpuward"), "doctor", "--json"],
            env=self.env(),
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.stdout

    def env(self) -> dict[str, str]:
        return os.environ | {"GPUWARD_URL": f"http://127.0.0.1:{self.port}"}

    def end(self, number: signal.Signals = signal.SIGINT, within_s: float = 60.0) -> int:
        """A signal to `up` alone; its exit status."""
        self.process.send_signal(number)
        return self.process.wait(within_s)

    def left(self) -> list[str]:
        """Processes that still name the data folder."""
        found = []
        for proc in Path("/proc").iterdir():
            if proc.name.isdecimal() and int(proc.name) != os.getpid():
                with contextlib.suppress(OSError):
                    line = (proc / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if str(self.data) in line:
                        found.append(f"{proc.name} {line}")
        return found


@contextlib.contextmanager
def running(data: Path, *more: str, nodes: int = 4) -> Iterator[Up]:
    """An `up` that prints its table; ended at the end, whatever happened."""
    up = Up(data, *more, nodes=nodes)
    try:
        yield up.ready()
    finally:
        if up.process.poll() is None:
            up.process.terminate()
            try:
                up.process.wait(60)
            except subprocess.TimeoutExpired:
                up.process.kill()
                up.process.wait()
