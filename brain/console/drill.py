"""Drills: the console passes requests on to the simulated nodes of this cell, and their answer back.

Only with `drill = true` in the configuration. What answers is not part of the brain (simulations/fleet_requests.py).
"""

import time
from typing import Any, TypeVar

import orjson
from aiohttp import web

from agent.contract.errors import Unreachable
from brain.console import shapes
from brain.console.access.door import Door
from brain.console.access.people import EVERY_RUNBOOK, EVERYTHING, Touched
from brain.console.access.route import Route, person
from brain.console.api import table
from brain.console.api.base import Nothing, Shape
from brain.console.api.drill_shapes import DrillListShape, InjectedShape, WantedDrill
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView
from brain.console_config import Role

RECIPIENT = "drill"  # requests go to it as if it were a node
ANSWER_S = 5.0
Heard = TypeVar("Heard", bound=Shape)


def routes(brain: BrainView, door: Door) -> list[Route]:
    """One lists, one injects."""

    async def show(_: Checked[Nothing, Nothing]) -> DrillListShape:
        return await _pass_on(brain, {"do": "list"}, DrillListShape)

    async def inject(asked: Checked[Nothing, WantedDrill]) -> InjectedShape:
        request, name, node = asked.http, asked.body.name, asked.body.node
        scope = f"node/{node}" if node else EVERYTHING
        touched = Touched(scopes=(scope,), runbooks=(EVERY_RUNBOOK,))
        state = brain.live.state
        places = state.pack.places if state.pack else None
        door.demand(request, person(request), Role.OPERATOR, touched, places)
        return await _pass_on(brain, {"do": "inject", "name": name, "node": node}, InjectedShape)

    return [serve(table.DRILLS, show), serve(table.INJECT, inject)]


async def _pass_on(brain: BrainView, request: dict[str, Any], kind: type[Heard]) -> Heard:
    at = shapes.iso(time.time())
    try:
        answer = orjson.loads(await brain.ask(RECIPIENT, orjson.dumps(request), ANSWER_S))
        if not answer["ok"]:
            raise web.HTTPConflict(text=str(answer["error"]))
        return kind.model_validate(answer | {"at": at})
    except Unreachable as error:
        raise web.HTTPServiceUnavailable(text=f"no simulated nodes answer here ({error})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise web.HTTPBadGateway(text="the simulated nodes sent an answer that cannot be read") from error
