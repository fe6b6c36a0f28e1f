"""However `gpuward top` ends, the terminal is left as it was: whoever sat before it goes on typing."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.tmux import WITHIN_S, Tmux
from tests.e2e.up import BIN, Up, running

pytestmark = [pytest.mark.component("tmux"), pytest.mark.component("nats-server"), pytest.mark.slow]
# A shell that goes on when it is over, as that of somebody who is logged in.
SHELL = """"$0" top "$@"; echo "it ended with $?"; exec cat"""
BROKEN = """
import os, sys
if sys.argv[1:2] == ["top"]:
    from brain.cli.top import app
    def _tick(self):
        raise RuntimeError("a bug of ours")
    app.Top._tick = _tick
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A brain with two simulated nodes."""
    with running(tmp_path_factory.mktemp("up") / "data", nodes=2) as found:
        yield found


@pytest.fixture
def shell(tmp_path: Path, up: Up) -> Iterator[Callable[..., Tmux]]:
    """Makes a terminal with a shell that has begun `gpuward top`; ended whatever happens."""
    made: list[Tmux] = []

    def begun(**env: str) -> Tmux:
        made.append(Tmux(tmp_path, "sh", "-c", SHELL, str(BIN / "gpuward"), env={**up.env(), **env}))
        return made[-1]

    yield begun
    for one in made:
        with contextlib.suppress(AssertionError):  # where the test itself has ended it
            one.end()


def drawn(at: Tmux) -> int:
    """Waits until it draws; returns its process."""
    at.sees("Needs a person", "administrator")  # whatever this machine's own agent tells meanwhile
    assert (at.told("alternate_on"), at.told("cursor_flag")) == ("1", "0")
    assert "-echo " in modes(at)
    return pid_of(at)


def pid_of(at: Tmux) -> int:
    """The process of `gpuward top` below the shells of a terminal."""
    below = [int(at.told("pane_pid"))]
    while below:
        one = below.pop()
        command = Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")
        if b"python" in command[0] and b"top" in command:
            return one
        below += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
    raise AssertionError("gpuward top does not run there")


def modes(at: Tmux) -> str:
    """The terminal's modes, as stty tells them."""
    said = subprocess.run(
        ["stty", "-a", "-F", at.told("pane_tty")], capture_output=True, text=True, timeout=60, check=True
    )
    return " ".join(said.stdout.split()) + " "


def as_it_was(at: Tmux, status: int) -> str:
    """Waits until the shell goes on, and looks at everything that a program may leave behind; returns what stands there."""
    at.sees(f"it ended with {status}")
    assert (at.told("alternate_on"), at.told("cursor_flag")) == ("0", "1")
    found = modes(at)
    for mode in ("echo", "icanon", "isig", "icrnl", "opost"):
        assert f" {mode} " in found, f"{mode}: {found}"
    at.type("somebody types")
    at.press("Enter")
    screen = at.until(
        lambda text: text.count("somebody types") == 2, "what is typed is seen, and cat repeats it"
    )
    assert "OptionList" not in screen
    return screen


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal(shell: Callable[..., Tmux], sent: signal.Signals) -> None:
    """Of an administrator, a service manager, a lost connection: it says nothing more, and its status tells which it was."""
    at = shell()
    os.kill(drawn(at), sent)
    as_it_was(at, 128 + sent)


@pytest.mark.timeout(300)
def test_a_question_is_open(shell: Callable[..., Tmux]) -> None:
    """The same where keys belong to a question."""
    at = shell()
    pid = drawn(at)
    at.press("?")
    at.sees("q or Ctrl-C: end")
    os.kill(pid, signal.SIGTERM)
    as_it_was(at, 128 + signal.SIGTERM)


@pytest.mark.timeout(300)
def test_a_crash(shell: Callable[..., Tmux], tmp_path: Path) -> None:
    """A bug of ours: what it was is said below the shell's own lines."""
    (tmp_path / "sitecustomize.py").write_text(BROKEN)
    at = shell(PYTHONPATH=str(tmp_path))
    assert "a bug of ours" in as_it_was(at, 1)


@pytest.mark.timeout(300)
def test_the_terminal_is_gone(shell: Callable[..., Tmux]) -> None:
    """As when ssh has lost its connection: nothing of it is left, and nothing spins."""
    at = shell()
    pid = drawn(at)
    at.end()
    deadline = time.monotonic() + WITHIN_S
    while (
        Path(f"/proc/{pid}/stat").exists()
        and Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    ):
        assert time.monotonic() < deadline, "it is still there"
        time.sleep(0.1)  # before it looks again, until the deadline
