"""The part of a leading brain that nodes talk to, without its engine: for tests of agents and of the bus.

async with intake(server.url) as brain:
    ...                       # events of nodes come onto the log, bundles into the bucket
    await brain.requests.ask("n1", body, 5)
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from nats.aio.client import Client

from agent.shared.nats_connection import Identity, NatsConnection
from agent.shared.secret_file import nkey_seed
from agent.shared.tasks import run_together
from brain.adapters import evidence, log
from brain.adapters.evidence_store import EvidenceStore
from brain.adapters.liveness import Beats
from brain.adapters.node_requests import NodeRequests
from brain.core.inputs import Input
from brain.leader.intake import Intake
from brain.leader.leadership import Leadership
from brain.leader.node_reports import NodeReports
from brain.nats_config import EvidenceConfig, LogConfig
from tests.fences import Open

READY_WITHIN_S = 60.0


class _Leads:
    """A leadership that nobody disputes."""

    epoch = 1

    def leads(self) -> bool:
        return True

    def fence(self) -> Open:
        return Open()


@dataclass(kw_only=True)
class Reception:
    """What it has heard."""

    beats: Beats
    requests: NodeRequests
    told: list[Input] = field(default_factory=list)
    client: Client | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)


@contextlib.asynccontextmanager
async def intake(
    url: str, cell: str = "default", *, seed_file: Path | None = None, wait: bool = True
) -> AsyncIterator[Reception]:
    """Takes in what nodes offer until the block ends, also over restarts of the server. `wait`: until it does."""
    found = Reception(beats=Beats(), requests=NodeRequests(cell))
    keep = EvidenceConfig(max_bytes=64 * 1024**2)
    work = Intake(
        cell=cell,
        replicas=1,
        leadership=cast(Leadership, _Leads()),
        beats=found.beats,
        reports=NodeReports(found.told.append),
        evidence=EvidenceStore(cell, keep),
        interrupted=found.ready.set,
        log_now=time.time,
    )

    async def session(client: Client) -> None:
        await log.ensure(client, cell, LogConfig(max_bytes=256 * 1024**2))
        await evidence.ensure(client, cell, keep)
        found.client = client
        await run_together(work.serve(client), found.requests.serve(client))

    connection = NatsConnection(
        [url],
        name="intake",
        identity=lambda: Identity(seed=nkey_seed(seed_file, "seed") if seed_file else ""),
        look_s=0.2,
    )
    task = asyncio.create_task(connection.serve(session))
    try:
        if wait:
            ready = asyncio.ensure_future(found.ready.wait())
            await asyncio.wait((ready, task), timeout=READY_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
            assert ready.done(), "the intake did not begin in time"
        yield found
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _serve(url: str) -> None:
    async with intake(url):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
