"""The bare chain that gpuward is compared with: kernel log → JetStream → consumer → request, each in its own process.

`python -m tests.benchmarks.bare reader URL` and `... judge URL`: no spool, no decoding, no rules, no signature.
"""

import asyncio
import os
import sys

import nats
from nats.aio.msg import Msg
from nats.js.api import ConsumerConfig, DeliverPolicy

SUBJECT = "bare.event"
COMMAND = "bare.cmd"
STREAM = "BARE"
MARK = b"gpuward-bare "


async def reader(url: str) -> None:
    """Kernel lines with our mark → JetStream; answers commands."""
    client = await nats.connect(url)
    log = client.jetstream()
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(fd, 0, os.SEEK_END)
    tasks: set[asyncio.Task[object]] = set()

    def readable() -> None:
        while True:
            try:
                record = os.read(fd, 8192)
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue
            if MARK in record:
                task = asyncio.ensure_future(log.publish(SUBJECT, record))
                tasks.add(task)
                task.add_done_callback(tasks.discard)

    async def command(message: Msg) -> None:
        await message.respond(b"ok")

    await client.subscribe(COMMAND, cb=command)
    await client.flush()
    asyncio.get_running_loop().add_reader(fd, readable)
    print("ready", flush=True)
    await asyncio.Event().wait()


async def judge(url: str) -> None:
    """JetStream → request to the node."""
    client = await nats.connect(url)
    log = client.jetstream()

    async def seen(message: Msg) -> None:
        await client.request(COMMAND, message.data, timeout=2)

    await log.subscribe(
        SUBJECT,
        stream=STREAM,
        cb=seen,
        ordered_consumer=True,
        config=ConsumerConfig(deliver_policy=DeliverPolicy.NEW),
    )
    await client.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run({"reader": reader, "judge": judge}[sys.argv[1]](sys.argv[2]))
