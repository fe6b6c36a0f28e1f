"""GET /api/evidence/<id>: an evidence bundle by its name (`<node>/<command>`), or the newest one of a step, run or
incident.
"""

import asyncio
import re
from collections.abc import Iterator

from aiohttp import web

from agent.contract import subjects
from agent.contract.errors import ActionError, ConfigError, Unreachable
from agent.contract.messages import clip
from brain.console import shapes
from brain.console.access.route import Route, get
from brain.console.brain_view import BrainView, History
from brain.console.reading import Reading


def routes(brain: BrainView, reading: Reading) -> list[Route]:
    """Returns the route."""
    one_at_a_time = asyncio.Lock()  # each is held in memory

    async def answer(request: web.Request) -> web.Response:
        id_ = request.match_info["id"]
        async with reading.read(request, lambda history: bundle_of(history, id_).encode()) as found:
            name = found.decode()
        if not name:
            raise web.HTTPNotFound(text=f"{clip(id_, 80)!r} has no evidence bundle: see `gpuward explain`")
        node, _, command = name.partition("/")
        try:
            async with one_at_a_time:
                content = await brain.evidence(subjects.token(node, "node"), command)
        except Unreachable as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        except (ActionError, ConfigError) as error:
            raise web.HTTPNotFound(text=str(error)) from error
        if content is None:
            raise web.HTTPNotFound(
                text=f"{name} is not in the object store: not sent yet, too old, or the node is simulated and makes "
                f"none; it may still be on {node}, in the "
                f"`evidence` folder of the agent's data_dir"
            )
        file = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
        return web.Response(
            body=content,
            content_type="application/gzip",
            headers={"Content-Disposition": f'attachment; filename="{file}.tar.gz"'},
        )

    return [get("/api/evidence/{id:.+}", answer)]


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
