"""GET /api/incidents, /api/incidents/<id>, /api/explain/<id>, /api/runs/<id> and /api/watch: what the read model holds."""

import asyncio
import contextlib
from collections import Counter
from typing import Any

from aiohttp import hdrs, web

from agent.contract.inert import inert
from agent.contract.messages import clip
from brain.console import shapes
from brain.console.access.door import Door
from brain.console.access.route import Route, get
from brain.console.answers import encoded, encoded_list
from brain.console.brain_view import BrainView, History
from brain.console.explain import explain
from brain.console.reading import Reading, Rests
from brain.console.sending import write
from brain.core.effects import Note
from brain.traces.ids import trace_id

PING_S = 15.0
WATCHERS_OF_ONE, MOST_WATCHERS = 50, 200


def routes(brain: BrainView, door: Door, reading: Reading) -> list[Route]:
    """Returns the routes; all read in the thread of `reading`."""
    rests = Rests()
    watchers: Counter[str] = Counter()

    async def incidents(request: web.Request) -> web.StreamResponse:
        everything = request.query.get("all", "0") not in ("0", "", "false")

        def work(history: History) -> bytes:
            found = history.incidents(open_only=not everything)
            return encoded_list("incidents", map(shapes.incident, found), rests.pause)

        return await reading.answer(request, work)

    async def incident(request: web.Request) -> web.StreamResponse:
        id_ = request.match_info["id"]

        def work(history: History) -> bytes:
            raw = history.incident(id_)
            if raw is None:
                raise _unknown(history, "incident", id_)
            return encoded(shapes.incident(raw))

        return await reading.answer(request, work)

    async def explained(request: web.Request) -> web.StreamResponse:
        id_, state = request.match_info["id"], brain.live.state

        def work(history: History) -> bytes:
            found = explain(history, state, id_)
            if found is None:
                raise _unknown(history, "incident, run or page", id_)
            traced = brain.config.traces.on
            return encoded(found | {"trace_id": trace_id(found["incident"]["id"]) if traced else ""})

        return await reading.answer(request, work)

    async def run(request: web.Request) -> web.StreamResponse:
        id_ = request.match_info["id"]

        def work(history: History) -> bytes:
            raw = history.run(id_)
            if raw is None:
                raise web.HTTPNotFound(text=f"no run {clip(id_, 80)!r}")
            return encoded(shapes.run(raw))

        return await reading.answer(request, work)

    async def watch(request: web.Request) -> web.StreamResponse:
        """Streams server-sent events: a `note` for each note from now on, after the last `?last=N` ones."""
        who, last = door.payer(request), min(1000, _number(request.query.get("last", "0"), "last"))
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
        get("/api/incidents", incidents),
        get("/api/incidents/{id}", incident),
        get("/api/explain/{id}", explained),
        get("/api/runs/{id}", run),
        get("/api/watch", watch),
    ]


def _unknown(history: History, what: str, id_: str) -> web.HTTPNotFound:
    """Also where several incidents begin with the id: which ones."""
    several = history.beginning(id_.partition(".")[0])
    if len(several) > 1:
        return web.HTTPNotFound(text=f"{clip(id_, 80)!r} is ambiguous: it may be {', '.join(several)}")
    return web.HTTPNotFound(text=f"no {what} {clip(id_, 80)!r}")


def _event(note: dict[str, Any]) -> bytes:
    return b"event: note\nid: %s\ndata: %s\n\n" % (inert(str(note["id"])).encode(), encoded(note))


def _raw(note: Note) -> dict[str, Any]:
    return {name: getattr(note, name) for name in Note.__slots__} | {"data": dict(note.data)}


def _number(text: str, what: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise web.HTTPBadRequest(text=f"{what} must be a whole number")
    return int(text)
