"""GET /login, GET /login/callback: a browser logs in at the identity provider."""

import time

from aiohttp import web

from agent.contract.errors import Refused, Unreachable
from brain.console.access.door import SESSION, Door
from brain.console.access.oidc import LOGIN_WITHIN_S, Provider
from brain.console.access.route import Route
from brain.console.access.sessions import LoggedIn, Sessions
from brain.console.answers import json_answer
from brain.console.brain_view import BrainView

LOGIN = "gpuward-login"  # the cookie that binds a login to its browser


def routes(brain: BrainView, door: Door, provider: Provider, sessions: Sessions) -> list[Route]:
    """Returns the routes; everybody may use them."""

    async def login(request: web.Request) -> web.Response:
        door.count_login(request)
        try:
            where, cookie = await provider.begin()
        except (Refused, Unreachable) as error:
            raise web.HTTPBadGateway(text=str(error)) from error
        answer = web.Response(status=303, headers={"Location": where})
        # Lax: the provider's page leads back here, and the browser must show it then.
        door.set_cookie(request, answer, LOGIN, cookie, samesite="Lax", max_age=round(LOGIN_WITHIN_S))
        return answer

    async def callback(request: web.Request) -> web.Response:
        who = await _logged_in(request)
        person = sessions.of(who)
        if person is None:  # brain.toml was changed meanwhile
            raise web.HTTPForbidden(text=f"{who.name} is in no group of console.oidc.groups any more")
        brain.note("access.login", f"{person.name} logged in ({person.role.value})", person.name)
        answer = _at_home(request, json_answer({"name": person.name, "role": person.role.value}))
        door.set_cookie(request, answer, LOGIN, "", samesite="Lax", max_age=0)
        sessions.close(door.cookie(request, SESSION))  # the one before it in this browser
        cookie = sessions.open(who, time.monotonic())
        door.set_cookie(request, answer, SESSION, cookie, samesite="Strict")
        return answer

    async def _logged_in(request: web.Request) -> LoggedIn:
        door.count_login(request)
        try:
            return await provider.end(request.query, door.cookie(request, LOGIN))
        except Refused as error:
            door.refused(f"login {door.payer(request)}", f"a login was refused: {error}")
            raise web.HTTPForbidden(text=str(error)) from error
        except Unreachable as error:
            raise web.HTTPBadGateway(text=str(error)) from error

    return [
        Route(method="GET", path="/login", least=None, handler=login),
        Route(method="GET", path="/login/callback", least=None, handler=callback),
    ]


def _at_home(request: web.Request, answer: web.Response) -> web.Response:
    """A browser goes on to the console; programs read who has logged in."""
    if request.headers.get("Sec-Fetch-Mode") == "navigate":
        answer.set_status(303)
        answer.headers["Location"] = "/"
    return answer
