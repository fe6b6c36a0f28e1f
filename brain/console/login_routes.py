"""GET /login, GET /login/callback, POST /logout: a browser logs in at the identity provider."""

import time

from aiohttp import web

from agent.contract.errors import Refused, Unreachable
from brain.console.access.door import SESSION, Door
from brain.console.access.oidc import LOGIN_WITHIN_S, Provider
from brain.console.access.people import Person
from brain.console.access.route import Route
from brain.console.access.sessions import Sessions
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
        secure = door.secure(request)
        # Lax: the provider's page leads back here, and the browser must show it then.
        answer.set_cookie(
            LOGIN,
            cookie,
            max_age=round(LOGIN_WITHIN_S),
            path="/login",
            httponly=True,
            secure=secure,
            samesite="Lax",
        )
        return answer

    async def callback(request: web.Request) -> web.Response:
        person = await _logged_in(request)
        brain.note("access.login", f"{person.name} logged in ({person.role.value})")
        answer = json_answer({"name": person.name, "role": person.role.value})
        answer.del_cookie(LOGIN, path="/login")
        cookie = sessions.open(person, time.monotonic())
        secure = door.secure(request)
        answer.set_cookie(SESSION, cookie, path="/", httponly=True, secure=secure, samesite="Strict")
        return answer

    async def _logged_in(request: web.Request) -> Person:
        door.count_login(request)
        try:
            return await provider.end(request.query, request.cookies.get(LOGIN, ""))
        except Refused as error:
            brain.note("access.refused", f"a login was refused: {error}")
            raise web.HTTPForbidden(text=str(error)) from error
        except Unreachable as error:
            raise web.HTTPBadGateway(text=str(error)) from error

    async def logout(request: web.Request) -> web.Response:
        sessions.close(request.cookies.get(SESSION, ""))
        answer = json_answer({})
        answer.del_cookie(SESSION, path="/")
        return answer

    return [
        Route(method="GET", path="/login", least=None, handler=login),
        Route(method="GET", path="/login/callback", least=None, handler=callback),
        Route(method="POST", path="/logout", least=None, handler=logout),
    ]
