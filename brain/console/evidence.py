"""An evidence bundle by its name (`<node>/<command>`), or the newest one of a step, run or
incident: as a file, or what is in it.
"""

import asyncio
import contextlib
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from math import inf

from aiohttp import hdrs, web

from agent.contract import subjects
from agent.contract.errors import ActionError, ConfigError, Unreachable
from agent.shared.words import t
from brain.console import shapes
from brain.console.access.door import Door
from brain.console.access.route import Route
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, BundleView, History
from brain.console.reading import Reading
from brain.console.sending import send
from brain.console.speech import quoted, told

_log = logging.getLogger(__name__)
TOO_LARGE = "brain.evidence_too_large"  # kind of a note (brain/adapters/evidence_store.py)
MOST_NOTES = 1000  # of that kind that are looked through
AT_ONCE, OF_ONE = 6, 2  # downloads, and those of one person: each reads from NATS as it is read
WAIT_S = 10.0  # for a place


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A bundle that somebody has asked for."""

    name: str
    bundle: BundleView


class Bundles:
    """The bundles that people read now: few at a time, and few of one person."""

    def __init__(self, brain: BrainView, door: Door, reading: Reading) -> None:
        self._brain = brain
        self._door = door
        self._reading = reading
        self._places = asyncio.Semaphore(AT_ONCE)
        self._held: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def opened(self, request: web.Request, id_: str) -> AsyncIterator[Found]:
        """The bundle that an id means. HTTPNotFound: there is none; HTTPServiceUnavailable: not now."""

        async with self._reading.read(request, lambda history: bundle_of(history, id_).encode()) as found:
            name = found.decode()
        if not name:
            raise web.HTTPNotFound(
                text=t("{id} has no evidence bundle: see `gpuward explain`", id=quoted(id_))
            )
        who = self._door.payer(request)
        if self._held[who] >= OF_ONE:
            raise _later("your earlier downloads are not over")
        self._held[who] += 1
        try:
            async with _place(self._places):
                yield Found(name=name, bundle=await self._bundle(request, name))
        finally:
            self._held[who] -= 1
            if not self._held[who]:
                del self._held[who]

    async def _bundle(self, request: web.Request, name: str) -> BundleView:
        node, _, command = name.partition("/")
        try:
            bundle = await self._brain.evidence(subjects.token(node, "node"), command)
        except Unreachable as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        except (ActionError, ConfigError) as error:
            raise web.HTTPNotFound(text=str(error)) from error
        if bundle is None:
            async with self._reading.read(
                request, lambda history: why_not_kept(history, name).encode()
            ) as found:
                why = found.decode()
            if why:
                raise web.HTTPNotFound(text=f"{name}: {told(why)}")
            raise web.HTTPNotFound(
                text=t(
                    "{name} is not in the object store: not sent yet, too old, or the node is simulated and makes "
                    "none; it may still be on {node}, in the `evidence` folder of the agent's data_dir",
                    name=name,
                    node=node,
                )
            )
        return bundle


def routes(bundles: Bundles) -> list[Route]:
    """Returns the route."""

    async def answer(asked: Checked[Nothing, Nothing]) -> web.StreamResponse:
        async with bundles.opened(asked.http, asked.id) as found:
            response = as_file(f"{found.name}.tar.gz", "application/gzip")
            response.content_length = found.bundle.size
            return await sent(asked.http, response, found.bundle.pieces(), found.name)

    return [serve(table.EVIDENCE, answer)]


def as_file(name: str, media: str) -> web.StreamResponse:
    """Returns the answer by which a browser keeps a file, whatever is in it; `name` may be foreign."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).lstrip(".-") or "file"
    return web.StreamResponse(
        headers={
            hdrs.CONTENT_TYPE: media,
            hdrs.CONTENT_DISPOSITION: f'attachment; filename="{safe[-150:]}"',
            "Content-Security-Policy": "default-src 'none'; sandbox",
        }
    )


async def sent(
    request: web.Request, response: web.StreamResponse, pieces: AsyncIterator[bytes], name: str
) -> web.StreamResponse:
    """Sends it; where it breaks off the connection ends, so that nobody takes it for whole."""
    try:
        return await send(request, response, pieces)
    except (Unreachable, ActionError, EOFError) as error:
        _log.warning("%s was not sent to its end: %s", name, error)
        if request.transport is not None:
            request.transport.abort()
        return response


@contextlib.asynccontextmanager
async def _place(places: asyncio.Semaphore) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(WAIT_S):
            await places.acquire()
    except TimeoutError as error:
        raise _later("others download bundles") from error
    try:
        yield
    finally:
        places.release()


def _later(why: str) -> web.HTTPException:
    return web.HTTPServiceUnavailable(
        text=f"{why}: try again in {WAIT_S:.0f} s", headers={hdrs.RETRY_AFTER: f"{WAIT_S:.0f}"}
    )


def why_not_kept(history: History, name: str) -> str:
    """What is noted of a bundle that was too large; empty: nothing."""
    notes = history.notes_page(
        kind=TOO_LARGE,
        incident="",
        run="",
        scope="",
        who="",
        since=0.0,
        until=inf,
        before="",
        limit=MOST_NOTES,
    )
    texts = (str(note["text"]).partition(": ") for note in notes or ())
    return next((why for of, _, why in texts if of == name), "")


def bundle_of(history: History, id_: str) -> str:
    """Returns the name of the bundle; empty: there is none."""
    if "/" in id_:
        return id_
    raw = history.incident(id_) or history.incident(id_.partition(".")[0])
    if raw is None:
        return ""
    return next(_bundles(history, raw["id"], id_), "")


def _bundles(history: History, incident: str, id_: str) -> Iterator[str]:
    """Yields the bundles of steps at or below `id_`, newest first; `id_` may be a prefix of the incident's id."""
    for run in reversed(history.runs_of(incident)):
        for step in reversed(run["steps"]):
            if ("." not in id_ or f"{step['id']}.".startswith(f"{id_}.")) and (
                name := shapes.bundle(run, step)
            ):
                yield name
