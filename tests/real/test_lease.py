"""Who leads, on a real server: one at a time, each with a higher epoch, and a successor within seconds."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.kv import KeyValue

from agent.contract import subjects
from brain.adapters import presence
from brain.adapters.lease import LOOKS, RENEWALS, Lease
from tests.real.nats import client, forgotten, nats_server
from tests.real.test_log import until

pytestmark = pytest.mark.component("nats-server")
# Long enough for a leader that gets no processor for a while.
TTL_S = 3.0


class Brain:
    """A lease, and the epochs that it won."""

    def __init__(self, name: str, before: str = "") -> None:
        self.lease = Lease("c", name, TTL_S, before=before)
        self.epochs: list[int] = []

    def leads(self) -> bool:
        """May it act now?"""
        return self.lease.held

    @contextlib.asynccontextmanager
    async def competing(self, connection: Client) -> AsyncIterator[asyncio.Task[None]]:
        """Until the block ends: then it gives the lease back."""
        task = asyncio.create_task(self.lease.serve(connection, self.epochs.append, lambda: 0))
        try:
            yield task
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def test_one_leads_and_the_other_takes_over_in_order(tmp_path: Path) -> None:
    """A leader that stops gives the lease back: the other one has it at once, with a higher epoch."""
    with nats_server(tmp_path) as server:
        one, two = Brain("b1:1"), Brain("b2:1")
        async with client(server.url) as c1, client(server.url) as c2, contextlib.AsyncExitStack() as stack:
            async with two.competing(c2):
                await until(two.leads, "b2 leads")
                await stack.enter_async_context(one.competing(c1))
                for _ in range(60):  # two and a half times to live
                    await asyncio.sleep(TTL_S / 24)
                    assert two.leads()
                    assert not one.leads()
                assert (one.epochs, len(two.epochs)) == ([], 1)
            given_back = time.monotonic()
            await until(one.leads, "b1 leads")
            assert time.monotonic() - given_back < TTL_S * (1 - 1 / RENEWALS), "before it could have run out"
            assert one.epochs[0] > two.epochs[0]


async def test_a_bucket_that_somebody_has_deleted_is_made_again(tmp_path: Path) -> None:
    """Whoever led stops, and one leads again with a higher epoch, not before the lease of then would have run out."""
    with nats_server(tmp_path) as server:
        one, two = Brain("b1:1"), Brain("b2:1")
        async with client(server.url) as c1, client(server.url) as c2, one.competing(c1):
            await until(one.leads, "b1 leads")
            async with two.competing(c2):
                await until(lambda: two.lease._bucket_ is not None, "b2 waits for the lead")
                began = time.monotonic()
                await c2.jetstream().delete_key_value(subjects.LEASE_BUCKET)
                await until(lambda: len(one.epochs) + len(two.epochs) == 2, "one leads again")
                assert time.monotonic() - began >= TTL_S * (1 - 1 / RENEWALS)
                assert max([*one.epochs, *two.epochs]) > one.epochs[0]
                for _ in range(24):
                    assert one.leads() + two.leads() <= 1
                    await asyncio.sleep(TTL_S / 24)
                await until(lambda: one.leads() or two.leads(), "it leads on")


async def test_a_dead_leader_is_replaced_before_its_time_to_live_has_passed(tmp_path: Path) -> None:
    """Its connection just ends, as with SIGKILL; nobody gives anything back."""
    with nats_server(tmp_path) as server:
        one, two = Brain("b1:1"), Brain("b2:1")
        async with client(server.url) as c2, client(server.url) as c1:
            dying = asyncio.create_task(one.lease.serve(c1, one.epochs.append, lambda: 0))
            await until(one.leads, "b1 leads")
            async with two.competing(c2):
                await asyncio.sleep(TTL_S)
                assert one.leads()
                await c1.close()
                died = time.monotonic()
                # An entry that is written now runs out after the dead one's, by the same server.
                beside = asyncio.create_task(forgotten(c2, TTL_S))
                await until(two.leads, "b2 leads")
                led = time.monotonic()
                assert not one.leads(), "the dead one knows that it may not act"
                assert led - died < await beside, "a connection that has ended is not waited for"
                assert two.epochs[0] > one.epochs[0]
                dying.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await dying


async def test_a_leader_without_its_server_stops_by_itself(tmp_path: Path) -> None:
    """It cannot renew, so it must not act; with the server back it wins a new epoch, never the old one."""
    with nats_server(tmp_path) as server:
        brain = Brain("b1:1")
        async with client(server.url) as connection, brain.competing(connection):
            await until(brain.leads, "it leads")
            server.kill()
            await until(lambda: not brain.leads(), "it has stopped")
            await asyncio.sleep(TTL_S)  # before that it would still be its own
            server.start()
            await until(brain.leads, "it leads again")
            assert len(brain.epochs) >= 2
            assert brain.epochs == sorted(set(brain.epochs))


async def test_an_epoch_is_above_what_the_log_knows(tmp_path: Path) -> None:
    """Also when the bucket was made by a server with a wrong clock."""
    with nats_server(tmp_path) as server:
        async with client(server.url) as connection:
            brain = Brain("b1:1")
            task = asyncio.create_task(brain.lease.serve(connection, brain.epochs.append, lambda: 10**15))
            await until(brain.leads, "it leads")
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            assert brain.epochs == [10**15 + 1]


@contextlib.asynccontextmanager
async def raw(tmp_path: Path) -> AsyncIterator[tuple[Client, KeyValue, Client]]:
    """A leader's connection and its bucket, without the leader; and the connection of another brain."""
    with nats_server(tmp_path) as server:
        async with client(server.url) as c1, client(server.url) as c2:
            first = Brain("b0:1")  # makes the bucket
            async with first.competing(c2):
                await until(first.leads, "b0 leads")
            yield c1, await c1.jetstream().key_value(subjects.LEASE_BUCKET), c2


async def test_a_leader_that_hangs_is_replaced_when_its_time_to_live_has_passed(tmp_path: Path) -> None:
    """It is still connected, and does not renew: it may believe that it leads until its own deadline."""
    async with raw(tmp_path) as (c1, held, c2):
        other = Brain("b2:1")
        await presence.show(c1, "c", "b1:1")
        began = time.monotonic()
        beside = asyncio.create_task(forgotten(c2, TTL_S))
        await held.create("c", b"b1:1")
        async with other.competing(c2):
            await until(other.leads, "b2 leads")
            took = time.monotonic() - began
            assert took > TTL_S * (1 - 2 / LOOKS), "not before"
            assert took < await beside + 4 * TTL_S / LOOKS, "it looks so often"


async def test_a_leader_that_renews_is_not_replaced_though_nobody_hears_it(tmp_path: Path) -> None:
    """Two servers of three that do not reach each other: what one knows of the brains at the other is gone, the store is not."""
    async with raw(tmp_path) as (_, held, c2):
        other = Brain("b2:1")
        revision = await held.create("c", b"b1:1")
        async with other.competing(c2):
            for _ in range(3 * RENEWALS):
                await asyncio.sleep(TTL_S / RENEWALS)
                revision = await held.update("c", b"b1:1", last=revision)
            assert other.epochs == []


async def test_who_knows_that_the_holder_has_ended_waits_for_nothing(tmp_path: Path) -> None:
    """A brain that was killed and is started again. Others, to whom it still looks connected, wait for its time to live."""
    async with raw(tmp_path) as (c1, held, c2):
        other, again = Brain("b2:1"), Brain("b1:2", before="b1:1")
        await presence.show(c1, "c", "b1:1")
        await held.create("c", b"b1:1")
        beside = asyncio.create_task(forgotten(c1, TTL_S))
        began = time.monotonic()
        async with other.competing(c2), again.competing(c1):
            await until(again.leads, "b1 leads again")
            led = time.monotonic()
            assert other.epochs == []
            assert led - began < await beside, "before its entry has run out"
            assert again.leads()


async def test_another_holder_is_not_taken_for_the_one_that_has_ended(tmp_path: Path) -> None:
    """Since then somebody else has led."""
    async with raw(tmp_path) as (c1, held, c2):
        again = Brain("b1:2", before="b1:1")
        await presence.show(c1, "c", "b2:1")
        revision = await held.create("c", b"b2:1")
        async with again.competing(c2):
            for _ in range(2 * RENEWALS):
                await asyncio.sleep(TTL_S / RENEWALS)
                revision = await held.update("c", b"b2:1", last=revision)
            assert again.epochs == []
