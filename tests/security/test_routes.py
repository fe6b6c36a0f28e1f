"""Every route of the console × every role, on a real brain: who gets in where, and under whose name it stands in the log."""

from pathlib import Path
from typing import Any

import aiohttp
import pytest

from brain.console import earlier_paths, web_routes
from brain.console.access.two_persons import needs_second
from brain.console.api.verbs import VERBS
from brain.console_config import Role
from tests import people
from tests.real.brain_kit import Lab, lab
from tests.security.figures import Record, attacked
from tests.security.test_limits import BEYOND

pytestmark = pytest.mark.component("nats-server")
WHO = (None, *Role)
USERS = {role.value: {"role": role.value} for role in Role} | people.ANN["users"]
# (method, path, body) -> the weakest role that gets past the door
READ = Role.VIEWER
ROUTES: dict[tuple[str, str], tuple[Role, Any]] = {
    ("GET", "/api/v1/status"): (READ, None),
    ("GET", "/api/v1/incidents"): (READ, None),
    ("GET", "/api/v1/incidents/{id}"): (READ, None),
    ("GET", "/api/v1/explain/{id}"): (READ, None),
    ("GET", "/api/v1/why-not"): (READ, None),
    ("GET", "/api/v1/runs"): (READ, None),
    ("GET", "/api/v1/runs/{id}"): (READ, None),
    ("GET", "/api/v1/nodes"): (READ, None),
    ("GET", "/api/v1/nodes/{name}"): (READ, None),
    ("GET", "/api/v1/nodes/{name}/counters"): (READ, None),
    ("GET", "/api/v1/cards/{serial}"): (READ, None),
    ("GET", "/api/v1/fleet"): (READ, None),
    ("GET", "/api/v1/needs"): (READ, None),
    ("GET", "/api/v1/reports"): (READ, None),
    ("GET", "/api/v1/reports/energy"): (READ, None),
    ("GET", "/api/v1/remedies"): (READ, None),
    ("GET", "/api/v1/readiness"): (READ, None),
    ("GET", "/api/v1/rules"): (READ, None),
    ("GET", "/api/v1/rules/{name}"): (READ, None),
    ("GET", "/api/v1/runbooks"): (READ, None),
    ("GET", "/api/v1/runbooks/{name}"): (READ, None),
    ("GET", "/api/v1/notes"): (READ, None),
    ("GET", "/api/v1/notes.ndjson"): (READ, None),
    ("GET", "/api/v1/watch"): (READ, None),
    ("GET", "/api/v1/openapi.json"): (READ, None),
    ("GET", "/metrics"): (READ, None),
    ("GET", "/api/v1/me"): (READ, None),
    ("GET", "/api/v1/tokens"): (READ, None),
    ("GET", "/api/v1/evidence/{id}"): (READ, None),
    ("GET", "/api/v1/evidence-files/{id}"): (READ, None),
    ("GET", "/api/v1/evidence-file/{id}"): (READ, None),
    ("GET", "/api/v1/drill"): (READ, None),
    ("GET", "/api/v1/log"): (Role.ADMINISTRATOR, None),
    ("POST", "/api/v1/drill"): (Role.OPERATOR, {"name": "nothing"}),
    ("POST", "/api/v1/tokens"): (READ, {"lasts_s": 60}),
    ("POST", "/api/v1/tokens/revoke"): (READ, {"ids": ["nothing"]}),
    ("POST", "/login/session"): (READ, {}),
    ("POST", "/login/link"): (READ, {}),
    ("POST", "/api/v1/diagnose"): (READ, {"log": "[1.0] nothing"}),
    ("POST", "/api/v1/command"): (Role.OPERATOR, {"verb": "ack", "args": {"id": "inc-nothing"}}),
}
# They change nothing but the browser of whoever asks, who can do no more there (test_browser_sessions.py), or nothing at all.
OWN = ("/login/session", "/login/link", "/api/v1/diagnose")
# Everybody may use these, logged in or not. At a provider that does not answer nobody gets further; no login was begun here.
OPEN = {
    ("GET", "/healthz"): 200, ("GET", "/readyz"): 200, ("GET", "/api/join"): 200, ("POST", "/api/join"): 400,
    ("GET", "/login"): 502, ("GET", "/login/callback"): 403, ("POST", "/logout"): 200,
    ("POST", "/login/once"): 400, ("GET", "/login/ways"): 200, ("GET", "/"): 200, ("GET", "/web/app.js"): 200,
}  # fmt: skip
# The console's pages: the same files for everybody (tests/web).
FILES = {(route.method, route.path.replace(":.+", "")) for route in web_routes.routes()}
# Of version 0.1: they only say where the API is (tests/real/test_api.py).
LED_ON = {("GET", earlier_paths.PATH), ("POST", earlier_paths.PATH)}
OIDC = {
    "issuer": "http://127.0.0.1:1",
    "client_id": "gpuward",
    "redirect_url": "http://127.0.0.1/login/callback",
    "groups": {"oncall": {"role": "viewer"}},
}
COMMANDS: dict[str, tuple[dict[str, Any], Role]] = {
    "hold": ({"scope": "all", "why": "a look"}, Role.OPERATOR),
    "release": ({"scope": "all"}, Role.OPERATOR),
    "ack": ({"id": "inc-nothing"}, Role.OPERATOR),
    "close": ({"id": "inc-nothing"}, Role.OPERATOR),
    "note": ({"id": "inc-nothing", "text": "the riser is loose"}, Role.OPERATOR),
    "deny": ({"id": "inc-nothing"}, Role.OPERATOR),
    "return": ({"node": "n1"}, Role.OPERATOR),
    "forget": ({"node": "n1"}, Role.OPERATOR),
    "approve": ({"id": "inc-nothing", "rung": "reset"}, Role.APPROVER),
    "start": ({"runbook": "accept-node", "node": "n1"}, Role.APPROVER),
    "reset": ({}, Role.APPROVER),
    "mode": ({"runbook": "*", "mode": "auto"}, Role.ADMINISTRATOR),
}
RANK = list(Role)


def headers(whole: Lab, role: Role | None) -> dict[str, str]:
    """The credential of the person of this role; None: of nobody."""
    data = whole.config.data_dir
    return people.bearer(people.token_file(data, role.value, role)) if role else {}


async def test_every_route_for_every_role(tmp_path: Path, record_property: Record) -> None:
    """Nobody changes anything without a credential; each role gets what its row says, and no more."""
    async with lab(tmp_path, console={"port": 0, "users": USERS, "oidc": OIDC}, drill=True) as whole:
        assert whole.running is not None
        async with aiohttp.ClientSession(whole.running.console_url) as session:
            denied = 0
            for role in WHO:
                shown = headers(whole, role)
                for (method, path), (least, body) in ROUTES.items():
                    path = path.replace("{id}", "n1/nothing" if "evidence" in path else "inc-nothing")
                    path = path.replace("{name}", "nothing")
                    async with session.request(method, path, json=body, headers=shown) as answer:
                        denied += answer.status in (401, 403)
                        if role is None:
                            want = (
                                method == "GET"
                                and path not in ("/api/v1/tokens", "/api/v1/log")
                                and "evidence" not in path
                            )
                            assert (answer.status != 401) == want, (path, answer.status)
                        else:
                            let_in = RANK.index(role) >= RANK.index(least)
                            assert (answer.status not in (401, 403)) == let_in, (role, path, answer.status)
                        assert answer.headers["X-Content-Type-Options"] == "nosniff"
                for (method, path), status in OPEN.items():
                    body = {} if method == "POST" else None
                    async with session.request(method, path, json=body, headers=shown) as answer:
                        assert answer.status == status, (role, path)
    attacked(record_property, denied)


async def test_the_table_has_every_route(tmp_path: Path) -> None:
    """A new route cannot be forgotten here, nor a new command."""
    from brain.console.server import Console
    from tests.security.view import FolderView

    console = Console(FolderView.of(tmp_path, drill=True, console={"port": 0, "oidc": OIDC}))
    known: dict[tuple[str, str], Role | None] = {key: least for key, (least, _) in ROUTES.items()}
    assert {
        (one.method, one.path.replace(":.+", "")): one.least for one in console.routes()
    } == known | dict.fromkeys({*OPEN, *LED_ON, *FILES})
    assert {verb: role for verb, (_, _, role) in VERBS.items()} == {
        verb: least for verb, (_, least) in COMMANDS.items()
    }
    changing = {path for (method, path), _ in ROUTES.items() if method != "GET" and path not in OWN}
    assert changing == set(BEYOND), (
        "what goes beyond every limit is refused by each route that changes something"
    )
    assert not any(needs_second(verb, args, ()) for verb, (args, _) in COMMANDS.items())


async def test_every_command_for_every_role(tmp_path: Path, record_property: Record) -> None:
    """What stops is for operators, what lets go on for approvers, what runs by itself for administrators."""
    async with lab(tmp_path, console={"port": 0, "users": USERS}) as whole:
        assert whole.running is not None
        await whole.node("n1")
        async with aiohttp.ClientSession(whole.running.console_url) as session:
            denied = 0
            for role in WHO:
                shown = headers(whole, role)
                for verb, (args, least) in COMMANDS.items():
                    body = {"verb": verb, "args": args}
                    async with session.post("/api/v1/command", json=body, headers=shown) as answer:
                        text = await answer.json()
                        denied += answer.status in (401, 403)
                        if role is None:
                            assert answer.status == 401
                        elif RANK.index(role) < RANK.index(least):
                            assert answer.status == 403, (role, verb)
                        else:
                            assert answer.status not in (401, 403), (role, verb, text)
                            assert text.get("by", role.value) == role.value
            stop = {"verb": "mode", "args": {"runbook": "*", "mode": "observe"}}
            async with session.post(
                "/api/v1/command", json=stop, headers=headers(whole, Role.OPERATOR)
            ) as answer:
                assert answer.status == 200, "whoever may stop things may also set observe"
            lie = {"verb": "hold", "args": {"scope": "all", "why": "x"}, "who": "root"}
            async with session.post(
                "/api/v1/command", json=lie, headers=headers(whole, Role.OPERATOR)
            ) as answer:
                assert answer.status == 400, "who said it is who logged in"
        notes = (await whole.get("/api/v1/status"))["modes"]
        assert {"runbook": "*", "nodes": "*", "mode": "observe", "who": "operator", "why": ""} in notes
    attacked(record_property, denied + 1)
