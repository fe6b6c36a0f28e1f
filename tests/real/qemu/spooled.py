"""For scripts that run in the guest with an agent whose broker is away: what it has said."""

import asyncio
import contextlib
import json
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agent import app
from agent.config import AgentConfig

PATIENCE_S = 100.0


class Spooled:
    """What the agent has said so far."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "spool.db"

    def events(self) -> list[dict[str, object]]:
        with contextlib.closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as database:
            return [json.loads(body) for (body,) in database.execute("SELECT body FROM events ORDER BY seq")]

    async def until(self, kind: str, number: int) -> None:
        """Waits until it has said `kind` so often."""
        end_s = time.monotonic() + PATIENCE_S
        while sum(event["kind"] == kind for event in self.events()) < number:
            if time.monotonic() > end_s:
                raise TimeoutError(f"{kind} was not said {number} times: {self.events()}")
            await asyncio.sleep(0.05)


def show(event: dict[str, object]) -> None:
    """One JSON line for whoever started the guest."""
    shown = {key: event.get(key) for key in ("kind", "component", "severity", "data")}
    print(json.dumps(shown), flush=True)


@contextlib.asynccontextmanager
async def agent_beside(**config: Any) -> AsyncIterator[Spooled]:
    """The whole agent with these keys of its configuration, from its start until the block ends."""
    folder = Path(tempfile.mkdtemp())
    stop = asyncio.Event()
    given = AgentConfig(node="guest", nats_url="nats://127.0.0.1:9", data_dir=folder, **config)
    running = asyncio.create_task(app.serve(given, stop))
    while not (folder / "spool.db").exists():
        await asyncio.sleep(0.05)
    spooled = Spooled(folder)
    await spooled.until("agent.started", 1)
    yield spooled
    stop.set()
    await running
