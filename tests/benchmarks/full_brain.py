"""A real brain on a real broker, full: nodes with inventories and places, and open incidents of many kinds.

python -m tests.benchmarks.full_brain FOLDER [NODES [INCIDENTS]]     # serves until Ctrl-C
"""

import asyncio
import contextlib
import itertools
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import nats
import orjson

from agent.contract import subjects
from agent.contract.messages import Event, encode_event
from brain.core.inputs import EventSeen
from tests.benchmarks.engine import FAULTS, event_of
from tests.benchmarks.one_voice import name
from tests.e2e.stack import Stack

PER_RACK, PER_LEAF, PER_POD = 8, 32, 512
WITH_CARDS = 64  # nodes
WINDOW = 500  # messages that wait for the broker's word
WITHIN_S = 300.0
# Seldom: what is measured here is what people see, not the way of the beats (`cell` has that)
BEAT_S, UNREACHABLE_S = 5.0, 30.0


def topology(nodes: int) -> str:
    """The file that says where nodes are: eight in a rack, 32 at a leaf switch."""
    return "".join(
        f"{name(n)}: {{rack: r{n // PER_RACK:04}, leaf: leaf-{n // PER_LEAF:03}, pod: pod-{n // PER_POD}}}\n"
        for n in range(nodes)
    )


def inventories(nodes: int) -> Iterator[Event]:
    """What each node tells of itself: two generations of them."""
    for n in range(nodes):
        old = n % 5 == 0
        data: dict[str, Any] = {
            "digest": "old" if old else "new", "changed": False, "kernel": "5.15.0-1053",
            "driver": "535.183.01" if old else "550.90.07", "gpus": 8,
            "gpu_models": f"8 NVIDIA {'A100-SXM4-80GB' if old else 'H100 80GB HBM3'}", "nics": 9,
            "nic_firmware": "9 MT4129 28.39.1002", "cpus": 192, "memory_mb": 2_063_000, "product": "G593-SD0", "bios": "F17",
        }  # fmt: skip
        yield event(n, 1, ("node.inventory", "node", data))


def gpus(nodes: int) -> Iterator[Event]:
    """What some nodes tell of each of their GPUs."""
    for n in range(min(nodes, WITH_CARDS)):
        for k in range(8):
            data: dict[str, Any] = {
                "model": "NVIDIA H100 80GB HBM3", "uuid": f"GPU-{n:04}-{k}", "serial": f"16530{n:05}{k}",
                "vbios": "96.00.74.00.01", "firmware": "550.90.07",
            }  # fmt: skip
            yield event(n, 2 + k, ("node.inventory.gpu", f"gpu/0000:{0x1B + k * 0x20:02x}:00", data))


def faults(nodes: int, incidents: int) -> Iterator[Event]:
    """One fault for each of so many nodes, spread over the fleet and over four kinds."""
    step = max(1, nodes // max(1, incidents))
    for k in range(incidents):
        yield event(k * step + k % min(step, 7), 100, FAULTS[k % len(FAULTS)])


def event(node: int, seq: int, event: tuple[str, str, dict[str, Any]]) -> Event:
    given = event_of(node, seq, event)
    assert isinstance(given, EventSeen)
    return given.event


async def publish(url: str, events: Iterable[Event]) -> None:
    """Puts them on the log, as fast as the broker accepts them."""
    client = await nats.connect(url)
    log = client.jetstream(publish_async_max_pending=2 * WINDOW)
    left = iter(events)
    while some := list(itertools.islice(left, WINDOW)):
        await asyncio.gather(*[
            await log.publish_async(
                subjects.event("default", event.node), orjson.dumps(encode_event(event)), headers={subjects.HEADER_ID: event.id}
            )
            for event in some
        ])  # fmt: skip
    await client.close()


@contextlib.contextmanager
def full(folder: Path, nodes: int, incidents: int) -> Iterator[Stack]:
    """It runs while the context is open, and its brain has judged everything."""
    with contextlib.ExitStack() as undo:
        whole = Stack(folder)
        undo.callback(whole.end)
        whole.nats.start()
        whole.start_receiver()
        (folder / "topology.yaml").write_text(topology(nodes))
        path = whole.write_brain_config()
        head = f'topology = "{folder}/topology.yaml"\nunreachable_after_s = {UNREACHABLE_S}\n'
        path.write_text(head + path.read_text())
        whole.start_brain()
        voice = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.one_voice", whole.nats.url, str(nodes), str(BEAT_S)],
            stdout=subprocess.PIPE,
        )
        undo.callback(voice.wait)
        undo.callback(voice.kill)
        asyncio.run(publish(whole.nats.url, itertools.chain(inventories(nodes), gpus(nodes))))
        asyncio.run(publish(whole.nats.url, faults(nodes, incidents)))
        whole.wait_for(
            lambda: whole.get("/api/v1/status").get("inputs", 0) >= nodes + incidents,
            "everything is judged",
            within_s=WITHIN_S,
        )
        yield whole


def main() -> None:
    """See the module's docstring."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [int(one) for one in sys.argv[2:4]]
    ends = {signal.SIGINT, signal.SIGTERM}
    with full(folder, *(wanted + [10_000, 1000][len(wanted) :])) as whole:
        print(whole.url, whole.ann, flush=True)
        signal.pthread_sigmask(signal.SIG_BLOCK, ends)
        signal.sigwait(ends)


if __name__ == "__main__":
    main()
