"""POST /login/session, /login/link, /login/once: a browser comes in by a token. GET /login/ways: how people come in here.

The token is shown once, in the header where every client shows it, so that the door counts wrong ones; from then on the browser
has a cookie. Each request is judged by what the token may do then: when it is revoked, the session is nobody's.
"""

import time
from typing import Annotated

from aiohttp import web
from pydantic import Field, ValidationError

from brain.console.access.door import SESSION, Door
from brain.console.access.links import LASTS_S, Links
from brain.console.access.people import OWN_AFFAIR, Person
from brain.console.access.route import Route, person
from brain.console.access.sessions import Sessions
from brain.console.answers import json_answer
from brain.console.api.base import Asked
from brain.console.api.problems import wrong
from brain.console.brain_view import BrainView
from brain.console_config import Role


class _Code(Asked):
    """A link's code."""

    code: Annotated[str, Field(min_length=1, max_length=100)]


def routes(brain: BrainView, door: Door, sessions: Sessions, links: Links) -> list[Route]:
    """Returns the routes. The first two take a token; the code of a link is worth one."""

    def came_in(request: web.Request, who: Person, token: str) -> web.Response:
        brain.note(
            "access.login", f"{who.name} logged in with a browser ({who.role.value}, {who.how})", who.name
        )
        answer = json_answer({"name": who.name, "role": who.role.value})
        sessions.close(door.cookie(request, SESSION))  # the one before it in this browser
        cookie = sessions.open_for(who.name, lambda: door.owner(token), time.monotonic())
        door.set_cookie(request, answer, SESSION, cookie, samesite="Strict")
        return answer

    def by_token(request: web.Request) -> str:
        door.demand(request, person(request), Role.VIEWER, OWN_AFFAIR)
        token = door.shown(request)
        if not token:
            raise web.HTTPForbidden(
                text="only a token opens a session: show it in `Authorization: Bearer ...`"
            )
        return token

    async def session(request: web.Request) -> web.Response:
        return came_in(request, person(request), by_token(request))

    async def link(request: web.Request) -> web.Response:
        return json_answer({"code": links.make(by_token(request), time.monotonic()), "lasts_s": LASTS_S})

    async def once(request: web.Request) -> web.Response:
        door.count_login(request)
        try:
            code = _Code.model_validate_json(await request.read()).code
        except ValidationError as error:
            raise wrong("the body", error) from error
        token = links.token(code, time.monotonic())
        who = door.owner(token) if token else None
        if who is None:
            raise web.HTTPForbidden(
                text=f"this link was used, or is older than {LASTS_S:.0f} s: make another one with `gpuward console`"
            )
        present = sessions.person(door.cookie(request, SESSION), time.monotonic())
        if present is not None and present.name != who.name:  # what they say next would be in another name
            raise web.HTTPConflict(
                text=f"this link is for {who.name}, and you are logged in as {present.name}: if you mean it, log out and make "
                "another link"
            )
        return came_in(request, who, token)

    async def logout(request: web.Request) -> web.Response:
        sessions.close(door.cookie(request, SESSION))
        answer = json_answer({})
        door.set_cookie(request, answer, SESSION, "", samesite="Strict", max_age=0)
        return answer

    async def ways(_: web.Request) -> web.Response:
        return json_answer({"provider": brain.config.console.oidc is not None})

    return [
        Route(method="POST", path="/login/session", least=Role.VIEWER, handler=session),
        Route(method="POST", path="/login/link", least=Role.VIEWER, handler=link),
        Route(method="POST", path="/login/once", least=None, handler=once),
        Route(method="POST", path="/logout", least=None, handler=logout),
        Route(method="GET", path="/login/ways", least=None, handler=ways),
    ]
