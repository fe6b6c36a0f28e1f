"""Reads the body of a request at the door: within a time, and no more than its route takes."""

import asyncio

from aiohttp import web

from brain.console.access.connections import BODY_S
from brain.console.access.route import BODY


async def read(request: web.Request, largest: int) -> None:
    """Reads it; aiohttp keeps it for the route, or the request where the route takes a larger one than the server does (`largest`
    bytes; 0: it does not).
    """
    try:
        async with asyncio.timeout(BODY_S):
            if largest:
                request[BODY] = await _large(request, largest)
            else:
                await request.read()
    except TimeoutError as error:
        raise web.HTTPRequestTimeout(text=f"the body did not come within {BODY_S:g} s") from error
    except (web.RequestPayloadError, ConnectionError) as error:
        raise web.HTTPBadRequest(text="the body is not what its headers say, or has broken off") from error


async def _large(request: web.Request, largest: int) -> bytes:
    """HTTPRequestEntityTooLarge as soon as it is."""
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > largest:
            raise web.HTTPRequestEntityTooLarge(max_size=largest, actual_size=len(body))
    return bytes(body)
