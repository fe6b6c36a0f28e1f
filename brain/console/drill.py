"""Drills: the console passes requests on to the simulated nodes of this cell, and their answer back.

Only with `drill = true` in the configuration. What answers is not part of the brain (simulations/fleet_requests.py).
"""

from typing import Any

import orjson
from aiohttp import web

from agent.contract.errors import Unreachable
from brain.console.access.door import Door
from brain.console.access.people import EVERY_RUNBOOK, EVERYTHING, Touched
from brain.console.access.route import Route, get, person, post
from brain.console.brain_view import BrainView
from brain.console_config import Role

RECIPIENT = "drill"  # requests go to it as if it were a node
ANSWER_S = 5.0


def routes(brain: BrainView, door: Door) -> list[Route]:
    """GET /api/drill lists, POST /api/drill {name, node} injects."""

    async def show(_: web.Request) -> web.Response:
        return await _pass_on(brain, {"do": "list"})

    async def inject(request: web.Request) -> web.Response:
        try:
            body = orjson.loads(await request.read())
            name, node = body["name"], body.get("node", "")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise web.HTTPBadRequest(text="want {name, node}") from None
        scope = f"node/{node}" if node else EVERYTHING
        touched = Touched(scopes=(scope,), runbooks=(EVERY_RUNBOOK,))
        state = brain.live.state
        places = state.pack.places if state.pack else None
        door.demand(request, person(request), Role.OPERATOR, touched, places)
        return await _pass_on(brain, {"do": "inject", "name": name, "node": node})

    return [get("/api/drill", show), post("/api/drill", Role.OPERATOR, inject)]


async def _pass_on(brain: BrainView, request: dict[str, Any]) -> web.Response:
    try:
        raw = await brain.ask(RECIPIENT, orjson.dumps(request), ANSWER_S)
        answer = orjson.loads(raw)
        status = 200 if answer["ok"] else 409
    except Unreachable as error:
        raise web.HTTPServiceUnavailable(text=f"no simulated nodes answer here ({error})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise web.HTTPBadGateway(text="the simulated nodes sent an answer that cannot be read") from error
    return web.Response(body=orjson.dumps(answer), status=status, content_type="application/json")
