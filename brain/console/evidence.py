"""An evidence bundle by its name (`<node>/<command>`), or the newest one of a step, run or
incident.
"""

import asyncio
import contextlib
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator

from aiohttp import hdrs, web

from agent.contract import subjects
from agent.contract.errors import ActionError, ConfigError, Unreachable
from agent.contract.messages import clip
from brain.console import shapes
from brain.console.access.door import Door
from brain.console.access.route import Route
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, History
from brain.console.reading import Reading
from brain.console.sending import send

_log = logging.getLogger(__name__)
AT_ONCE, OF_ONE = 6, 2  # downloads, and those of one person: each reads from NATS as it is read
WAIT_S = 10.0  # for a place


def routes(brain: BrainView, door: Door, reading: Reading) -> list[Route]:
    """Returns the route."""
    places = asyncio.Semaphore(AT_ONCE)
    held: Counter[str] = Counter()

    async def answer(asked: Checked[Nothing, Nothing]) -> web.StreamResponse:
        request, id_ = asked.http, asked.id
        async with reading.read(request, lambda history: bundle_of(history, id_).encode()) as found:
            name = found.decode()
        if not name:
            raise web.HTTPNotFound(text=f"{clip(id_, 80)!r} has no evidence bundle: see `gpuward explain`")
        who = door.payer(request)
        if held[who] >= OF_ONE:
            raise _later("your earlier downloads are not over")
        held[who] += 1
        try:
            async with _place(places):
                return await _sent(request, name)
        finally:
            held[who] -= 1
            if not held[who]:
                del held[who]

    async def _sent(request: web.Request, name: str) -> web.StreamResponse:
        node, _, command = name.partition("/")
        try:
            bundle = await brain.evidence(subjects.token(node, "node"), command)
        except Unreachable as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        except (ActionError, ConfigError) as error:
            raise web.HTTPNotFound(text=str(error)) from error
        if bundle is None:
            raise web.HTTPNotFound(
                text=f"{name} is not in the object store: not sent yet, too old, or the node is simulated and makes "
                f"none; it may still be on {node}, in the "
                f"`evidence` folder of the agent's data_dir"
            )
        file = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
        response = web.StreamResponse(
            headers={
                hdrs.CONTENT_TYPE: "application/gzip",
                hdrs.CONTENT_DISPOSITION: f'attachment; filename="{file}.tar.gz"',
            }
        )
        response.content_length = bundle.size
        try:
            return await send(request, response, bundle.pieces())
        except (Unreachable, ActionError) as error:
            _log.warning("%s was not sent to its end: %s", name, error)
            if request.transport is not None:
                request.transport.abort()  # whoever gets it must not take it for whole
            return response

    return [serve(table.EVIDENCE, answer)]


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
