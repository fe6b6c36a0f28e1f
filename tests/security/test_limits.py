"""Whoever is limited to scopes or runbooks gets beyond that by no route: not by another's token, nor by letting go on."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from brain.console import token_routes
from brain.console.access import route
from brain.console.access.credentials import Credentials
from brain.console.access.door import SESSION, Door
from brain.console.access.people import Grant
from brain.console.access.sessions import LoggedIn, Sessions
from brain.console.access.two_persons import Proposals
from brain.console.access.users import Users
from brain.console_config import GrantConfig, Role
from tests import people
from tests.real.brain_kit import lab
from tests.security.test_door import ask, shown
from tests.security.view import FolderView

ADMINISTRATOR = {"role": "administrator"}
LIMITED = {
    "rack": ADMINISTRATOR | {"scopes": ["rack/r7"]},
    "book": ADMINISTRATOR | {"runbooks": ["restart-*"]},
    "both": ADMINISTRATOR | {"scopes": ["rack/r7"], "runbooks": ["restart-*"]},
}
USERS = people.ANN["users"] | {"cy": ADMINISTRATOR} | LIMITED
# Each route that changes something, with what goes beyond any limit.
BEYOND: dict[str, Any] = {
    "/api/v1/tokens": {"user": "cy"},
    "/api/v1/tokens/revoke": {"user": "cy"},
    "/api/v1/command": {"verb": "reset"},
    "/api/v1/drill": {"name": "nothing"},
}


@pytest.mark.component("nats-server")
async def test_no_route_leads_beyond_a_limit(tmp_path: Path) -> None:
    """Administrators of one rack, of one runbook, of both, by brain.toml or by their token: each route that changes something
    refuses what is about the whole cell, and somebody else's token is neither made nor revoked nor shown.
    """
    (tmp_path / "t.yaml").write_text(json.dumps({"n1": {"rack": "r7"}, "n2": {"rack": "r8"}}))
    async with lab(tmp_path, console={"port": 0, "users": USERS}, topology="t.yaml", drill=True) as whole:
        assert whole.running is not None
        url, data = whole.running.console_url, whole.config.data_dir
        cy = shown(people.token_file(data, "cy"))
        tokens = [shown(people.token_file(data, name)) for name in LIMITED]
        ann = shown(whole.ann)
        status, made = await ask(url, "/api/v1/tokens", {"scopes": ["rack/r7"]}, Authorization=ann)
        assert status == 200
        for limited in (*tokens, f"Bearer {made['token']}"):
            for path, body in BEYOND.items():
                status, answer = await ask(url, path, body, Authorization=limited)
                assert status == 403, (path, answer)
            _, answer = await ask(url, "/api/v1/tokens", Authorization=limited)
            assert "cy" not in {one["user"] for one in answer["tokens"]}
        assert (await ask(url, Authorization=cy))[0] == 200, "nobody has revoked it"


@pytest.mark.component("nats-server")
async def test_what_a_limit_to_runbooks_means(tmp_path: Path) -> None:
    """Such a person stops things, also all, and ends what they have stopped themselves; what lets other runbooks go on they
    may not say: to release another's hold, to return or forget a node.
    """
    async with lab(tmp_path, console={"port": 0, "users": USERS}) as whole:
        assert whole.running is not None
        await whole.node("n1")
        url, ann = whole.running.console_url, shown(whole.ann)
        book = shown(people.token_file(whole.config.data_dir, "book"))
        for who, verb, args, allowed in (
            (ann, "hold", {"scope": "node/n1", "why": "mine"}, True),
            (book, "release", {"scope": "node/n1"}, False),
            (book, "return", {"node": "n1"}, False),
            (book, "forget", {"node": "n1"}, False),
            (book, "hold", {"scope": "all", "why": "stop"}, True),
            (book, "release", {"scope": "all"}, True),
            (ann, "hold", {"scope": "all", "why": "an audit"}, True),
            (book, "hold", {"scope": "all", "why": "stop"}, True),
            (book, "release", {"scope": "all"}, False),
            (book, "ack", {"id": "inc-unknown"}, False),
            (book, "mode", {"runbook": "restart-service", "mode": "observe"}, True),
            (book, "mode", {"runbook": "*", "mode": "observe"}, False),
        ):
            status, answer = await ask(
                url, "/api/v1/command", {"verb": verb, "args": args}, Authorization=who
            )
            assert (status != 403) == allowed, (verb, args, answer)


def door_of(
    tmp_path: Path, users: dict[str, Any], groups: dict[str, GrantConfig] | None = None
) -> tuple[Any, Door, Credentials, Sessions]:
    """A door without a brain behind it."""
    view = FolderView.of(tmp_path / "data", console={"port": 0, "users": users})
    config = view.config.console
    credentials = Credentials(config, view.config.data_dir, Users(view.config, view.note), lambda: 1000.0)
    sessions = Sessions(3600, lambda: groups or {})
    clock = asyncio.get_running_loop().time
    return view, Door(config, credentials, sessions, clock=clock, note=view.note), credentials, sessions


@pytest.mark.parametrize(
    ("grants", "role"),
    [
        ((Grant(role=Role.ADMINISTRATOR, scopes=("rack/r7",)),), None),
        ((Grant(role=Role.ADMINISTRATOR, runbooks=("restart-*",)),), None),
        ((Grant(role=Role.VIEWER), Grant(role=Role.ADMINISTRATOR, scopes=("rack/r7",))), "viewer"),
        ((Grant(role=Role.OPERATOR),), "operator"),
        ((Grant(role=Role.ADMINISTRATOR),), "administrator"),
    ],
)
async def test_a_login_by_the_name_of_another_s_grants(
    tmp_path: Path, grants: tuple[Grant, ...], role: str | None
) -> None:
    """cy is an administrator in brain.toml, and comes by a group of the identity provider: a token that is made in that session
    may do no more than the group, though it would count with what brain.toml says.
    """
    groups = {
        f"g{number}": GrantConfig(role=one.role, scopes=one.scopes, runbooks=one.runbooks)
        for number, one in enumerate(grants)
    }
    view, door, credentials, sessions = door_of(tmp_path, {"cy": ADMINISTRATOR}, groups)
    app = web.Application(middlewares=[door.guard])
    route.add(app, token_routes.routes(view, door, credentials, sessions, Proposals()))
    cookie = sessions.open(LoggedIn(name="cy", groups=tuple(groups)), asyncio.get_running_loop().time())
    async with TestClient(TestServer(app)) as client:
        sent = {"Cookie": f"{SESSION}={cookie}", "Origin": f"http://{client.host}:{client.port}"}
        async with client.post("/api/v1/tokens", json={}, headers=sent) as answer:
            assert answer.status == (200 if role else 403), await answer.text()
            assert role is None or (await answer.json())["role"] == role


async def test_a_route_that_does_not_ask_who_may_is_an_error(tmp_path: Path) -> None:
    """By construction: what a route touches cannot be forgotten. What it has answered is told to nobody."""
    _, door, credentials, _ = door_of(tmp_path, {"cy": ADMINISTRATOR})

    async def careless(_: web.Request) -> web.Response:
        return web.Response(text="done")

    app = web.Application(middlewares=[door.guard])
    row = route.Route(method="POST", path="/api/v1/careless", least=Role.VIEWER, handler=careless)
    route.add(app, [row])
    _, text = credentials.tokens.make("cy", Role.VIEWER, now=1000.0, lasts_s=60, by="the test")
    async with TestClient(TestServer(app)) as client:
        sent = {"Authorization": f"Bearer {text}"}
        async with client.post("/api/v1/careless", json={}, headers=sent) as answer:
            assert answer.status == 500
            assert "done" not in await answer.text()
