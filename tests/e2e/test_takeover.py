"""The leader is killed at three moments of a command, and the other brain takes the run over: real agent, broker and brains.

What stands between two moments is held up on the way to the broker, so each death comes at its moment, however fast the
machine is. No command is performed twice, and the repeat class of the rung says what becomes of the run (law 4).
"""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from nats.aio.msg import Msg

from tests.chaos.proxy import Proxy
from tests.e2e.stack import Stack
from tests.e2e.test_crash_points import BRAIN, RULES, RUNG
from tests.nightly import covering
from tests.real.nats import client

pytestmark = [pytest.mark.slow, pytest.mark.component("nats-server"), pytest.mark.timeout(300)]
GPU = "0000:0a:00"
# So long that the leader's death comes before its end.
VERIFY = "within_s: 5, for_s: 4"
RETRIES = {"never": 0, "probe": 1, "safe": 0}
FIRST, SECOND = "a1", "a2"


class Moment(NamedTuple):
    """When the leader dies, and by repeat class which attempts the node takes in all."""

    name: str
    never: tuple[str, ...]
    probe: tuple[str, ...]
    safe: tuple[str, ...]


MOMENTS = (
    # The command never left: it is performed only where it may be asked again by its id, or after a look.
    Moment("after the intent, before the command", never=(), probe=(SECOND,), safe=(FIRST,)),
    # Asked again by its id the node says that it has it; `probe` looks first, and finds the fault.
    Moment("after the command, before its result", never=(FIRST,), probe=(FIRST, SECOND), safe=(FIRST,)),
    # What is known is not asked again: it is verified.
    Moment("after the result, before the verification", never=(FIRST,), probe=(FIRST, SECOND), safe=(FIRST,)),
)


class Takeover:
    """A stack with two brains; the leader's and the agent's ways to the broker can be held up."""

    def __init__(self, folder: Path, repeat: str) -> None:
        self.whole = Stack(folder)
        self.to_leader, self.to_agent = Proxy(self.whole.nats.port), Proxy(self.whole.nats.port)
        self.jobs = folder / "job-1.log"
        self.journal = folder / "agent/journal.jsonl"
        self._ladder = (
            "summary: One rung that does not help.\nrungs:\n"
            + RUNG.format(name="rung", repeat=repeat).replace("within_s: 0.4, for_s: 0.2", VERIFY)
            + f"    retries: {RETRIES[repeat]}\n"
            + "  - name: tell\n    do: page\n"
        )

    def start(self) -> None:
        """The leader, the brain beside it, and an agent that is heard."""
        whole = self.whole
        for path in (*whole.folder.glob("rules/*.yaml"), *whole.folder.glob("runbooks/*.yaml")):
            path.unlink()
        (whole.folder / "rules/ladder.yaml").write_text(RULES)
        (whole.folder / "runbooks/ladder.yaml").write_text(self._ladder)
        self.jobs.write_text("")
        whole.nats.start()
        for way in (self.to_leader, self.to_agent):
            way.start()
        whole.start_receiver()
        self._through(self.to_leader, whole.write_brain_config(BRAIN))
        whole.start_brain()
        whole.write_brain_config(BRAIN)
        whole.start_standby()
        config = whole.write_agent_config(f'job_logs = ["{self.jobs}"]\nallow = ["evidence.collect"]')
        self._through(self.to_agent, config)
        whole.start_agent()

    def _through(self, way: Proxy, config: Path) -> None:
        text = config.read_text()
        assert f":{self.whole.nats.port}" in text
        config.write_text(text.replace(f":{self.whole.nats.port}", f":{way.port}"))

    def fault_until(self, seen: threading.Event) -> None:
        """Until `seen`. Again and again: before the agent's first start nobody has followed the job's log."""
        deadline = time.monotonic() + 60
        while not seen.is_set():
            assert time.monotonic() < deadline, f"it never came to that\n{self.whole.last_words()}"
            with self.jobs.open("a") as log:
                log.write(f"[rank0] CUDA_ERROR_DEVICE_REMOVED on GPU {GPU}.0\n")
            seen.wait(2.0)

    def entries(self, what: str) -> list[Any]:
        """What the node's journal has of this, in order."""
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [raw[what] for raw in map(json.loads, lines) if what in raw]

    def attempts(self) -> list[str]:
        """Of the commands that the node has taken."""
        return [one["id"].rpartition(".")[2] for one in self.entries("accepted")]

    def die(self, moment: Moment) -> None:
        """The leader is killed at this moment, and the other brain leads."""
        whole = self.whole
        match MOMENTS.index(moment):
            case 0:
                self.to_leader.hold_after(b"ward.default.input.intent")
                self.fault_until(self.to_leader.held)
                assert self.attempts() == []
            case 1:
                self.to_agent.hold_after(f"ward.default.offer.{whole.node}.answer".encode())
                self.fault_until(self.to_agent.held)
                assert self.attempts() == [FIRST]
            case _:
                with result_on_the_log(whole.nats.url) as seen:
                    self.fault_until(seen)
                (run,) = self.runs()
                assert [step["verified"] for step in run["steps"]] == [None], "it is being verified"
        whole.kill("brain")
        whole.url = whole.url_of("standby")
        whole.wait_for(lambda: whole.get("/api/v1/status").get("leads"), "the other brain leads")
        self.to_agent.heal()

    def runs(self) -> list[dict[str, Any]]:
        """Of the incident, as whoever is asked tells it."""
        return [
            dict(run)
            for incident in self.whole.incidents("gpu-gone", over=True)
            for run in self.whole.get(f"/api/v1/explain/{incident['id']}").get("runs", ())
        ]

    def ended(self) -> dict[str, Any] | None:
        """The run, when it has."""
        return next((run for run in self.runs() if run["state"] == "exhausted"), None)

    def end(self) -> None:
        """Everything."""
        self.whole.end()
        for way in (self.to_leader, self.to_agent):
            way.stop()


@contextmanager
def result_on_the_log(url: str) -> Iterator[threading.Event]:
    """Set when a command's result is there."""
    seen, over = threading.Event(), threading.Event()

    async def watch() -> None:
        async def hear(message: Msg) -> None:
            if json.loads(message.data).get("kind") == "command.result":
                seen.set()

        async with client(url) as bus:
            await bus.subscribe("ward.default.event.>", cb=hear)
            while not over.is_set():
                await asyncio.sleep(0.02)

    thread = threading.Thread(target=lambda: asyncio.run(watch()))
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join(60)


@pytest.mark.parametrize(
    ("moment", "repeat"),
    covering("each moment and each class has a death in CI", MOMENTS, ("never", "probe", "safe")),
    ids=lambda one: one if isinstance(one, str) else one.name.replace(" ", "-"),
)
def test_the_other_brain_takes_the_run_over(tmp_path: Path, moment: Moment, repeat: str) -> None:
    """It goes on as its class says and ends with a person who is told; the dead brain comes back, and does nothing more."""
    cell = Takeover(tmp_path, repeat)
    whole = cell.whole
    try:
        cell.start()
        cell.die(moment)
        run = whole.wait_for(cell.ended, "the run ends")
        assert run is not None
        steps = [step for step in run["steps"] if ".s1." in step["id"]]
        expected = getattr(moment, repeat)
        assert tuple(cell.attempts()) == expected, steps
        asked_again = repeat == "safe" or moment is MOMENTS[2]
        assert steps[0]["outcome"] == ("ok" if asked_again else "unknown"), steps
        assert [step["verified"] for step in steps] == [False] * (1 + RETRIES[repeat]), "the fault goes on"
        whole.wait_for(lambda: [page for page in whole.pages() if GPU in page["title"]], "a person is told")
        whole.start_brain(leads=False)
        whole.wait_for(lambda: len(cell.entries("done")) == len(expected), "each has its result")
        assert len(set(cell.entries("done"))) == len(expected)
        assert tuple(cell.attempts()) == expected
        assert [one["id"] for one in cell.runs()] == [run["id"]]
    finally:
        cell.end()
