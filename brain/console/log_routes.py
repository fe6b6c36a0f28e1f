"""GET /api/log: the log as one compressed file (brain.adapters.log_file), for `gpuward log export`."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator

from aiohttp import hdrs, web

from agent.contract.errors import Unreachable
from agent.contract.messages import clip
from brain.console.access.route import Route
from brain.console.brain_view import BrainView
from brain.console.sending import send
from brain.console_config import Role

_log = logging.getLogger(__name__)
RETRY_S = 30


def routes(brain: BrainView) -> list[Route]:
    """Returns the route. It is for administrators: everything that everybody has said stands on the log, and all settings."""
    one = asyncio.Lock()  # each reads much from NATS

    async def answer(request: web.Request) -> web.StreamResponse:
        since = _time(request, "since", 0.0)
        until = _time(request, "until", math.inf)
        if one.locked():
            raise web.HTTPServiceUnavailable(
                text="somebody exports the log already: try again later",
                headers={hdrs.RETRY_AFTER: str(RETRY_S)},
            )
        async with one:
            pieces = brain.log_file(since, until)
            try:
                first = await anext(pieces)
            except Unreachable as error:
                raise web.HTTPServiceUnavailable(text=str(error)) from error
            response = web.StreamResponse(
                headers={
                    hdrs.CONTENT_TYPE: "application/gzip",
                    hdrs.CONTENT_DISPOSITION: f'attachment; filename="{brain.config.cell}.ndjson.gz"',
                }
            )
            try:
                return await send(request, response, _with(first, pieces))
            except Unreachable as error:
                _log.warning("the log was not sent to its end: %s", error)
                if request.transport is not None:
                    request.transport.abort()  # whoever gets it must not take it for whole
                return response

    return [Route(method="GET", path="/api/log", least=Role.ADMINISTRATOR, handler=answer)]


async def _with(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


def _time(request: web.Request, what: str, default: float) -> float:
    text = request.query.get(what)
    if text is None:
        return default
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < 1e11:
        raise web.HTTPBadRequest(text=f"{what}: {clip(text, 40)!r} is no time in seconds since 1970")
    return found
