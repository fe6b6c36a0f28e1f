"""For scripts that run in the guest with an agent whose broker is away: what it has said."""

import asyncio
import contextlib
import json
import sqlite3
import time
from pathlib import Path

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
