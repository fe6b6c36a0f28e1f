"""SIGKILL for brain, agent and broker at every step boundary of a three-rung ladder: all points, not a sample.

The rungs are of class never, probe and safe. Whoever dies wherever: no command runs twice, the rung of class `never` is
never attempted a second time, and every run comes to its end with a page.
"""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nats.aio.msg import Msg

from tests.e2e.stack import Stack
from tests.real.nats import client

pytestmark = pytest.mark.slow
RULES = """
symptoms:
  gpu_gone:
    scope: gpu
    summary: a job lost its GPU
    on: [{kind: job.cuda_error, where: {name: CUDA_ERROR_DEVICE_REMOVED}}]
    clear: [{kind: gpu.returned}]
rules:
  gpu-gone:
    scope: gpu
    when: {symptom: gpu_gone}
    severity: P1
    because: a job says so
    runbook: ladder
    knowledge: {cause: {en: a test, zh: 测试}, todo: {en: nothing, zh: 无}}
    examples:
      - name: it is
        given: [{event: job.cuda_error, component: "gpu/0000:3b:00", data: {name: CUDA_ERROR_DEVICE_REMOVED, job: "1", file: f}}]
        expect: {incident: gpu-gone}
      - name: it is not
        given: [{event: job.cuda_error, component: "gpu/0000:3b:00", data: {name: CUDA_ERROR_ASSERT, job: "1", file: f}}]
        expect: {nothing: true}
"""
RUNG = """  - name: {name}
    do: evidence.collect
    params: {{component: $component, window_s: 1}}
    disrupts: node
    repeat: {repeat}
    verify: {{within_s: 0.4, for_s: 0.2}}
"""
LADDER = (
    "summary: Three rungs of which none helps.\nrungs:\n"
    + "".join(RUNG.format(name=f"rung {repeat}", repeat=repeat) for repeat in ("never", "probe", "safe"))
    + "  - name: tell\n    do: page\n"
)
BRAIN = """[[modes]]
mode = "auto"
[settings]
settle_s = 0
breaker_runs = 1000
bundle_at_least = 1000
remedies_per_day = 1000
remedies_per_week = 1000
remedies_per_month = 1000
"""
RUNGS = (1, 2, 3)
BOUNDARIES = ("intent", "accepted", "done", "result")
POINTS = [(rung, boundary) for rung in RUNGS for boundary in BOUNDARIES]
VICTIMS = ("brain", "agent", "broker")
WITHIN_S = 60.0  # the longest wait for the end of one run


@dataclass(slots=True)
class Trap:
    """Kills when the boundary is seen for the run's first attempt of the rung."""

    rung: int
    boundary: str
    spring: Callable[[], None]
    sprung: threading.Event
    lock: threading.Lock

    def see(self, boundary: str, step: str) -> None:
        """A step has come to a boundary."""
        with self.lock:
            if boundary == self.boundary and f".s{self.rung}.a" in step and not self.sprung.is_set():
                self.spring()
                self.sprung.set()


class Points:
    """One stack and one victim; every point of death in turn, each with a fault of its own."""

    def __init__(self, folder: Path, victim: str) -> None:
        self.whole = Stack(folder)
        self.victim = victim
        self.trap: Trap | None = None
        self.jobs = folder / "job-1.log"
        self.journal = folder / "agent" / "journal.jsonl"
        self.over: set[str] = set()  # runs of earlier faults: a restarted agent tells their results again
        self._stop = threading.Event()

    def start(self) -> None:
        """The stack with the ladder as its only runbook."""
        whole = self.whole
        for path in (*whole.folder.glob("rules/*.yaml"), *whole.folder.glob("runbooks/*.yaml")):
            path.unlink()
        (whole.folder / "rules" / "ladder.yaml").write_text(RULES)
        (whole.folder / "runbooks" / "ladder.yaml").write_text(LADDER)
        self.jobs.write_text("")
        whole.nats.start()
        whole.start_receiver()
        whole.write_brain_config(BRAIN)
        whole.start_brain()
        whole.write_agent_config(f'job_logs = ["{self.jobs}"]\nallow = ["evidence.collect"]')
        whole.start_agent()
        for watch in (self._watch_journal, lambda: asyncio.run(self._watch_log())):
            threading.Thread(target=watch, daemon=True).start()

    def end(self) -> None:
        """Everything."""
        self._stop.set()
        self.whole.end()

    def _watch_journal(self) -> None:
        read, inode = 0, 0
        while not self._stop.wait(0.002):
            with contextlib.suppress(FileNotFoundError):
                now = self.journal.stat()
                if now.st_ino != inode:  # it is written again at each start of the agent
                    read, inode = 0, now.st_ino
                if now.st_size > read:
                    read += self._read_journal(read)

    def _read_journal(self, start: int) -> int:
        """Sees what whole lines say from this byte on; how many bytes they have."""
        with self.journal.open("rb") as file:
            file.seek(start)
            whole = file.read().rpartition(b"\n")[0]
        for line in whole.splitlines():
            with contextlib.suppress(ValueError):
                raw = json.loads(line)
                if "accepted" in raw:
                    self._see("accepted", raw["accepted"]["id"])
                elif "done" in raw:
                    self._see("done", raw["done"])
        return len(whole) + 1 if whole else 0

    async def _watch_log(self) -> None:
        async def hear(message: Msg) -> None:
            with contextlib.suppress(ValueError):
                raw = json.loads(message.data)
                if message.subject.endswith(".input.intent"):
                    self._see("intent", raw["step"])
                elif raw.get("kind") == "command.result":
                    self._see("result", raw["data"]["command"])

        async with client(self.whole.nats.url) as bus:
            await bus.subscribe("ward.default.>", cb=hear)
            while not self._stop.is_set():
                await asyncio.sleep(0.05)

    def _see(self, boundary: str, step: str) -> None:
        if self.trap is not None and step.rsplit(".", 2)[0] not in self.over:
            self.trap.see(boundary, step)

    def _kill(self) -> None:
        if self.victim == "broker":
            self.whole.nats.kill()
        else:
            self.whole.kill(self.victim)

    def _revive(self) -> None:
        if self.victim == "broker":
            self.whole.nats.start()
        elif self.victim == "brain":
            self.whole.start_brain()
        else:
            self.whole.start_agent()

    def die_at(self, number: int, rung: int, boundary: str) -> None:
        """A fault; death at the boundary; back to life; and what must be true in the end."""
        gpu = f"0000:{number:02x}:00"
        self.trap = Trap(
            rung=rung, boundary=boundary, spring=self._kill, sprung=threading.Event(), lock=threading.Lock()
        )
        where = f"{self.victim} killed at {boundary} of rung {rung}"
        deadline = time.monotonic() + WITHIN_S
        while not self.trap.sprung.is_set():
            assert time.monotonic() < deadline, f"{where}: never got there\n{self.whole.last_words()}"
            # Again and again until it is heard: before the agent's first start nobody has followed the log.
            with self.jobs.open("a") as log:
                log.write(f"[rank0] CUDA_ERROR_DEVICE_REMOVED on GPU {gpu}.0\n")
            self.trap.sprung.wait(2.0)
        self._revive()
        run = self.whole.wait_for(lambda: self._ended(gpu), f"{where}: the run has ended", within_s=WITHIN_S)
        assert run is not None
        assert run["state"] == "exhausted", (where, run)
        assert all(step["outcome"] for step in run["steps"]), (where, run["steps"])
        assert {".s1.", ".s2.", ".s3.", ".s4."} <= {
            f".{step['id'].rsplit('.', 2)[1]}." for step in run["steps"]
        }
        accepted = self._accepted(run["id"])
        assert len(accepted) == len(set(accepted)), (where, accepted)
        first = [command for command in accepted if ".s1." in command]
        assert len(first) <= 1, (where, accepted)
        self.over.add(run["id"])
        self.whole.wait_for(lambda: self._paged(gpu), f"{where}: people are told", within_s=WITHIN_S)

    def _ended(self, gpu: str) -> dict[str, Any] | None:
        for incident in self.whole.incidents("gpu-gone", over=True):
            if incident["scope"].endswith(gpu):
                for run in self.whole.get(f"/api/v1/explain/{incident['id']}").get("runs", ()):
                    if run["state"] in ("exhausted", "succeeded", "cancelled") and run["steps"]:
                        return dict(run)
        return None

    def _accepted(self, run: str) -> list[str]:
        lines = [json.loads(line) for line in self.journal.read_text().splitlines() if '"accepted"' in line]
        return [line["accepted"]["id"] for line in lines if line["accepted"]["id"].startswith(run + ".")]

    def _paged(self, gpu: str) -> bool:
        return any(gpu in page["title"] for page in self.whole.pages())


def test_a_death_at_any_boundary_does_nothing_twice_and_every_run_ends(tmp_path: Path) -> None:
    """36 deaths: three victims side by side, each at all twelve boundaries."""
    stacks = [Points(tmp_path / victim, victim) for victim in VICTIMS]

    def all_points(one: Points) -> int:
        try:
            one.start()
            for number, (rung, boundary) in enumerate(POINTS, 1):
                one.die_at(number, rung, boundary)
        finally:
            one.end()
        return len(POINTS)

    with ThreadPoolExecutor(len(stacks)) as pool:
        done = list(pool.map(all_points, stacks))
    assert done == [len(POINTS)] * len(VICTIMS)
