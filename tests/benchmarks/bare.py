"""The bare chain that gpuward is compared with: kernel log → JetStream → consumer → request, in two processes.

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
    """Publishes marked kernel lines to JetStream; answers commands."""
    client = await nats.connect(url)
    log = client.jetstream()
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(fd, 0, os.SEEK_END)
    tasks: set[asyncio.Task[object]] = set()

    def on_readable() -> None:
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

    async def on_command(message: Msg) -> None:
        await message.respond(b"ok")

    await client.subscribe(COMMAND, cb=on_command)
    await client.flush()
    asyncio.get_running_loop().add_reader(fd, on_readable)
    print("ready", flush=True)
    await asyncio.Event().wait()


async def judge(url: str) -> None:
    """Consumes from JetStream; sends a request to the node for each message."""
    client = await nats.connect(url)
    log = client.jetstream()

    async def on_message(message: Msg) -> None:
        await client.request(COMMAND, message.data, timeout=2)

    await log.subscribe(
        SUBJECT,
        stream=STREAM,
        cb=on_message,
        ordered_consumer=True,
        config=ConsumerConfig(deliver_policy=DeliverPolicy.NEW),
    )
    await client.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run({"reader": reader, "judge": judge}[sys.argv[1]](sys.argv[2]))
