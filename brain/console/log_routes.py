"""The log as one compressed file (brain.adapters.log_file), for `gpuward log export`."""

import asyncio
import logging
import math

from aiohttp import hdrs, web

from agent.contract.errors import Unreachable
from brain.console.access.route import Route
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.log_shapes import LogQuery
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView
from brain.console.sending import behind, send

_log = logging.getLogger(__name__)
RETRY_S = 30


def routes(brain: BrainView) -> list[Route]:
    """Returns the route. It is for administrators: everything that everybody has said stands on the log, and all settings."""
    one = asyncio.Lock()  # each reads much from NATS

    async def answer(asked: Checked[LogQuery, Nothing]) -> web.StreamResponse:
        request, since = asked.http, asked.query.since
        until = math.inf if asked.query.until is None else asked.query.until
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
                return await send(request, response, behind(first, pieces))
            except Unreachable as error:
                _log.warning("the log was not sent to its end: %s", error)
                if request.transport is not None:
                    request.transport.abort()  # whoever gets it must not take it for whole
                return response

    return [serve(table.LOG, answer)]
