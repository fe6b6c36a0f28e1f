"""The copy of the state in NATS over the years: brains that are killed while they write it leave nothing behind."""

import random
import subprocess
import sys
import time
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client

from agent.contract import subjects
from brain.adapters import state_copy
from tests.real.nats import nats_server

pytestmark = pytest.mark.component("nats-server")
CELL = "c"
WRITER = """
import asyncio, os, sys
from brain.adapters import state_copy
import nats
async def main():
    client = await nats.connect(sys.argv[1])
    while True:
        await state_copy.write(client, "c", os.urandom(3_000_000))
        print("written", flush=True)
asyncio.run(main())
"""


async def test_a_brain_that_is_killed_while_it_writes_leaves_nothing(tmp_path: Path) -> None:
    """kill -9 at many moments: there is a whole copy each time, and after the next one nothing else."""
    chance = random.Random(3)
    with nats_server(tmp_path) as server:
        client = await nats.connect(server.url)
        for _ in range(8):
            with subprocess.Popen(
                [sys.executable, "-c", WRITER, server.url],
                stdout=subprocess.PIPE,
                cwd=Path(__file__).parents[2],
            ) as writer:
                assert writer.stdout is not None
                writer.stdout.readline()
                time.sleep(chance.random() / 5)  # the moment of death
                writer.kill()
            assert len(await state_copy.read(client, CELL)) == 3_000_000
        # And one at the very moment at which its pieces are there, and what says so is not.
        await client.jetstream().publish(f"$O.{subjects.state_bucket(CELL)}.C.KILLED", b"a piece")
        assert await copies(client) > 1
        await state_copy.write(client, CELL, b"last")
        assert await copies(client) == 1
        assert await state_copy.read(client, CELL) == b"last"
        await client.close()


async def copies(client: Client) -> int:
    """Of how many copies there are pieces."""
    bucket = subjects.state_bucket(CELL)
    found = await client.jsm().stream_info(f"OBJ_{bucket}", subjects_filter=f"$O.{bucket}.C.>")
    return len(found.state.subjects or {})
