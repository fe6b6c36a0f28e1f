"""A real brain process on a real broker: events a second from the log, and a standby that takes over."""

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
from tests.benchmarks.latency import AUTO, write
from tests.e2e.stack import Stack, stack
from tests.real.kernel_log import HEARD

EVENTS = 60_000
NODES = 500
WINDOW = 500
TAKEOVERS = 5


async def _publish(url: str) -> None:
    """All events onto the log, as fast as the broker takes them."""
    client = await nats.connect(url)
    log = client.jetstream(publish_async_max_pending=2 * WINDOW)
    waiting = []
    for given, _ in mixed(EVENTS, NODES, 7):
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


def _rate(whole: Stack) -> float:
    """Events a second from the first publish until the brain has handled the last."""
    before = whole.get("/api/status")["inputs"]
    began = time.perf_counter()
    asyncio.run(_publish(whole.nats.url))
    whole.wait_for(
        lambda: whole.get("/api/status")["inputs"] >= before + EVENTS, "all are handled", within_s=120
    )
    return EVENTS / (time.perf_counter() - began)


def throughput() -> Figure:
    """The publisher, the broker and the brain share the machine's two cores."""
    with tempfile.TemporaryDirectory() as folder, stack(Path(folder)) as whole:
        busy = whole.get("/api/status")["busy_s"]
        rate = _rate(whole)
        alone = EVENTS / (whole.get("/api/status")["busy_s"] - busy)
    return Figure(
        what=f"brain live, log → decision, {EVENTS:,} events published at once",
        value=f"{rate:,.0f} events/s",
        beside=f"{alone:,.0f}/s while it works; ansible-rulebook 4,900 (6,500 tuned)",
        target="≥ 10,000 events/s",
        met=rate >= 10_000,
    )


def _told(journal: Path, token: str) -> bool:
    return journal.exists() and token in journal.read_text()


def takeover() -> Figure:
    """SIGKILL of the leader in the moment of a fault → the command of the standby arrives."""
    times = []
    for number in range(TAKEOVERS):
        with (
            tempfile.TemporaryDirectory() as folder,
            stack(Path(folder), brain=AUTO, agent=HEARD) as whole,
        ):
            whole.start_standby()
            token = f"{0x7100 + number:04x}:{int(time.time()) % 256:02x}:00"
            journal = Path(folder) / "agent" / "journal.jsonl"
            whole.kill("brain")
            began = time.perf_counter()
            write(f"NVRM: Xid (PCI:{token}): 79, GPU has fallen off the bus.")
            whole.wait_for(partial(_told, journal, token), "the node was told", within_s=15)
            times.append(time.perf_counter() - began)
    middle = percentile(times, 0.5)
    return Figure(
        what=f"leader killed → standby acts, median of {TAKEOVERS}",
        value=f"{middle:.1f} s",
        beside=f"{min(times):.1f} to {max(times):.1f} s",
        target="≤ 3 s",
        met=middle <= 3,
    )


def run() -> list[Figure]:
    """Needs root (the kernel log)."""
    return [throughput(), takeover()]
