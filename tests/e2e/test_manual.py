"""The manual's tutorials as a reader follows them: every command, in order, in a new folder, against a real `gpuward up`."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import manual
from tests.real.nats import free_port

BIN = Path(sys.executable).parent
# Only these are typed again until they show what the page says: they change nothing, and a reader looks again too.
LOOKS = ("gpuward incidents", "gpuward explain", "gpuward status", "gpuward nodes", "gpuward doctor", "grep ")
WITHIN_S = 120.0
AGAIN_S = 0.5


class Reader:
    """Two terminals in one folder. `gpuward up` gets a port of its own; every other command is typed as it stands."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._ids = manual.Ids()
        self._up: subprocess.Popen[bytes] | None = None
        self._said = folder / "up.out"
        for name in ("rules", "runbooks", "docs"):
            shutil.copytree(manual.ROOT / name, folder / name)

    def types(self, one: manual.Typed) -> None:
        """Runs it; fails when its status is not 0, or it does not print what the page shows."""
        if one.command == "gpuward up":
            self._starts(one)
            return
        command = self._ids.in_command(one.command)
        deadline = time.monotonic() + WITHIN_S
        while True:
            done = subprocess.run(
                ["bash", "-c", command], cwd=self._folder, env=self._env(), capture_output=True, text=True, timeout=300
            )  # fmt: skip
            printed = done.stdout + done.stderr
            missing = self._ids.seen(one.shows, printed)
            if done.returncode == 0 and not missing:
                return
            again = command.startswith(LOOKS) and time.monotonic() < deadline
            assert again, (
                f"$ {command}\nstatus {done.returncode}, line not shown: {missing!r}\n{printed}{self._logs()}"
            )
            time.sleep(AGAIN_S)

    def _starts(self, one: manual.Typed) -> None:
        with self._said.open("wb") as sink:
            self._up = subprocess.Popen(
                [BIN / "gpuward", "up", "--port", str(self._port)],
                cwd=self._folder, env=self._env(), stdout=sink, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + WITHIN_S
        while self._ids.seen(one.shows, said := self._said.read_text()):
            assert self._up.poll() is None, said
            assert time.monotonic() < deadline, said + self._logs()
            time.sleep(AGAIN_S)

    def leaves(self) -> None:
        """Ctrl-C in the first terminal."""
        if self._up is not None and self._up.poll() is None:
            self._up.send_signal(signal.SIGINT)
            try:
                self._up.wait(60)
            except subprocess.TimeoutExpired:
                self._up.kill()
                self._up.wait()

    def _env(self) -> dict[str, str]:
        """Wide: a table stays one, whatever this machine's own agent tells meanwhile."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARD_")}
        path = f"{BIN}:{own.get('PATH', '')}"
        return own | {"PATH": path, "COLUMNS": "200", "GPUWARD_URL": f"http://127.0.0.1:{self._port}"}

    def _logs(self) -> str:
        logs = sorted((self._folder / ".gpuward" / "logs").glob("*.log"))
        return "".join(f"\n--- {log.name}\n{log.read_text()[-1500:]}" for log in logs)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """With a checkout's folders, and nothing running yet."""
    one = Reader(tmp_path)
    try:
        yield one
    finally:
        one.leaves()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", manual.TUTORIALS)
def test_every_command_of_a_tutorial_does_what_the_page_says(reader: Reader, page: str) -> None:
    """From the first to the last line: status 0, and the shown lines."""
    commands = list(manual.typed(page))
    assert len(commands) >= 15
    for one in commands:
        reader.types(one)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", ["operations.md"])
def test_what_a_page_lets_one_type_at_a_site_that_runs(reader: Reader, page: str) -> None:
    """Each `console` of a page that is no tutorial: status 0, and the shown lines."""
    reader.types(manual.Typed(command="gpuward up", shows=("gpuward is up after 10.0 s.",)))
    for one in manual.typed(page):
        reader.types(one)
