"""What is in an evidence bundle: the list of its files, and one file. Nodes have packed it, so it is read with care
(unpacking.py), beside the event loop and in one thread for all.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

from aiohttp import web

from agent.contract.errors import ActionError, Unreachable
from brain.console import unpacking
from brain.console.access.route import Route
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.evidence_shapes import (
    EvidenceFileQuery,
    EvidenceFilesShape,
    PackedFileShape,
)
from brain.console.api.serving import Checked, serve
from brain.console.evidence import Bundles, Found, as_file, sent
from brain.console.packing import packed_answer
from brain.console.reading import Rests
from brain.console.shapes import iso
from brain.console.unpacking import Contents, PackedFile

T = TypeVar("T")
BINARY = "application/octet-stream"  # whatever the node says it is: no browser shows it by itself


class Unpacker:
    """The thread that unpacks. What it reads lies in a file without a name, in the brain's data folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1, "console-unpacking")
        self._pause = Rests().pause

    def close(self) -> None:
        """Waits for the work under way; there is no more."""
        self._thread.shutdown(cancel_futures=True)

    async def contents(self, found: Found) -> Contents:
        """Returns what is in a bundle. Unreachable, ActionError: it cannot be fetched."""
        async with self._fetched(found) as source:
            return await self._run(lambda: unpacking.contents(source, found.bundle.size, self._pause))

    @contextlib.asynccontextmanager
    async def file(self, found: Found, number: int) -> AsyncIterator[tuple[PackedFile, AsyncIterator[bytes]]]:
        """Returns a file of a bundle with its pieces. LookupError: there is none; EOFError, of the pieces: it ends too early."""
        async with self._fetched(found) as source:
            size = found.bundle.size
            one, pieces = await self._run(lambda: unpacking.one_file(source, size, number, self._pause))
            yield one, self._each(pieces)

    async def _each(self, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
        while piece := await self._run(lambda: next(pieces, b"")):
            yield piece

    @contextlib.asynccontextmanager
    async def _fetched(self, found: Found) -> AsyncIterator[IO[bytes]]:
        source = await self._run(partial(_temporary, self._folder))
        try:
            async for piece in found.bundle.pieces():
                await self._run(partial(source.write, piece))
            yield source
        finally:
            source.close()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def routes(bundles: Bundles, unpacker: Unpacker) -> list[Route]:
    """Returns the routes."""

    async def files(asked: Checked[Nothing, Nothing]) -> web.StreamResponse:
        async with bundles.opened(asked.http, asked.id) as found:
            with _fetching():
                inside = await unpacker.contents(found)
            return await packed_answer(asked.http, encoded(_shape(found, inside)))

    async def one(asked: Checked[EvidenceFileQuery, Nothing]) -> web.StreamResponse:
        async with bundles.opened(asked.http, asked.id) as found, contextlib.AsyncExitStack() as opened:
            with _fetching():
                try:
                    file, pieces = await opened.enter_async_context(unpacker.file(found, asked.query.file))
                except LookupError as error:
                    raise web.HTTPNotFound(text=f"{found.name}: {error}") from error
            response = as_file(file.name.rpartition("/")[2], BINARY)
            most = asked.query.most
            response.content_length = file.size if most is None else min(most, file.size)
            return await sent(asked.http, response, _first(pieces, most), found.name)

    return [serve(table.EVIDENCE_FILES, files), serve(table.EVIDENCE_FILE, one)]


def _temporary(folder: Path) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder)


@contextlib.contextmanager
def _fetching() -> Iterator[None]:
    try:
        yield
    except Unreachable as error:
        raise web.HTTPServiceUnavailable(text=str(error)) from error
    except ActionError as error:
        raise web.HTTPNotFound(text=str(error)) from error


async def _first(pieces: AsyncIterator[bytes], most: int | None) -> AsyncIterator[bytes]:
    left = most
    async for piece in pieces:
        if left is None:
            yield piece
            continue
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def _shape(found: Found, inside: Contents) -> EvidenceFilesShape:
    return EvidenceFilesShape(
        bundle=found.name,
        size=found.bundle.size,
        files=[
            PackedFileShape(file=one.number, name=one.name, size=one.size, at=iso(one.at), text=one.text)
            for one in inside.files
        ],
        left_out=inside.left_out,
        cut=inside.cut,
    )
