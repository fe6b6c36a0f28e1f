"""The first message of each open alert in a chat, kept over a restart: later pages refer to it."""

import asyncio
import contextlib
from functools import partial
from pathlib import Path
from urllib.parse import quote

import orjson

from agent.shared import files
from agent.shared.latest_write import LatestWrite
from brain.glance import FileHangs, Latest
from brain.notify.message import PageMessage

_MOST = 10_000  # alerts
KEEP_S = 1.0  # so long a page waits for the disk


class FirstMessages:
    """Deduplication key -> the platform's id of its first message."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._kept: LatestWrite | None = None

    def remember_in(self, folder: Path, kind: str, name: str) -> None:
        """Keeps them in a file of the channel, and reads what is there; a damaged file is none."""
        file = folder / f"{kind}-{quote(name, safe='')}.json"
        self._kept = LatestWrite(partial(files.write, file))
        found = None
        with contextlib.suppress(FileHangs):
            found = Latest(partial(files.read_json, file), file)()
        for key, id_ in found.items() if isinstance(found, dict) else ():
            if isinstance(id_, str):
                self._ids[key] = id_

    def of(self, message: PageMessage) -> str:
        """Returns its id; empty: this is the first."""
        return self._ids.get(message.dedup_key, "")

    async def keep(self, message: PageMessage, id_: str) -> None:
        """Keeps it until the alert is over."""
        self._ids.pop(message.dedup_key, None)
        if message.what != "resolve" and id_:
            self._ids[message.dedup_key] = id_
            while len(self._ids) > _MOST:
                del self._ids[next(iter(self._ids))]
        if self._kept is not None:
            # On a disk that is full or hangs the next page after a restart begins anew; this one is out.
            self._kept.put(orjson.dumps(self._ids))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(KEEP_S):
                    await self._kept.settled()
