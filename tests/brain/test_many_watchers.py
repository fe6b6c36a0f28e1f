"""Many who watch a storm: each gets every note, and the brain's own work waits for no more than one of them at a time."""

import asyncio
import contextlib
from collections import Counter
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest

from brain.adapters.readmodel import ReadModel
from brain.console import shapes, watching
from brain.console.positions import Position
from brain.console.server import Console
from brain.core.effects import Note
from tests.security.view import FolderView

WATCHERS, NOTES = 40, 400


async def test_a_storm_that_many_watch_leaves_the_brain_its_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All notes of a burst for all watchers between two turns of the event loop: a brain that leads lost its lease by that. Each
    note is made once, not once for each of them.
    """
    made: Counter[str] = Counter()
    turns = sent = most = 0
    event, body = watching._event, shapes.note

    def counted(position: Position | None, text: bytes) -> bytes:
        nonlocal sent
        sent += 1
        return event(position, text)

    def made_of(raw: Any) -> Any:
        made[raw["id"]] += 1
        return body(raw)

    monkeypatch.setattr(watching, "_event", counted)
    monkeypatch.setattr(shapes, "note", made_of)
    view = cast(FolderView, FolderView.of(tmp_path / "d", console={"port": 0}))
    view.reader = ReadModel(tmp_path / "history")
    view.reader.begin("log-1")

    async def watches(url: str) -> list[bytes]:
        found: list[bytes] = []
        async with aiohttp.ClientSession(url) as session:
            while True:
                async with session.get("/api/v1/watch") as answer:
                    if answer.status != 200:  # others read the history
                        await asyncio.sleep(0.05)
                        continue
                    async for line in answer.content:
                        if line.startswith(b"id: "):
                            found.append(line)
                        if len(found) > NOTES:
                            return found

    async def counts() -> None:
        nonlocal turns, sent, most
        while True:
            turns, most, sent = turns + 1, max(most, sent), 0
            await asyncio.sleep(0)

    async with Console(cast(Any, view)).serving() as url:
        watchers = [asyncio.create_task(watches(url)) for _ in range(WATCHERS)]
        async with asyncio.timeout(60):
            while len(view.feed._watchers) < WATCHERS:
                await asyncio.sleep(0.01)
        turner = asyncio.create_task(counts())
        await asyncio.sleep(0)
        for number in range(NOTES):
            view.feed.publish(Note(id=f"s:{number}#0", at=1.0, kind="x", text="x"), number + 1)
        async with asyncio.timeout(120):
            every = await asyncio.gather(*watchers)
        turner.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await turner
    assert all(one[1:] == every[0][1:] and len(one) == NOTES + 1 for one in every), "each note once, in order"
    assert set(made.values()) == {1}
    assert most <= watching.TOGETHER
