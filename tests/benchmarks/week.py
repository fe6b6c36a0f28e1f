"""The memory of a brain over a simulated week: the live loop with rules, history and effects, in a process of its own.

`python -m tests.benchmarks.week` is that process. The log is in memory and its time is simulated, since a NATS server stamps
messages with the present; everything behind it is what runs in production. An event of each node 20 times a day, one in two
hundred a fault; no node answers a command, so that every remedy fails, and an operator closes each incident after an hour.
GPUWARD_WEEK_NODES sets the number of nodes.
"""

import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent.contract import subjects
from brain.adapters.codec import encode_event_body
from brain.adapters.log import LogClock, LogInfo, Record
from brain.core.inputs import EventSeen, Input, Leader, OperatorCommand, PackLoaded
from tests.benchmarks.engine import event_of, mixed, pack
from tests.benchmarks.figures import Figure
from tests.brain.shell.loop_kit import CELL, CODEC, NOW, Brain

NODES = int(os.environ.get("GPUWARD_WEEK_NODES", "2000"))
DAYS = 7
HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
STEP_S = 60.0  # of simulated time; what falls due in between is handled at its end
EVENTS_A_DAY = 20  # of one node
CLOSED_AFTER_S = HOUR_S
STARTED = ("agent.started", "node", {"version": "0", "kernel": "6", "gpus": 8})
GROWTH_MB = 10.0  # from the end of the second day to the end of the last one


class Week:
    """The log of one week, made as it is read. A batch is all that happens in one step."""

    def __init__(self, folder: Path) -> None:
        self.now = NOW
        self.brain = Brain("b1", folder, LogClock(lambda: self.now, lambda: self.now))
        self.seq = 0
        self.days: list[dict[str, float]] = []
        self._events = self._drawn()
        self._next = next(self._events)
        self._began = time.process_time()

    def _drawn(self) -> Iterator[tuple[float, Input]]:
        """(when, event), in order: each node starts, then the week's events, evenly."""
        for number in range(NODES):
            yield NOW, event_of(number, 1, STARTED)
        hours, per_hour = DAYS * 24, EVENTS_A_DAY * NODES // 24
        for hour in range(hours):
            for number, (given, _) in enumerate(mixed(per_hour, NODES, hour)):
                assert isinstance(given, EventSeen)
                event = given.event
                fact = event.kind, event.component, dict(event.data)
                at = NOW + HOUR_S * (hour + number / per_hour)
                yield at, event_of(int(event.node[1:]), hour * per_hour + number + 2, fact)

    async def batch(self) -> Sequence[Record]:
        """The next step; a day's end is measured before. After the last day nothing comes."""
        if self.seq == 0:
            return self._records([(NOW, given) for given in (PackLoaded(id="p", pack=pack()), _LEADS)])
        while True:
            await asyncio.sleep(0)  # what the step before has begun
            if self.now >= NOW + DAY_S * (len(self.days) + 1):
                self._measure()
            if len(self.days) == DAYS:
                await asyncio.Event().wait()
            self.now += STEP_S
            if given := [*self._happened(), *self._appended(), *self._due(), *self._closed()]:
                return self._records(given)

    def _happened(self) -> Iterator[tuple[float, Input]]:
        while self._next[0] <= self.now:
            yield self._next
            self._next = next(self._events, (float("inf"), self._next[1]))

    def _appended(self) -> list[tuple[float, Input]]:
        """What the brain has put on the log."""
        given, self.brain.outbox.inputs = self.brain.outbox.inputs, []
        for kept in (self.brain.outbox.kept, self.brain.background.names, self.brain.nodes.steps):
            kept.clear()  # the test kit's own
        self.brain.outbox.forget()
        return [(self.now, each) for each in given]

    def _due(self) -> list[tuple[float, Input]]:
        return [(self.now, timer) for timer in self.brain.timers.due(self.brain.replica.state.timers)]

    def _closed(self) -> Iterator[tuple[float, Input]]:
        """An operator looks after the incidents that wait for a person."""
        for incident in list(self.brain.replica.state.incidents.values()):
            if incident.opened_at < self.now - CLOSED_AFTER_S:
                id_ = f"o:{incident.id}:{self.now}"
                yield self.now, OperatorCommand(id=id_, who="ann", verb="close", args={"id": incident.id})

    def _records(self, given: Sequence[tuple[float, Input]]) -> list[Record]:
        records = []
        for left, (at, each) in zip(range(len(given) - 1, -1, -1), given, strict=True):
            self.seq += 1
            if isinstance(each, EventSeen):
                subject, body = subjects.event(CELL, each.event.node), encode_event_body(each)
            else:
                what, body = CODEC.encode(each)
                subject = subjects.brain_input(CELL, what)
            records.append(Record(self.seq, at, subject, body, left))
        return records

    def _measure(self) -> None:
        gc.collect()
        state = self.brain.replica.state
        self.days.append(
            {
                "rss_mb": _rss_mb(),
                "inputs": self.brain.loop.inputs,
                "incidents": len(state.incidents),
                "symptoms": len(state.symptoms),
                "cpu_s": time.process_time() - self._began,
            }
        )


_LEADS = Leader(id="l:1", epoch=1, brain="b1")


def _rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2


async def live_through() -> list[dict[str, float]]:
    """What was measured at the end of each day."""
    with tempfile.TemporaryDirectory() as folder:
        week = Week(Path(folder) / "b1")
        brain = week.brain
        async with brain.background:
            info = LogInfo(identity="log-1", first_seq=1, last_seq=1, bytes=0, max_bytes=0, max_age_s=0)
            brain.replica.attach(info)
            brain.lease.give(1)
            tasks = [asyncio.create_task(work) for work in (brain.loop.serve(week), brain.history.serve())]
            while len(week.days) < DAYS:
                done, _ = await asyncio.wait(tasks, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        brain.close()
    return week.days


def run() -> list[Figure]:
    """Some minutes."""
    child = [sys.executable, "-m", "tests.benchmarks.week"]
    days = json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE).stdout)
    memory = [day["rss_mb"] for day in days]
    grown = memory[-1] - memory[1]
    last = days[-1]
    return [
        Figure(
            what=f"a simulated week of {NODES:,} nodes, {last['inputs']:,} inputs: the brain's memory, second → last day",
            value=f"{memory[1]:.0f} → {memory[-1]:.0f} MB",
            beside=f"after each day {', '.join(f'{each:.0f}' for each in memory)} MB; at the end {last['incidents']} incidents "
            f"and {last['symptoms']} symptoms; {last['cpu_s']:.0f} s of processor time",
            target=f"grows by ≤ {GROWTH_MB:.0f} MB",
            met=grown <= GROWTH_MB,
        )
    ]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(live_through())))
