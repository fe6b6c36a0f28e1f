"""gpuward as it is installed: an agent that reads the kernel log, a NATS server, a brain with all rules, a webhook channel."""

import asyncio
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import nats
import orjson
from nats.aio.msg import Msg

from agent import __version__
from agent.contract import subjects
from agent.contract.messages import encode_event
from brain.core.inputs import EventSeen, Input
from tests.benchmarks.engine import event_of
from tests.benchmarks.latency import AUTO, WARM_UP_S, repair
from tests.benchmarks.live import rate
from tests.compare import kit
from tests.compare.kit import Result
from tests.e2e.stack import Stack, stack
from tests.real.kernel_log import HEARD

NAME = "gpuward"
LINES = 100
FLEET, FIRST = 2_000, 10_000  # nodes of which some have a GPU that fails at once, and the number of the first
WITHIN_S = 10.0
# Each fault is paged by itself, as in the other systems: by default the fifth one within half a minute and those after it are
# paged together. That many nodes with one fault have a shared cause, one incident, stays: so the fleet is larger.
BY_ITSELF = "[settings]\ngroup_at_least = 0\n"


@contextmanager
def _decisions(running: Stack) -> Iterator[dict[str, float]]:
    """GPU → when a signed command about it passed a plain subscriber."""
    found: dict[str, float] = {}
    loop = asyncio.new_event_loop()
    ready, over = threading.Event(), asyncio.Event()

    async def hear() -> None:
        client = await nats.connect(running.nats.url)

        async def on_command(message: Msg) -> None:
            at, text = time.time(), message.data.decode()
            for number in range(LINES):
                if kit.gpu(number) in text:
                    found.setdefault(kit.gpu(number), at)

        await client.subscribe(subjects.command("default", running.node), cb=on_command)
        await client.flush()
        ready.set()
        await over.wait()
        await client.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(hear()), daemon=True)
    thread.start()
    assert ready.wait(30), "the broker does not answer"
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


def _first(decided: Mapping[str, float], paged: Mapping[str, float]) -> dict[str, float]:
    """The first sign of each decision outside the brain: a command and a page leave at the same time."""
    return {gpu: min(decided.get(gpu, at), at) for gpu, at in paged.items()}


async def _publish(url: str, events: Iterable[Input]) -> None:
    """Puts events on the log, as fast as the broker accepts them."""
    client = await nats.connect(url)
    log = client.jetstream(publish_async_max_pending=2 * FLEET)
    waiting = []
    for seen in events:
        assert isinstance(seen, EventSeen)
        body = orjson.dumps(encode_event(seen.event))
        subject = subjects.event("default", seen.event.node)
        waiting.append(await log.publish_async(subject, body, headers={subjects.HEADER_ID: seen.event.id}))
    await asyncio.gather(*waiting)
    await client.close()


def _burst(running: Stack, receiver: kit.Pager) -> tuple[int, float]:
    """As `kit.burst`. The fleet is heard first, and is lost well before its silence is a fault of its own."""
    started = ("agent.started", "node", {"version": "0", "kernel": "6", "gpus": 8})
    before = running.get("/api/v1/status")["inputs"]
    asyncio.run(_publish(running.nats.url, [event_of(FIRST + number, 1, started) for number in range(FLEET)]))
    running.wait_for(lambda: running.get("/api/v1/status")["inputs"] >= before + FLEET, "the fleet is heard")
    data = {"code": 64, "name": "ROW_REMAP_FAILURE", "action": "RESET_GPU", "message": "Row Remapper Error"}
    faults = [
        event_of(FIRST + number, 2, ("gpu.xid", f"gpu/{address}", data))
        for number, address in enumerate(kit.burst_gpus())
    ]
    began = time.time()
    asyncio.run(_publish(running.nats.url, faults))
    return kit.burst(receiver, began)


def _memory(running: Stack) -> kit.Memory:
    return kit.Memory(
        {"agent": running.pid("agent"), "brain": running.pid("brain"), "NATS": running.nats.pid}
    )


def _events_per_s() -> tuple[float, dict[str, float]]:
    """Of a stack of its own, as in `live`, so that no fault of the burst is still being healed; the memory that it took."""
    with tempfile.TemporaryDirectory() as folder, stack(Path(folder)) as running:
        memory = _memory(running)
        with memory.watched():
            return rate(running), memory.most


def run() -> Result:
    """Needs root (the kernel log)."""
    with ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory()))
        running = Stack(folder)
        undo.callback(running.end)
        receiver = undo.enter_context(kit.pager(running.page_port))
        running.nats.start()
        running.write_brain_config(AUTO + BY_ITSELF)
        running.start_brain()
        running.write_agent_config(HEARD)
        running.start_agent()
        time.sleep(max(WARM_UP_S, kit.SETTLE_S))
        memory = _memory(running)

        def well_again(_: int) -> None:
            repair(running)  # several GPUs of one node would be one incident

        with _decisions(running) as decided:
            failed, paged = kit.lines(receiver, LINES, (0.05, 0.15), WITHIN_S, after=well_again)
        with memory.watched():
            burst_paged, burst_s = _burst(running, receiver)
    events_per_s, loaded = _events_per_s()
    return Result(
        name=NAME,
        version=__version__,
        lines=len(failed),
        decided_s=kit.spans(failed, _first(decided, paged)),
        paged_s=kit.spans(failed, paged),
        events_per_s=events_per_s,
        burst_paged=burst_paged,
        burst_s=burst_s,
        idle_mb=memory.idle,
        load_mb=max(memory.most, loaded, key=lambda seen: sum(seen.values())),
    )
