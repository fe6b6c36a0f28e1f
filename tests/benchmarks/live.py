"""A real brain process on a real broker: events a second from the log, and the takeover by a standby."""

import asyncio
import tempfile
import time
from functools import partial
from pathlib import Path

import nats
import orjson

from agent.contract import subjects
from agent.contract.messages import encode_event
from brain.core.inputs import EventSeen
from tests.benchmarks.engine import mixed
from tests.benchmarks.figures import Figure, percentile
from tests.benchmarks.latency import AUTO, fault, write
from tests.e2e.stack import Stack, stack
from tests.real.kernel_log import HEARD

EVENTS = 60_000
NODES = 500
WINDOW = 500
TAKEOVERS = 5


async def publish(url: str, events: int = EVENTS) -> None:
    """Publishes so many events to the log, as fast as the broker accepts them."""
    client = await nats.connect(url)
    log = client.jetstream(publish_async_max_pending=2 * WINDOW)
    waiting = []
    for given, _ in mixed(events, NODES, 7):
        assert isinstance(given, EventSeen)
        event = given.event
        body = orjson.dumps(encode_event(event))
        headers = {subjects.HEADER_ID: event.id}
        waiting.append(await log.publish_async(subjects.event("default", event.node), body, headers=headers))
        if len(waiting) >= WINDOW:
            await asyncio.gather(*waiting)
            waiting = []
    await asyncio.gather(*waiting)
    await client.close()


def rate(running: Stack) -> float:
    """Events a second from the first publish until the brain has handled the last."""
    before = running.get("/api/v1/status")["inputs"]
    began = time.perf_counter()
    asyncio.run(publish(running.nats.url))
    running.wait_for(
        lambda: running.get("/api/v1/status")["inputs"] >= before + EVENTS,
        "all events are handled",
        within_s=120,
    )
    return EVENTS / (time.perf_counter() - began)


def throughput() -> Figure:
    """The publisher, the broker and the brain share the machine's two cores."""
    with tempfile.TemporaryDirectory() as folder, stack(Path(folder)) as running:
        busy = running.get("/api/v1/status")["busy_s"]
        handled = rate(running)
        alone = EVENTS / (running.get("/api/v1/status")["busy_s"] - busy)
    return Figure(
        what=f"brain live, log → decision, {EVENTS:,} events published at once",
        value=f"{handled:,.0f} events/s",
        beside=f"{alone:,.0f}/s while it works; ansible-rulebook 4,900 (6,500 tuned)",
        target="≥ 10,000 events/s",
        met=handled >= 10_000,
    )


def backlog() -> Figure:
    """The brain and the broker alone: the events are on the log when the brain starts."""
    with tempfile.TemporaryDirectory() as folder, stack(Path(folder)) as running:
        running.stop("brain")
        asyncio.run(publish(running.nats.url))
        running.start_brain(leads=False, caught_up=False)
        at_first, began = running.get("/api/v1/status"), time.perf_counter()
        running.wait_for(
            lambda: running.get("/api/v1/status")["caught_up"], "it has read the log", within_s=120
        )
        took = time.perf_counter() - began
        at_last = running.get("/api/v1/status")
    handled, busy_s = (at_last[key] - at_first[key] for key in ("inputs", "busy_s"))
    return Figure(
        what=f"brain live, a backlog of {EVENTS:,} events, log → decision",
        value=f"{handled / took:,.0f} events/s",
        beside=f"{handled / busy_s:,.0f}/s while it works",
        target="≥ 40,000 events/s",
        met=handled / took >= 40_000,
    )


def _logged(journal: Path, token: str) -> bool:
    return journal.exists() and token in journal.read_text()


def takeover() -> Figure:
    """From the fault, with the leader killed just before it, to the command of the standby."""
    times = []
    for number in range(TAKEOVERS):
        with (
            tempfile.TemporaryDirectory() as folder,
            stack(Path(folder), brain=AUTO, agent=HEARD) as running,
        ):
            running.start_standby()
            token = f"{0x7100 + number:04x}:{int(time.time()) % 256:02x}:00"
            journal = Path(folder) / "agent" / "journal.jsonl"
            running.kill("brain")
            began = time.perf_counter()
            write(fault(token))
            running.wait_for(partial(_logged, journal, token), "the node has the command", within_s=15)
            times.append(time.perf_counter() - began)
    middle = percentile(times, 0.5)
    return Figure(
        what=f"leader killed → standby acts, median of {TAKEOVERS}",
        value=f"{middle:.1f} s",
        beside=f"{min(times):.1f} to {max(times):.1f} s",
        target="≤ 1.5 s",
        met=middle <= 1.5,
    )


def run() -> list[Figure]:
    """Needs root (the kernel log)."""
    return [throughput(), backlog(), takeover()]
