"""What the read model holds: incidents, their chains, runs, and notes as they are written."""

import asyncio
import contextlib
from collections import Counter
from functools import partial
from typing import Any

from aiohttp import hdrs, web

from agent.contract.inert import inert
from agent.contract.messages import clip
from brain.console import lists, shapes
from brain.console.access.door import Door
from brain.console.access.route import Route
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.incident_shapes import IncidentsQuery, NoteShape, NotesQuery
from brain.console.api.log_shapes import WatchQuery
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, History
from brain.console.explain import explain
from brain.console.reading import Reading, Rests
from brain.console.sending import write
from brain.core.effects import Note

PING_S = 15.0
WATCHERS_OF_ONE, MOST_WATCHERS = 50, 200


def routes(brain: BrainView, door: Door, reading: Reading) -> list[Route]:
    """Returns the routes; all read in the thread of `reading`."""
    rests = Rests()
    watchers: Counter[str] = Counter()

    async def incidents(asked: Checked[IncidentsQuery, Nothing]) -> web.StreamResponse:
        return await reading.answer(asked.http, partial(lists.incidents, asked.query, rests.pause))

    async def notes(asked: Checked[NotesQuery, Nothing]) -> web.StreamResponse:
        return await reading.answer(asked.http, partial(lists.notes, asked.query, rests.pause))

    async def incident(asked: Checked[Nothing, Nothing]) -> web.StreamResponse:
        id_ = asked.id

        def work(history: History) -> bytes:
            raw = history.incident(id_)
            if raw is None:
                raise _unknown(history, "incident", id_)
            return encoded(shapes.incident(raw))

        return await reading.answer(asked.http, work)

    async def explained(asked: Checked[Nothing, Nothing]) -> web.StreamResponse:
        id_, state = asked.id, brain.live.state

        def work(history: History) -> bytes:
            found = explain(history, state, id_, traced=brain.config.traces.on)
            if found is None:
                raise _unknown(history, "incident, run or page", id_)
            return encoded(found)

        return await reading.answer(asked.http, work)

    async def run(asked: Checked[Nothing, Nothing]) -> web.StreamResponse:
        id_ = asked.id

        def work(history: History) -> bytes:
            raw = history.run(id_)
            if raw is None:
                raise web.HTTPNotFound(text=f"no run {clip(id_, 80)!r}")
            return encoded(shapes.run(raw))

        return await reading.answer(asked.http, work)

    async def watch(asked: Checked[WatchQuery, Nothing]) -> web.StreamResponse:
        """Streams server-sent events: a `note` for each note from now on, after the last ones."""
        request, last = asked.http, asked.query.last
        who = door.payer(request)
        if watchers[who] >= WATCHERS_OF_ONE or watchers.total() >= MOST_WATCHERS:
            raise web.HTTPServiceUnavailable(
                text="too many watch: end a `gpuward watch`, or try again later",
                headers={hdrs.RETRY_AFTER: "60"},
            )
        watchers[who] += 1
        try:
            return await _watched(request, last)
        finally:
            watchers[who] -= 1
            if not watchers[who]:
                del watchers[who]

    async def _watched(request: web.Request, last: int) -> web.StreamResponse:
        def newest(history: History) -> bytes:
            parts = []
            for raw in history.newest_notes(last):
                parts.append(_event(shapes.note(raw)))
                rests.pause()
            return b"".join(parts)

        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        # Whoever leaves, or reads too slowly, ends it: that is no error of ours.
        with brain.feed.watch() as queue, contextlib.suppress(ConnectionError):
            if last:
                async with reading.read(request, newest) as body:
                    await response.prepare(request)
                    await write(request, response, body)
            else:
                await response.prepare(request)
            while True:
                try:
                    async with asyncio.timeout(PING_S):
                        note = await queue.get()
                    told = _event(shapes.note(_raw(note))) if note else b"event: lost\ndata: {}\n\n"
                except TimeoutError:
                    note, told = None, b": still here\n\n"
                if not door.still_welcome(request):
                    break  # the token was revoked, or has expired
                await write(request, response, told)
                if note is None and told.startswith(b"event: lost"):
                    break
        return response

    return [
        serve(table.INCIDENTS, incidents),
        serve(table.INCIDENT, incident),
        serve(table.EXPLAIN, explained),
        serve(table.NOTES, notes),
        serve(table.RUN, run),
        serve(table.WATCH, watch),
    ]


def _unknown(history: History, what: str, id_: str) -> web.HTTPNotFound:
    """Also where several incidents begin with the id: which ones."""
    several = history.beginning(id_.partition(".")[0])
    if len(several) > 1:
        return web.HTTPNotFound(text=f"{clip(id_, 80)!r} is ambiguous: it may be {', '.join(several)}")
    return web.HTTPNotFound(text=f"no {what} {clip(id_, 80)!r}")


def _event(note: NoteShape) -> bytes:
    return b"event: note\nid: %s\ndata: %s\n\n" % (inert(note.id).encode(), encoded(note))


def _raw(note: Note) -> dict[str, Any]:
    return {name: getattr(note, name) for name in Note.__slots__} | {"data": dict(note.data)}
