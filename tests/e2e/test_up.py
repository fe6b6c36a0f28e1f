"""`gpuward up` and `gpuward drill` as a user types them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simulations.children import STOP_WITHIN_S
from tests.e2e.up import BIN, Up, running

XID = "GPU has fallen off the bus"


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
    """SIGKILL of `up`: the kernel ends its children, and the next start there, typed at once, waits for that.
    When a part of that one does not stop, the second Ctrl-C ends everything at once, with another status."""
    with running(tmp_path / "data", nodes=1) as up:
        up.end(signal.SIGKILL)
    up = Up(tmp_path / "data", port=up.port, nodes=1)
    try:
        up.ready()
    finally:
        up.end()
    assert up.left() == []
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


def test_a_ctrl_c_after_the_end_changes_the_status_no_more() -> None:
    """The third Ctrl-C of somebody in a hurry comes when the event loop has gone and the interpreter ends."""
    code = """if True:
        import asyncio, os, signal, sys
        from simulations import up

        async def main():
            up._signals()
            up._ignore_signals()
            return 130

        status = asyncio.run(main())
        os.kill(os.getpid(), signal.SIGINT)
        sys.exit(status)
    """
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 130
