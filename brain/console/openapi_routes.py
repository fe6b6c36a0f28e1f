"""The API's description of itself."""

from functools import cache

from aiohttp import web

from brain.console.access.route import Route
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.openapi import document
from brain.console.api.serving import Checked, serve
from brain.console.packing import packed_answer


def routes() -> list[Route]:
    """Returns the route."""

    @cache
    def body() -> bytes:
        return encoded(document())

    async def show(asked: Checked[Nothing, Nothing]) -> web.Response:
        return await packed_answer(asked.http, body())

    return [serve(table.OPENAPI, show)]
