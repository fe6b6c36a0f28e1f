"""An agent says when it starts whether it had been stopped in order, and whether its machine was booted since."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import orjson

from agent.contract import kinds
from agent.contract.kinds import KINDS
from agent.contract.messages import Severity, UnsentEvent
from tests.agent.check_kit import ROOT, until


def starts(folder: Path) -> list[UnsentEvent]:
    """What the agents that ran here said when they started, the first one first."""
    file = folder / "agent/spool.db"
    if not file.exists():
        return []
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as spool:
        if not spool.execute("SELECT name FROM sqlite_master WHERE name = 'events'").fetchall():
            return []  # it is just being made
        bodies = [orjson.loads(row[0]) for row in spool.execute("SELECT body FROM events ORDER BY seq")]
    return [
        UnsentEvent(kind=one["kind"], component=one["component"], severity=Severity.INFO, data=one["data"])
        for one in bodies
        if one["kind"] == "agent.started"
    ]


def run(folder: Path, boot: str, end: signal.Signals) -> None:
    """An agent without a broker on a machine of this boot, until it has said that it started; then it is ended."""
    file = folder / "machine/proc/sys/kernel/random/boot_id"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{boot}\n")
    known = len(starts(folder))
    options = [
        "node=gpu1",
        f"data_dir={folder}/agent",
        f"root={folder}/machine",
        "nats_url=nats://127.0.0.1:1",
    ]
    argv = [sys.executable, "-m", "agent", "run", *(word for one in options for word in ("--set", one))]
    with (folder / "agent.log").open("ab") as log:
        process = subprocess.Popen(
            argv, cwd=ROOT, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=log
        )
        try:
            until(lambda: len(starts(folder)) > known or process.poll() is not None, "it does not start")
            assert process.poll() is None, (folder / "agent.log").read_text()
            process.send_signal(end)
            process.wait(90)
        finally:
            process.kill()
            process.wait(60)


def test_who_was_stopped_says_so_and_who_was_killed_does_not(tmp_path: Path) -> None:
    """A reboot that somebody asked for stops the agent; a loss of power, or a panic, does not. What was said of one end is not
    said of the next one.
    """
    for boot, end in (
        ("first", signal.SIGTERM),  # rebooted
        ("second", signal.SIGKILL),  # lost its power
        ("third", signal.SIGTERM),  # the agent alone was stopped
        ("third", signal.SIGKILL),  # and killed
        ("third", signal.SIGKILL),
    ):
        run(tmp_path, boot, end)
    said = starts(tmp_path)
    assert "in_order" in {one.name for one in KINDS["agent.started"].fields}
    for one in said:
        kinds.check(one)
    assert [(one.data["booted"], one.data["in_order"]) for one in said] == [
        (False, False),
        (True, True),
        (True, False),
        (False, True),
        (False, False),
    ]
