"""GET and POST /api/join: a node joins the cell with its token (docs/cell.md).

The authority's certificate is for everybody, and believed by nobody but by its fingerprint in the token. The token goes only
over a connection that this authority vouches for.
"""

import asyncio
import time
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from agent.contract.errors import ConfigError, Refused
from agent.contract.messages import clip
from brain.cell import by_hand
from brain.cell.authority import Authority
from brain.cell.registry import UNKNOWN, CellRegistry
from brain.cell.trust import TrustFile
from brain.config import BrainConfig
from brain.console.access.door import Door
from brain.console.access.route import Route
from brain.console.answers import json_answer
from brain.console.brain_view import BrainView

_KEYS = ("id", "secret", "node", "public")


def routes(brain: BrainView, door: Door, registry: CellRegistry, authority: Authority) -> list[Route]:
    """Returns the routes; the token decides."""

    async def show(_: web.Request) -> web.Response:
        return json_answer({"cell": brain.config.cell, "ca": _ca(authority)})

    async def join(request: web.Request) -> web.Response:
        door.count_login(request)
        given = await _given(request)
        calls_itself = f"a node that calls itself {clip(given['node'], 63)!r} may not join"
        try:
            if not registry.knows(given["id"], given["secret"]):
                door.refused("join", f"{calls_itself}: {UNKNOWN}")
                door.count_wrong_join()
                raise web.HTTPForbidden(text=UNKNOWN)
            node = await asyncio.to_thread(
                registry.join, given["id"], given["secret"], given["node"], given["public"], now=time.time()
            )
        except Refused as error:
            door.refused(f"join {given['id']}", f"{calls_itself}: {error}")
            raise web.HTTPForbidden(text=str(error)) from error
        except ConfigError as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        brain.note("access.joined", f"node {given['node']} has joined by token {given['id']}")
        newest = TrustFile(brain.config.cell_dir).state().newest
        return json_answer(
            {
                "cell": brain.config.cell,
                "node": given["node"],
                "nats_url": brain.config.nats_url_for_nodes(request.url.host or "", tls=authority.exists()),
                "nats_jwt": brain.node_jwt(given["node"], node),
                "ca": _ca_of_nats(brain.config, authority),
                "trusted_keys": dict(newest.keys) if newest else _trusted(brain.config.signing_key),
                "trust_serial": newest.serial if newest else 0,
                "todo": by_hand.todo(brain.config, given["node"], joined=True),
            }
        )

    return [
        Route(method="GET", path="/api/join", least=None, handler=show),
        Route(method="POST", path="/api/join", least=None, handler=join),
    ]


async def _given(request: web.Request) -> dict[str, str]:
    try:
        raw: Any = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise web.HTTPBadRequest(text="the body must be JSON") from error
    if not isinstance(raw, dict) or any(not isinstance(raw.get(key), str) for key in _KEYS):
        raise web.HTTPBadRequest(text=f"needs the texts {', '.join(_KEYS)}")
    return {key: raw[key] for key in _KEYS}


def _ca(authority: Authority) -> str:
    return authority.bundle() if authority.exists() else ""


def _ca_of_nats(config: BrainConfig, authority: Authority) -> str:
    """The CA of the servers that nodes connect to; empty: the system's CAs."""
    if config.embedded:
        return _ca(authority)
    return config.nats.ca_file.read_text(encoding="ascii") if config.nats.ca_file else ""


def _trusted(signing_key: Path) -> dict[str, str]:
    """The public half of the key that signs commands, as an agent's configuration has it."""
    key_id, _, public = (
        signing_key.with_name(signing_key.name + ".pub").read_text("ascii").strip().partition(" = ")
    )
    return {key_id: public}
