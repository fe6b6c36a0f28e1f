"""Somebody who watches and does not read: they are dropped, at a bounded cost, hold up nobody, and come back without a gap."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest

from brain.adapters.readmodel import ReadModel
from brain.console import feed, sending
from brain.console.server import Console
from brain.core.effects import Note
from brain.leader.history import HistoryWriter
from tests.security.figures import Record, attacked
from tests.security.view import FolderView

NOTES, AT_ONCE = 4000, 100
LONG = "x" * 4000  # more than the kernel keeps for a connection, in so many notes


class Notes:
    """A brain that writes notes, and those who watch them."""

    def __init__(self, view: FolderView) -> None:
        self.feed = view.feed
        self._history = HistoryWriter(cast(Any, view).reader, view.feed)
        self._history.open("log-1")
        self.written: list[str] = []

    def some(self, count: int) -> None:
        """Writes so many, in one transaction."""
        for _ in range(count):
            seq = len(self.written) + 1
            note = Note(id=f"s:{seq}#0", at=1.0, kind="x", text=LONG)
            self._history.collect(seq, [note])
            self.written.append(note.id)
        assert self._history.flush()

    def waiting(self) -> list[int]:
        """How many each watcher has not taken."""
        return [queue.qsize() for queue in self.feed._watchers.values()]


@asynccontextmanager
async def noted(folder: Path) -> AsyncIterator[tuple[str, Notes]]:
    """Its console's address, and the notes."""
    view = cast(FolderView, FolderView.of(folder, console={"port": 0}))
    view.reader = ReadModel(folder / "history")
    view.reader.begin("log-1")
    async with Console(cast(Any, view)).serving() as url:
        yield url, Notes(view)


async def stuck(url: str) -> tuple[socket.socket, str]:
    """A connection that has read where it is, and reads no more; the id that it came to."""
    port = int(url.rpartition(":")[2])
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(one, ("127.0.0.1", port))
    await loop.sock_sendall(one, b"GET /api/v1/watch HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    read = b""
    async with asyncio.timeout(30):
        while b"event: begin" not in read or not read.endswith(b"\n\n\r\n"):
            read += await loop.sock_recv(one, 4096)
    (id_,) = [line[4:].decode() for line in read.splitlines() if line.startswith(b"id: ")]
    return one, id_


async def ids(answer: aiohttp.ClientResponse) -> AsyncIterator[str]:
    """The note of each event, as it comes."""
    async for line in answer.content:
        if line.startswith(b"data: ") and b'"id":"' in line:
            yield line.partition(b'"id":"')[2].partition(b'"')[0].decode()


@pytest.mark.parametrize("read_s", [0.5, 600.0], ids=["by time", "by what waits"])
async def test_who_does_not_read_is_dropped_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record, read_s: float
) -> None:
    """Notes go on meanwhile: another watcher gets each batch at once; of the stuck one no more than BACKLOG notes are kept,
    and its connection is closed. With the id of its last event it gets the rest: each note once, in order.
    """
    monkeypatch.setattr(sending, "PIECE_S", read_s)
    got: list[str] = []
    most = 0
    async with noted(tmp_path) as (url, notes), aiohttp.ClientSession(read_bufsize=2**20) as session:
        one, since = await stuck(url)
        async with asyncio.timeout(120), session.get(f"{url}/api/v1/watch") as other:
            reads = ids(other)
            for _ in range(NOTES // AT_ONCE):
                notes.some(AT_ONCE)
                most = max(most, *notes.waiting())
                async with asyncio.timeout(20):
                    while len(got) < len(notes.written):
                        got.append(await anext(reads))
                most = max(most, *notes.waiting())
        assert got == notes.written, "the other one has lost nothing"
        assert most <= feed.BACKLOG, "what is kept for who does not read has a bound"
        assert read_s < 1 or most > feed.BACKLOG - AT_ONCE, "and that was needed"
        async with asyncio.timeout(60):
            await closed(one)
            while notes.waiting():
                await asyncio.sleep(0.02)
        one.close()
        async with (
            asyncio.timeout(120),
            session.get(f"{url}/api/v1/watch", headers={"Last-Event-ID": since}) as again,
        ):
            back = ids(again)
            found = [await anext(back) for _ in range(NOTES)]
        assert found == notes.written, "nothing is missed, and nothing comes twice"
    attacked(record_property, 1)


async def closed(one: socket.socket) -> None:
    """Until the other side has ended the connection; what lies in it is read."""
    loop = asyncio.get_running_loop()
    try:
        while await loop.sock_recv(one, 65_536):
            pass
    except ConnectionError:
        pass
