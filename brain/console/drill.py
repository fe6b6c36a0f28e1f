"""Drills: the console passes them to the simulated nodes of this cell, and their answer back.

Only with `drill = true` in the configuration. What answers is no part of the brain (simulations/fleet.py).
"""

from typing import Any

import orjson
from aiohttp import web

from agent.contract import subjects
from agent.contract.errors import Unreachable
from brain.console.desk import Desk

EAR = "drill"  # they hear on `ward.<cell>.cmd.drill`, as if that were a node
ANSWER_S = 5.0


def routes(desk: Desk) -> list[web.RouteDef]:
    """GET /api/drill lists, POST /api/drill {name, node} injects."""

    async def show(_: web.Request) -> web.Response:
        return await _pass_on(desk, {"do": "list"})

    async def inject(request: web.Request) -> web.Response:
        try:
            body = orjson.loads(await request.read())
            name, node = body["name"], body.get("node", "")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise web.HTTPBadRequest(text="want {name, node}") from None
        return await _pass_on(desk, {"do": "inject", "name": name, "node": node})

    return [web.get("/api/drill", show), web.post("/api/drill", inject)]


async def _pass_on(desk: Desk, wish: dict[str, Any]) -> web.Response:
    try:
        raw = await desk.ask(subjects.command(desk.config.cell, EAR), orjson.dumps(wish), ANSWER_S)
        answer = orjson.loads(raw)
        status = 200 if answer["ok"] else 409
    except Unreachable as error:
        raise web.HTTPServiceUnavailable(text=f"no simulated nodes answer here ({error})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise web.HTTPBadGateway(text="the simulated nodes answered nonsense") from error
    return web.Response(body=orjson.dumps(answer), status=status, content_type="application/json")
