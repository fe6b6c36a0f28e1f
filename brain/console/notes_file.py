"""The audit as a file: a note on each line, newest first. It is read page by page as it is sent, so that a million notes cost no
memory, and in turn with all other reads of the history.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator

from aiohttp import hdrs, web

from brain.console import lists, shapes
from brain.console.access.door import Door
from brain.console.access.route import Route
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.incident_shapes import NotesFileQuery
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, History
from brain.console.reading import Reading, Rests, Work
from brain.console.sending import behind, send

AT_ONCE = 500  # notes of one read
MOST = 4  # files at once, one of each person
WAIT_S = 10.0
SHY = (
    4.0  # times as long as a read took it rests: whoever reads beside it, the same person too, has their turn
)
PATIENCE_S = 120.0  # with others who read; then the file ends too early, and its connection with it


def routes(brain: BrainView, door: Door, reading: Reading) -> list[Route]:
    """Returns the route."""
    rests = Rests()
    under_way: Counter[str] = Counter()

    async def answer(asked: Checked[NotesFileQuery, Nothing]) -> web.StreamResponse:
        who = door.payer(asked.http)
        if under_way[who] or under_way.total() >= MOST:
            raise web.HTTPServiceUnavailable(
                text=f"the audit is being read already: try again in {WAIT_S:.0f} s",
                headers={hdrs.RETRY_AFTER: f"{WAIT_S:.0f}"},
            )
        under_way[who] += 1
        try:
            return await _sent(asked.http, asked.query)
        finally:
            del under_way[who]

    async def _sent(request: web.Request, query: NotesFileQuery) -> web.StreamResponse:
        pages = _pages(request, query)
        first = await anext(pages, b"")  # what is wrong with the question is said by a status
        response = web.StreamResponse(
            headers={
                hdrs.CONTENT_TYPE: table.NDJSON,
                hdrs.CONTENT_DISPOSITION: f'attachment; filename="{brain.config.cell}-audit.ndjson"',
            }
        )
        try:
            return await send(request, response, behind(first, pages))
        except (web.HTTPException, TimeoutError):
            if request.transport is not None:
                request.transport.abort()  # whoever gets it must not take it for whole
            return response

    async def _pages(request: web.Request, query: NotesFileQuery) -> AsyncIterator[bytes]:
        before: str | None = ""
        while before is not None:
            following: list[str] = []

            def page(history: History, before: str = before, following: list[str] = following) -> bytes:
                found = lists.notes_before(query, before, AT_ONCE, history)
                if found is None:
                    raise web.HTTPServiceUnavailable(text="notes went while they were read")
                lines = []
                for raw in found:
                    lines.append(encoded(shapes.note(raw)) + b"\n")
                    rests.pause()
                if len(found) == AT_ONCE:
                    following.append(found[-1]["id"])
                return b"".join(lines)

            began = time.monotonic()
            yield await (_patiently(reading, request, page) if before else _once(reading, request, page))
            before = following[0] if following else None
            await asyncio.sleep(min(1.0, SHY * (time.monotonic() - began)))

    return [serve(table.NOTES_FILE, answer)]


async def _once(reading: Reading, request: web.Request, work: Work) -> bytes:
    async with reading.read(request, work) as body:
        return body


async def _patiently(reading: Reading, request: web.Request, work: Work) -> bytes:
    """Asks again as often as it is told to."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await _once(reading, request, work)
            except (web.HTTPServiceUnavailable, web.HTTPTooManyRequests) as later:
                if hdrs.RETRY_AFTER not in later.headers:
                    raise
                await asyncio.sleep(float(later.headers[hdrs.RETRY_AFTER]))
