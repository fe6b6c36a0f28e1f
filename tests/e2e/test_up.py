"""`gpuward up` and `gpuward drill` as a user types them."""

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

import pytest

from simulations.children import STOP_WITHIN_S
from tests.real.nats import free_port

BIN = Path(sys.executable).parent
XID = "GPU has fallen off the bus"


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


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_up_heals_three_faults_at_once_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Two commands and three drills: nodes reset, rebooted, drained; all watched, explained back to the kernel line, and kept."""
    data = tmp_path / "data"
    with running(data) as up:
        assert up.said.count(str(data)) >= 5
        # On a slow machine the table is printed before all of them are heard.
        up.until(lambda: len(up.get("/api/v1/nodes")["nodes"]) >= 5, "all nodes are heard")
        nodes = {node["name"]: node for node in up.get("/api/v1/nodes")["nodes"]}
        assert [name for name in nodes if name.startswith("sim-")] == ["sim-01", "sim-02", "sim-03", "sim-04"]
        assert len(nodes) == 5, "and this machine"
        assert {node["leaf"] for node in nodes.values()} == {"leaf-1", "leaf-2", ""}
        modes = [(mode["nodes"], mode["mode"]) for mode in up.get("/api/v1/status")["modes"]]
        assert modes == [("*", "observe"), ("sim-*", "auto"), ("", "auto")]

        with subprocess.Popen(
            [str(BIN / "gpuward"), "watch", "--json"], env=up.env(), stdout=subprocess.PIPE, text=True
        ) as watch:
            drills = {
                name: subprocess.Popen(
                    [str(BIN / "gpuward"), "drill", name, "--node", node, "--wait"],
                    env=up.env(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                )
                for name, node in (("gpu-off-bus", "sim-02"), ("gpu-needs-reset", "sim-03"))
            }  # fmt: skip
            link = up.gpuward("drill", "link-down", "--node", "sim-01", "--wait")
            assert "How it ends: link.bounce on it." in link
            assert link.index("run.performing") < link.index("run.succeeded") < link.index("incident.closed")
            said = {}
            for name, process in drills.items():
                said[name], _ = process.communicate(timeout=240)
                assert process.returncode == 0, said[name] + up.logs()
            steps = (
                "evidence: ok",
                "drain: ok",
                "reboot did not help",
                "power cycle worked",
                "resume: ok",
                "incident.closed",
            )
            where = [said["gpu-off-bus"].index(step) for step in steps]
            assert where == sorted(where)
            assert "reset worked" in said["gpu-needs-reset"]
            watch.terminate()
            notes = [json.loads(line) for line in watch.communicate()[0].splitlines()]
        # This machine's own agent may have its incidents too.
        assert sum(note["kind"] == "incident.closed" and "/sim-" in note["scope"] for note in notes) == 3

        over = {
            incident["cause"]: incident
            for incident in up.get("/api/v1/incidents?all=1")["incidents"]
            if incident["node"].startswith("sim-")
        }
        assert set(over) == {"gpu-lost", "link-down", "gpu-fatal-xid"}
        assert XID in up.gpuward("explain", over["gpu-lost"]["id"])
        pages = (data / "brain" / "pages.log").read_text()
        assert re.search(rf"^\[P1\] (UPDATE: )?gpu-lost on {over['gpu-lost']['scope']}$", pages, re.MULTILINE)
        assert f"[P1] RESOLVED: gpu-lost on {over['gpu-lost']['scope']}" in pages
        assert up.end(signal.SIGINT) == 0
        assert "stopped" in up.said
        assert up.left() == []

    with running(data) as up:
        again = up.get("/api/v1/incidents?all=1")["incidents"]
        assert {incident["id"] for incident in over.values()} <= {incident["id"] for incident in again}
        closed = "incident.closed" in up.gpuward("drill", "link-down", "--wait")
        assert closed, "the keys of the first start still fit"
        assert up.end(signal.SIGTERM) == 0
        assert up.left() == []


@pytest.mark.slow
def test_what_prevents_a_start_is_reported_and_nothing_is_left_behind(tmp_path: Path) -> None:
    """A folder in use, a taken port, a folder that is a file, a wrong drill, a part that dies."""
    data = tmp_path / "data"
    with running(data, nodes=1) as up:
        second = Up(data, nodes=1)
        assert second.process.wait(60) == 2
        assert f"in use by another `gpuward up` (pid {up.process.pid})" in second.said
        other = Up(tmp_path / "other", port=up.port, nodes=1)
        assert other.process.wait(60) == 2
        assert f"port {up.port} of 127.0.0.1: Address already in use" in other.said
        assert other.left() == []
        (tmp_path / "file").write_text("")
        third = Up(tmp_path / "file", nodes=1)
        assert third.process.wait(60) == 2
        assert "--data" in third.said
        assert not any("Traceback" in one.said for one in (second, other, third))

        assert "there is no drill 'gpu-on-fire'" in up.gpuward("drill", "gpu-on-fire", ok=False)
        assert "'n7' is not a simulated node" in up.gpuward("drill", "link-down", "--node", "n7", ok=False)
        assert "gpu-off-bus" in up.gpuward("drill", "--list")
        names = [row["name"] for row in json.loads(up.gpuward("drill", "--list", "--json"))]
        assert "cable-cut" in names

        # Nothing says which brain is meant: the one that answers, with its own folder and file.
        found = {one["check"]: one for one in json.loads(up.doctor())["checks"]}
        assert str(data / "config" / "brain.toml") in found["configuration"]["text"]
        assert str(data / "brain" / "pages.log") in found["channels"]["text"]
        assert {name: one["text"] for name, one in found.items() if one["health"] == "fail"} == {}

        pid = up.pid("brain")
        os.kill(pid, signal.SIGKILL)
        assert up.process.wait(60) == 1
        assert f"brain (pid {pid}) was ended by SIGKILL" in up.said
        assert up.left() == []


@pytest.mark.slow
def test_a_killed_up_leaves_nobody_behind_and_the_next_one_can_be_forced_to_end(tmp_path: Path) -> None:
    """SIGKILL of `up`: the kernel ends its children, and the next start on the folder works. When a part of that one
    does not stop, the second Ctrl-C ends everything at once, with another status."""
    with running(tmp_path / "data", nodes=1) as up:
        up.end(signal.SIGKILL)
        deadline = time.monotonic() + 60
        while up.left():
            assert time.monotonic() < deadline, up.left()
            time.sleep(0.05)
    with running(tmp_path / "data", nodes=1) as up:
        os.kill(up.pid("fleet"), signal.SIGSTOP)
        began = time.monotonic()
        up.process.send_signal(signal.SIGINT)
        up.until(lambda: "stopping" in up.said, "up stops")
        time.sleep(0.3)
        assert up.process.poll() is None
        assert up.end(signal.SIGINT) == 130
        assert time.monotonic() - began < STOP_WITHIN_S, "nobody has waited for the part that does not stop"
        assert up.left() == []
