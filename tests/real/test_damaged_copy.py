"""The copy of the state in NATS is damaged: it keeps no brain from leading. One that has its disk goes on from that; one that has
lost it says what is not known any more, as without a copy.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from nats.aio.client import Client

from agent.contract import subjects
from brain.adapters import state_copy
from tests.nightly import covering
from tests.real.test_nobody_leads import told
from tests.real.test_state_outlives_log import CELL, _a_copy_of_each_snapshot, old

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.timeout(240)]
__all__ = ["_a_copy_of_each_snapshot"]
STREAM = f"OBJ_{subjects.state_bucket(CELL)}"
Damage = Callable[[Client], Awaitable[None]]


async def _parts(client: Client) -> tuple[str, int, bytes]:
    """The subject, position and bytes of the copy's only piece."""
    found = await client.jsm().stream_info(STREAM, subjects_filter=f"$O.{subjects.state_bucket(CELL)}.C.>")
    assert found.state.subjects is not None
    (subject,) = found.state.subjects
    message = await client.jsm().get_last_msg(STREAM, subject)
    assert message.seq is not None
    return subject, message.seq, message.data or b""


async def lost(client: Client) -> None:
    """A server's disk has lost a block: what says that there is a copy is there, and the copy is not."""
    await client.jsm().delete_msg(STREAM, (await _parts(client))[1])


async def other(client: Client) -> None:
    """Another byte in the middle."""
    subject, seq, data = await _parts(client)
    await client.jsm().delete_msg(STREAM, seq)
    middle = len(data) // 2
    await client.jetstream().publish(subject, data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])


async def cut(client: Client) -> None:
    """Its second half is missing."""
    subject, seq, data = await _parts(client)
    await client.jsm().delete_msg(STREAM, seq)
    await client.jetstream().publish(subject, data[: len(data) // 2])


async def nonsense(client: Client) -> None:
    """What says that there is a copy cannot be read."""
    found = await client.jsm().stream_info(STREAM, subjects_filter=f"$O.{subjects.state_bucket(CELL)}.M.>")
    assert found.state.subjects is not None
    (subject,) = found.state.subjects
    await client.jetstream().publish(subject, b"{")


@pytest.mark.parametrize(
    ("disk", "damage"),
    covering(
        "each damage is tried once in CI, with the disk or without",
        (True, False),
        (lost, other, cut, nonsense),
    ),
    ids=lambda one: {True: "with its disk", False: "without"}.get(one) or one.__name__,
)
async def test_a_damaged_copy_keeps_no_brain_from_leading(tmp_path: Path, disk: bool, damage: Damage) -> None:
    """It takes longer than a good copy, and a new one is written in its place."""
    async with old(tmp_path) as cell:
        await damage(cell.client)
        if not disk:
            cell.lose_disk()
        await cell.brain.start()
        status = await cell.brain.until(lambda found: found["leads"], "it leads")
        assert [hold["scope"] for hold in status["holds"]] == (["node/n1"] if disk else [])
        if not disk:
            await told(cell.out, "state_lost")
        assert (await cell.brain.say("hold", scope="node/n1", why="said later"))[0] == 200
        deadline = time.monotonic() + 60
        while b"said later" not in await state_copy.read(cell.client, CELL):
            assert time.monotonic() < deadline, "another copy is written"
            await asyncio.sleep(0.2)
