"""`log_format = "json"`: the logs of brain and agent, as a collector of logs reads them, of one fault and its first step."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack import Stack
from tests.e2e.test_spine import ALLOWED, AUTO, address
from tests.real.kernel_log import write_kernel_line

pytestmark = [pytest.mark.root, pytest.mark.slow]
PAGE = Path(__file__).resolve().parents[2] / "docs/operations.md"
JSON = 'log_format = "json"\n'


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    """Every whole line of a log, of which the last may be under way; the test fails at one that is no object."""
    return [json.loads(line) for line in (folder / f"{name}.log").read_text().split("\n")[:-1]]


def as_documented(log: Path, incident: str) -> list[str]:
    """What the command of docs/operations.md shows of a journal, in which systemd says of the unit what it does with it."""
    (command,) = re.findall(r"journalctl -u gpuward -o cat \| (jq .*)", PAGE.read_text())
    journal = (
        f"Started gpuward.service - gpuward brain.\n{log.read_text()}gpuward.service: Consumed 7s CPU time.\n"
    )
    done = subprocess.run(
        ["sh", "-c", command.replace("inc-…", incident)],
        input=journal,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_step_is_found_in_both_logs_by_its_ids(tmp_path: Path) -> None:
    """The same incident, run and step stand on the lines of the brain, which orders it, and of the agent, which does it."""
    whole = Stack(tmp_path)
    try:
        whole.nats.start()
        whole.start_receiver()
        config = whole.write_brain_config(AUTO)
        config.write_text(JSON + config.read_text())
        whole.start_brain()
        whole.write_agent_config(f"{ALLOWED}\n{JSON}")
        whole.start_agent()
        where = address()
        write_kernel_line(f"NVRM: Xid (PCI:{where}): 79, GPU has fallen off the bus.")

        def done() -> list[dict[str, Any]]:
            return [
                one for one in read(tmp_path, "agent") if "evidence.collect" in one["text"] and "step" in one
            ]

        (begun, *_) = whole.wait_for(done, "the agent collects evidence")
        opened = [one for one in read(tmp_path, "brain") if one.get("kind") == "incident.opened"]
        (incident,) = {one["incident"] for one in opened if where in one["scope"]}
        assert begun["incident"] == incident
        step = begun["step"]
        whole.wait_for(
            lambda: [
                one for one in read(tmp_path, "agent") if one.get("step") == step and ": ok: " in one["text"]
            ],
            "its end stands there too",
        )
        whole.wait_for(
            lambda: [
                one
                for one in read(tmp_path, "brain")
                if one["logger"] == "brain.notes" and one.get("run") == begun["run"]
            ],
            "the brain notes what becomes of the run",
        )
        told = [json.loads(line) for line in as_documented(tmp_path / "brain.log", incident)]
        assert {one["incident"] for one in told} == {incident}
        assert {"incident.opened"} <= {one.get("kind") for one in told}
        for name in ("brain", "agent"):
            for one in read(tmp_path, name):
                assert {"at", "level", "logger", "text"} <= set(one)
                assert one["at"].endswith("Z")
    finally:
        whole.end()
