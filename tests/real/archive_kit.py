"""The archiver of a brain that leads, without its brain."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import nats
import orjson
from nats.aio.client import Client

from agent.contract import subjects
from agent.contract.messages import Event, Severity, encode_event
from agent.shared.tasks import end
from brain import config as brain_config
from brain.adapters import archive_store
from brain.adapters.archive_store import Segment
from brain.adapters.log import LogClock
from brain.leader.archiver import Archiver
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.leadership import Leadership
from brain.leader.notes import BrainNotes

QUICK = {"segment_s": 1, "segment_bytes": 65536}


def event(number: int, node: str = "n1") -> bytes:
    """One that no rule is about."""
    return orjson.dumps(
        encode_event(
            Event(
                id=f"{node}:x:{number}", node=node, kind="agent.started", component="node", severity=Severity.INFO,
                at="", age_s=0.0, boot="b", count=1, data={"version": "1"}, evidence="x" * 300,
            )
        )
    )  # fmt: skip


async def say(client: Client, begin: int, many: int) -> None:
    """Puts events onto the log, as the leader does."""
    for number in range(begin, begin + many):
        await client.jetstream().publish(subjects.event("default", "n1"), event(number))


class Hands:
    """The archiver of a brain that leads, without its brain: a log and a folder, and what it notes."""

    def __init__(self, client: Client, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.noted: list[str] = []
        self._client = client
        self._said = 0
        config = brain_config.parse({"archive": QUICK | {"url": str(folder)}}, "test", folder)
        self.store = archive_store.opened(config.archive)
        self._archiver = Archiver(
            config,
            leadership=cast(Leadership, Leads()),
            clock=LogClock(),
            alerts=cast(BrainAlerts, self),
            notes=cast(BrainNotes, self),
        )

    def write(self, kind: str, _: str) -> None:
        """A note."""
        self.noted.append(kind)

    def tell(self, cause: str, _: str) -> None:
        """A page."""
        self.noted.append(cause)

    def open(self, cause: str, _: str) -> None:
        """A page, until it is over."""
        self.noted.append(cause)

    def successor(self) -> "Hands":
        """Of another brain that leads next."""
        made = Hands(self._client, self.folder)
        made._said = self._said
        return made

    def clear(self, _: str) -> None:
        """No alert is open."""

    @property
    def failing(self) -> str:
        """Why the archive cannot be written, as its writer says."""
        return self._archiver.failing

    def segments(self) -> list[Segment]:
        """Of the newest log."""
        return self.store.segments("default", self.store.logs("default")[-1])

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """It writes."""
        task = asyncio.create_task(self._archiver.serve(self._client))
        try:
            yield
        finally:
            await end(task)

    async def say_until_kept(self, many: int, logs: int = 1) -> int:
        """Events, and one in a later period that ends the file with them; the position of the last one."""
        await self.say(many)
        return await self.written(logs)

    async def say(self, many: int) -> None:
        """Events."""
        await say(self._client, self._said, many)
        self._said += many

    async def written(self, logs: int = 1) -> int:
        """When what the log has is in the archive; says one thing after the other, as the file ends with the next period."""
        state = (await self._client.jsm().stream_info(subjects.stream("default"))).state
        deadline = time.monotonic() + 60
        while (self._archiver.newest_seq or 0) < state.last_seq or len(self.store.logs("default")) < logs:
            assert time.monotonic() < deadline, (self._archiver.newest_seq, state.last_seq, self.noted)
            await say(self._client, self._said, 1)
            self._said += 1
            await asyncio.sleep(0.1)
        return int(state.last_seq)


class Leads:
    """A leadership that nobody contests."""

    epoch = 1

    def leads(self) -> bool:
        """As in Leadership."""
        return True

    async def confirm(self, _: int) -> bool:
        """As in Leadership."""
        return True


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Client]:
    """A connection of the brains' account."""
    client = await nats.connect(url)
    try:
        yield client
    finally:
        await client.close()
