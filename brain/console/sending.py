"""Sends long answers in pieces, and only as long as somebody takes them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

from aiohttp import web

PIECE = 65_536
PIECE_S = 10.0  # for each piece: who reads more slowly than 6 KB/s is cut off


async def send(
    request: web.Request, response: web.StreamResponse, pieces: AsyncIterator[bytes]
) -> web.StreamResponse:
    """Sends an answer. Whoever reads too slowly, or leaves, gets no more of it: no error of ours."""
    with contextlib.suppress(ConnectionError):
        async with in_time(request):
            await response.prepare(request)
        async for piece in pieces:
            await write(request, response, piece)
        async with in_time(request):
            await response.write_eof()
    return response


async def write(request: web.Request, response: web.StreamResponse, body: bytes) -> None:
    """Writes into an answer that has begun. ConnectionError: the other side reads too slowly, or has left."""
    for piece in pieces_of(body):
        async with in_time(request):
            await response.write(piece)


@contextlib.asynccontextmanager
async def in_time(request: web.Request) -> AsyncIterator[None]:
    """What is awaited here must be taken within PIECE_S; ConnectionError, and the connection is closed, when it is not."""
    try:
        async with asyncio.timeout(PIECE_S):
            yield
    except TimeoutError as error:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionAbortedError(f"nothing was read for {PIECE_S:g} s") from error


def pieces_of(body: bytes) -> Iterator[bytes]:
    """Returns a body in pieces."""
    view = memoryview(body)
    return (bytes(view[at : at + PIECE]) for at in range(0, len(view), PIECE))


async def each(body: bytes) -> AsyncIterator[bytes]:
    """Returns the pieces of a body that is there."""
    for piece in pieces_of(body):
        yield piece


async def behind(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Returns the pieces with one before them that has been read already: what is wrong is seen before an answer begins."""
    yield first
    async for piece in rest:
        yield piece
