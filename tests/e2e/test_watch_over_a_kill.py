"""`gpuward watch`'s client over brains that are killed: it comes again where it was, misses nothing and gets nothing twice."""

import threading
import time
from pathlib import Path

import click
import pytest

from brain.cli.client import Client
from tests.e2e.stack import Stack

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.slow]
KILLS = 3


def test_a_brain_is_killed_while_somebody_watches(tmp_path: Path) -> None:
    """SIGKILL while commands are given: what the log has is told, in the order of the history, each note once."""
    whole = Stack(tmp_path / "stack")
    client = Client(whole.url, whole.ann)
    told: list[str] = []
    stop, begun = threading.Event(), threading.Event()
    lost = 0

    def watches() -> None:
        nonlocal lost
        at = ""
        while not stop.is_set():
            before = at
            try:
                for where, note in client.watch(0, at):
                    lost += bool(before) and note is None and where != before
                    at = before = where
                    begun.set()
                    if note is not None:
                        told.append(note["id"])
                    if stop.is_set():
                        return
            except click.ClickException:
                time.sleep(0.05)

    def gives(why: str) -> None:
        """A command, again until a brain takes it."""

        def taken() -> bool:
            try:
                client.submit("hold", scope="all", why=why)
            except click.ClickException:
                return False
            return True

        whole.wait_for(taken, f"the command {why!r} is taken")

    watcher = threading.Thread(target=watches, daemon=True)
    try:
        whole.nats.start()
        whole.start_receiver()
        whole.write_brain_config()
        whole.start_brain()
        watcher.start()
        assert begun.wait(60), "the watch has begun"
        for kill in range(KILLS):
            for number in range(5):
                gives(f"look {kill}.{number}")
            whole.kill("brain")
            whole.start_brain()
        gives("the last look")
        notes = whole.get("/api/v1/notes?limit=1000")["notes"]
        last = next(one["id"] for one in notes if "the last look" in one["text"])
        whole.wait_for(lambda: last in told, "the last note is told")
        engine = [one["id"] for one in reversed(notes) if one["id"].startswith("s:")]
        heard = [one for one in told if one.startswith("s:")]
        assert heard == engine[: len(heard)]
        assert len(heard) >= KILLS * 5 + 1
        assert lost == 0
        assert len(told) == len(set(told))
    finally:
        stop.set()
        whole.end()
        if watcher.is_alive():
            watcher.join(60)
