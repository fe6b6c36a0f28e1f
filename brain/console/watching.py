"""Notes as they are written, as server-sent events. Whoever comes again with the id of the last one misses none and gets none
twice: first from the history, then from the feed.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from aiohttp import hdrs, web

from agent.shared.words import language
from brain.console import positions, shapes
from brain.console.access.door import Door
from brain.console.access.route import Route
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.log_shapes import WatchQuery
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, History
from brain.console.feed import Published
from brain.console.positions import Heard, Position
from brain.console.reading import Reading, Rests
from brain.console.sending import write
from brain.console.speech import in_language
from brain.core.effects import Note

PING_S = 15.0
WATCHERS_OF_ONE, MOST_WATCHERS = 50, 200
STRANGERS = 100  # of them: without a credential, from whatever addresses
AT_ONCE = 500  # notes of one read
TOGETHER = 50  # notes that are sent at once; then it is another watcher's turn, and first the brain's
LAST_EVENT_ID = "Last-Event-ID"
_AGAIN = b"retry: 1000\n\n"
_PING = b": still here\nevent: ping\ndata: {}\n\n"
_LOST = b"event: lost\ndata: {}\n\n"


@dataclass(slots=True, kw_only=True)
class _Past:
    """How far the history has been told."""

    told: Heard
    # place in the history; None: all of it
    place: int | None


def routes(brain: BrainView, door: Door, reading: Reading) -> list[Route]:
    """Returns the route."""
    rests = Rests()
    watchers: Counter[str] = Counter()
    strangers: Counter[str] = Counter()  # those of the watchers who have shown no credential
    turn = (
        asyncio.Lock()
    )  # of one watcher after the other: all that watch at once would hold up the brain's own work

    async def watch(asked: Checked[WatchQuery, Nothing]) -> web.StreamResponse:
        """A `note` for each note. `begin` says where the watcher is; `lost`: what came since it was here cannot be told."""
        who = door.payer(asked.http)
        stranger = door.is_stranger(asked.http)
        full = watchers.total() >= MOST_WATCHERS or (stranger and strangers.total() >= STRANGERS)
        if full or watchers[who] >= WATCHERS_OF_ONE:
            raise web.HTTPServiceUnavailable(
                text="too many watch: end a `gpuward watch`, or try again later",
                headers={hdrs.RETRY_AFTER: "60"},
            )
        with contextlib.ExitStack() as places:
            places.enter_context(_counted(watchers, who))
            if stranger:
                places.enter_context(_counted(strangers, who))
            if asked.query.language is None:
                return await _watched(asked.http, asked.query)
            with in_language(asked.query.language):
                return await _watched(asked.http, asked.query)

    async def _watched(request: web.Request, query: WatchQuery) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        since = request.headers.get(LAST_EVENT_ID, "") or query.after
        # Whoever leaves, or reads too slowly, ends it: that is no error of ours.
        ended = brain.feed.ended  # what is read after that is of a history that is made again
        with brain.feed.watch() as queue, contextlib.suppress(ConnectionError):
            past: list[_Past] = []

            def first(history: History) -> bytes:
                head, begun = _begin(history, since, query.last, rests.pause)
                past.append(begun)
                return _AGAIN + head

            async with reading.read(request, first) as body:
                await response.prepare(request)
                if brain.feed.ended == ended:
                    await write(request, response, body)
            (begun,) = past
            # Refused in the middle (others read, or this person has read much): whoever comes again goes on from there.
            with contextlib.suppress(web.HTTPTooManyRequests, web.HTTPServiceUnavailable):
                while begun.place is not None and door.still_welcome(request):
                    async with reading.read(
                        request, lambda history: _more(history, begun, rests.pause)
                    ) as body:
                        if brain.feed.ended != ended:
                            break
                        await write(request, response, body)
                if begun.place is None and brain.feed.ended == ended:
                    await _live(request, response, queue, begun.told)
        return response

    async def _live(
        request: web.Request,
        response: web.StreamResponse,
        queue: "asyncio.Queue[Published | None]",
        told: Heard,
    ) -> None:
        ends = False  # too slow, or ended: whoever comes again goes on from there
        while not ends:
            some = await _waited(queue)
            async with turn:
                await asyncio.sleep(0)
                ends = None in some
                text = b"".join(_fresh(told, one) for one in some if one is not None)
            if not door.still_welcome(request):
                return  # the token was revoked, or has expired
            await write(request, response, text if some else _PING)

    return [serve(table.WATCH, watch)]


async def _waited(queue: "asyncio.Queue[Published | None]") -> "list[Published | None]":
    """Returns the next notes, few at once; none: there was none for a while."""
    try:
        async with asyncio.timeout(PING_S):
            some = [await queue.get()]
    except TimeoutError:
        return []
    while some[-1] is not None and len(some) < TOGETHER and not queue.empty():
        some.append(queue.get_nowait())
    return some


@contextlib.contextmanager
def _counted(among: Counter[str], who: str) -> Iterator[None]:
    among[who] += 1
    try:
        yield
    finally:
        among[who] -= 1
        if not among[who]:
            del among[who]


def _begin(history: History, since: str, last: int, pause: Callable[[], None]) -> tuple[bytes, _Past]:
    """Returns what a watcher gets first, and where it is then."""
    log = positions.short(history.log())
    note, seq, own = history.newest()
    now = Position(log=log, seq=seq, note=note, own=own)
    if since:
        found = positions.parse(since)
        past = _after(history, found) if found is not None and found.log == log else None
        return (b"", past) if past else (_LOST + _where(now), _from(now))
    rows = history.newest_notes(last) if last else []
    parts, seq = [], 0
    for row in rows:
        seq = max(seq, row["seq"])
        parts.append(_event(Position(log=log, seq=seq, note=row["id"], own=not row["seq"]), _body(row)))
        pause()
    return b"".join(parts) or _where(now), _from(now, (row["id"] for row in rows if not row["seq"]))


def _from(now: Position, own: Iterable[str] = ()) -> _Past:
    """From now on."""
    return _Past(told=Heard(now.log, now.seq, whole=True, own=[now.note, *own]), place=None)


def _after(history: History, found: Position) -> _Past | None:
    """After what a watcher has; None: it is not known what came since."""
    place = history.place_of(found.note)
    if place is not None and found.own:
        return _Past(told=Heard(found.log, found.seq, whole=True, own=[found.note]), place=place)
    if place is not None:
        here = history.notes_at(found.seq, place)
        return _Past(told=Heard(found.log, found.seq, here=here), place=place)
    # Another brain, or its history was made again: by the position on the log
    place = history.place_before(found.seq + found.own)
    if place is None:
        return None
    told = Heard(found.log, found.seq, whole=found.own, skip_to="" if found.own else found.note)
    return _Past(told=told, place=place)


def _more(history: History, past: _Past, pause: Callable[[], None]) -> bytes:
    """Returns the next notes of the history."""
    rows = history.notes_after(past.place or 0, AT_ONCE)
    parts = []
    for row in rows:
        parts.append(_told(past.told, row["seq"], row))
        past.place = row["n"]
        pause()
    if len(rows) < AT_ONCE:
        past.place = None
    return b"".join(parts)


def _told(told: Heard, seq: int, raw: dict[str, Any]) -> bytes:
    """Returns the event; empty: it was told before."""
    return _event(told.at(seq, raw["id"]), _body(raw)) if told.is_new(seq, raw["id"]) else b""


def _fresh(told: Heard, one: Published) -> bytes:
    """The same of a note that was just written."""
    if not told.is_new(one.seq, one.note.id):
        return b""
    return _event(told.at(one.seq, one.note.id), one.body(language(), lambda note: _body(_raw(note))))


def _body(raw: dict[str, Any]) -> bytes:
    return encoded(shapes.note(raw))


def _event(position: Position | None, body: bytes) -> bytes:
    id_ = b"id: %s\n" % position.text().encode() if position else b""
    return b"event: note\n%sdata: %s\n\n" % (id_, body)


def _where(position: Position) -> bytes:
    return b"event: begin\nid: %s\ndata: {}\n\n" % position.text().encode()


def _raw(note: Note) -> dict[str, Any]:
    return {name: getattr(note, name) for name in Note.__slots__} | {"data": dict(note.data)}
