"""`gpuward-agent check` against a real agent: fit, unfit, and an agent that is sick itself."""

import contextlib
import errno
import functools
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.cli import check as command
from agent.contract.drain_reason import words_of
from agent.contract.fitness import MAX_ANSWER_BYTES
from tests.agent.check_kit import ROOT, agent, check, seen, until
from tests.fixtures.nvml_fake import LOST, FakeNvml

LOST_FIRST = "GPU 0000:3b:00 is lost (lost)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the agent answers."""
    return tmp_path / "check.sock"


def unfit(path: Path, *argv: str) -> Callable[[], bool]:
    """Does the agent say so now?"""
    return lambda: check(path, *argv).returncode == 1


def test_a_lost_gpu_makes_a_node_unfit_until_it_is_back(tmp_path: Path, fake: FakeNvml, path: Path) -> None:
    """With one line for each reason, as JSON, and as the reason of a drain."""
    with agent(tmp_path, fake, socket=path):
        seen(fake)
        well = check(path)
        assert (well.returncode, well.stdout) == (0, "")
        fake.fail(0, LOST)
        until(unfit(path), "the lost GPU is not told")
        assert check(path).stdout.splitlines() == [LOST_FIRST]
        assert words_of(check(path, "--drain-reason").stdout.rstrip("\n")) == LOST_FIRST
        said = json.loads(check(path, "--json").stdout)
        assert (said["fit"], said["known"], said["reasons"]) == (False, True, [LOST_FIRST])
        assert said["node"] == "gpu1"
        assert said["runs_s"] > 0
        (condition,) = (one for one in said["conditions"] if one["group"] == "gpu")
        assert condition["component"] == "gpu/0000:3b:00"
        assert condition["stale"] is False
        fake.fail(0, 0)
        until(lambda: not unfit(path)(), "its return is not told")


def test_what_many_nodes_share_counts_only_when_asked_for(tmp_path: Path, fake: FakeNvml, path: Path) -> None:
    """A file system that is gone is the file server's; a site may ask for it."""
    with agent(tmp_path, fake, "mounts=/nowhere", "mount_interval_s=0.2", socket=path):
        until(unfit(path, "--also", "storage"), "the missing file system is not told")
        assert check(path, "--also", "storage").stdout.splitlines() == ["file system /nowhere is gone"]
        assert check(path).returncode == 0
        assert check(path, "--also", "host,network").returncode == 0


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_a_sick_agent_takes_no_node_away(
    tmp_path: Path, fake: FakeNvml, path: Path, how: signal.Signals
) -> None:
    """It hangs, or was killed and has left its socket: fit within the timeout, though it had said that a GPU is lost."""
    with agent(tmp_path, fake, socket=path) as process:
        seen(fake)
        fake.fail(0, LOST)
        until(unfit(path), "the lost GPU is not told")
        os.kill(process.pid, how)
        if how is signal.SIGKILL:
            process.wait(60)
        began_s = time.monotonic()
        asked = check(path, timeout="0.1s")
        assert time.monotonic() - began_s < 20
        assert (asked.returncode, asked.stdout) == (0, "")
        assert "the agent does not answer" in asked.stderr
        assert path.exists()
        assert json.loads(check(path, "--json", timeout="0.1s").stdout) == {
            "fit": True,
            "known": False,
            "reasons": [],
        }
    # The next one takes the place of what was left.
    with agent(tmp_path, fake, socket=path):
        until(lambda: json.loads(check(path, "--json").stdout)["known"], "the next agent does not answer")


def test_a_blind_agent_takes_no_node_away(tmp_path: Path, fake: FakeNvml, path: Path) -> None:
    """A source that cannot look is named, and says nothing against the node."""
    bus = f"dbus_address=unix:path={tmp_path}/none"
    with agent(tmp_path, fake, "services=slurmd", bus, socket=path):
        until(lambda: "systemd does not run" in check(path).stderr, "the blind source is not named")
        asked = check(path, "--also", "software")
        assert (asked.returncode, asked.stdout) == (0, "")
        assert "nothing is known against this node" in asked.stderr


def test_who_may_ask(tmp_path: Path, fake: FakeNvml, path: Path) -> None:
    """The agent's user and root; nobody else can even connect."""
    with agent(tmp_path, fake, socket=path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not path.with_name("check.sock.part").exists()


@pytest.mark.root
def test_another_user_is_told_who_may_ask(tmp_path: Path, fake: FakeNvml, path: Path) -> None:
    """Not only that it may not: fit all the same, and who types it."""
    path.parent.chmod(0o755)
    with agent(tmp_path, fake, socket=path):
        asked = as_nobody(path)
    assert (asked.returncode, asked.stdout) == (0, "")
    assert "user nobody may not ask the agent" in asked.stderr
    assert "Type it as root" in asked.stderr
    assert "SlurmdUser" in asked.stderr


def as_nobody(path: Path) -> subprocess.CompletedProcess[str]:
    """The check, by a user who may not ask. What it imports is read before: not everybody may read a checkout."""
    program = (
        "import os, sys, json, locale, pwd, agent.cli.check as check; os.setgroups([]); os.setgid(65534); os.setuid(65534); "
        f"sys.exit(check.main(['--socket', {str(path)!r}]))"
    )
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("there", [False, True])
def test_no_agent_is_told_with_what_to_type(path: Path, there: bool) -> None:
    """Neither a socket, nor one that nobody serves any more, is only a number of an error."""
    if there:
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
    asked = check(path)
    assert (asked.returncode, asked.stdout) == (0, "")
    assert f"none runs, or not at {path}" in asked.stderr
    assert "systemctl status gpuward-agent" in asked.stderr
    assert "Errno" not in asked.stderr


def connected(client: socket.socket, path: Path) -> bool:
    """Has it been let in? Not while too many wait."""
    return client.connect_ex(str(path)) == 0


def test_rude_clients(tmp_path: Path, fake: FakeNvml, path: Path) -> None:
    """Hundreds that send garbage, read nothing or never go: the agent answers the others, and keeps no connection."""
    with agent(tmp_path, fake, socket=path) as process, contextlib.ExitStack() as undo:
        files = Path(f"/proc/{process.pid}/fd")
        before = len(list(files.iterdir()))
        for number in range(300):
            rude = undo.enter_context(socket.socket(socket.AF_UNIX))
            rude.settimeout(60)
            until(functools.partial(connected, rude, path), "the agent takes no more")
            if number % 2:
                with contextlib.suppress(OSError):  # it has closed the connection already
                    rude.sendall(b"\x00\xff" * 5000)
        assert check(path).returncode == 0
        until(lambda: len(list(files.iterdir())) <= before + 2, "connections are kept")


@contextlib.contextmanager
def answering(path: Path, says: bytes, *, close: bool = True) -> Iterator[None]:
    """Something that is no agent listens there."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(says)
                    if not close:
                        connection.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        thread.join(60)


@pytest.mark.parametrize(
    "says",
    [
        b"",
        b"\n",
        b"{}\n",
        b"[]\n",
        b"null\n",
        b"no\xff json\n",
        b'{"conditions": 3, "blind": {}}\n',
        b'{"conditions": [{"group": "gpu"}], "blind": {}}\n',
        b'{"conditions": [{"group": "gpu", "stale": false, "text": 7}], "blind": {}}\n',
        b'{"conditions": [], "blind": []}\n',
        b"[" * 50_000 + b"\n",
        b'{"conditions": [' + b" " * MAX_ANSWER_BYTES * 2,
    ],
)
def test_what_is_no_answer(path: Path, says: bytes) -> None:
    """Fit, and told on stderr."""
    with answering(path, says):
        asked = check(path)
    assert (asked.returncode, asked.stdout) == (0, ""), asked
    assert "the agent does not answer" in asked.stderr


def test_a_queue_that_is_full_is_waited_for(path: Path) -> None:
    """Too many ask at once, as when a job of many steps ends: the kernel refuses at once, and the node is unfit all the same."""
    said = {"conditions": [{"group": "gpu", "stale": False, "text": "GPU is lost"}], "blind": {}}
    with contextlib.ExitStack() as undo:
        server = undo.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(str(path))
        server.listen(0)
        full = False
        while not full:
            waiting = undo.enter_context(socket.socket(socket.AF_UNIX))
            waiting.setblocking(False)
            full = waiting.connect_ex(str(path)) == errno.EAGAIN
        asking = subprocess.Popen(
            [sys.executable, "-m", "agent", "check", "--socket", str(path), "--timeout", "60s"], cwd=ROOT
        )
        with pytest.raises(subprocess.TimeoutExpired):  # it does not give up
            asking.wait(3)
        server.settimeout(60)
        while asking.poll() is None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(json.dumps(said).encode() + b"\n")
            with contextlib.suppress(subprocess.TimeoutExpired):
                asking.wait(0.05)
        assert asking.returncode == 1


def test_an_answer_in_pieces_that_never_ends(path: Path) -> None:
    """The timeout is for all of it."""
    with answering(path, b'{"conditions": [', close=False):
        asked = check(path, timeout="0.2s")
    assert asked.returncode == 0
    assert "within 0.2 s" in asked.stderr


def test_words_do_nothing_in_a_terminal(path: Path) -> None:
    """Whatever answers there."""
    text = "GPU \x1b]0;x\x07 'is' $(lost)\n"
    condition = {"group": "gpu", "stale": False, "text": text}
    with answering(path, json.dumps({"conditions": [condition], "blind": {}}).encode() + b"\n"):
        asked = check(path)
    assert asked.returncode == 1
    assert asked.stdout == "GPU ]0;x is $(lost)\n".replace("]", ")")


@pytest.mark.parametrize(
    "argv", [["--also", "nonsense"], ["--timeout", "soon"], ["--timeout", "0"], ["--nonsense"], ["more"]]
)
def test_wrong_usage(path: Path, argv: list[str]) -> None:
    """Exit status 2: neither fit nor unfit."""
    assert check(path, *argv).returncode == 2


@pytest.mark.parametrize(("text", "seconds"), [("0.1s", 0.1), ("100ms", 0.1), ("2", 2.0), ("5s", 5.0)])
def test_times(text: str, seconds: float) -> None:
    """As they are typed."""
    assert command._seconds(text) == pytest.approx(seconds)


def test_it_imports_next_to_nothing() -> None:
    """Most of its time is Python's own start: no module of the agent but four, and none of those that take long."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "agent", "check", "--socket", "/nowhere"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    loaded = set(re.findall(r"\|\s+(\S+)$", done.stderr, re.MULTILINE))
    own = {"agent", "agent.cli", "agent.cli.check", "agent.contract", "agent.contract.fitness"}
    assert {name for name in loaded if name.startswith("agent")} == own | {"agent.contract.drain_reason"}
    assert loaded.isdisjoint({"asyncio", "dataclasses", "inspect", "pathlib", "shutil", "nats", "orjson"})


def test_it_answers_within_a_tenth_of_a_second(
    tmp_path: Path, fake: FakeNvml, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole process, from its start to its end. What it computes is below that anywhere; how long that takes depends on
    who else has the machine, and is printed.
    """
    walls_s, cpus_s = [], []
    with agent(tmp_path, fake, socket=path):
        for _ in range(20):
            began_s = time.monotonic()
            process = subprocess.Popen(
                [sys.executable, "-m", "agent", "check", "--socket", str(path), "--timeout", "20s"], cwd=ROOT
            )
            _, status, used = os.wait4(process.pid, 0)
            walls_s.append(time.monotonic() - began_s)
            cpus_s.append(used.ru_utime + used.ru_stime)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0
    with capsys.disabled():
        print(
            f"\ngpuward-agent check: {1000 * min(walls_s):.0f} ms at best, {1000 * sorted(walls_s)[10]:.0f} ms in the median, "
            f"of which {1000 * sorted(cpus_s)[10]:.0f} ms of processor time"
        )
    assert min(cpus_s) < 0.1
    assert min(walls_s) < 1.0
