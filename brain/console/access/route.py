"""The routes of the API, each with the weakest role that may use it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from aiohttp import web

from brain.console.access.people import Person
from brain.console_config import Role

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LEAST: web.AppKey[Mapping[tuple[str, str], Role | None]] = web.AppKey("least", Mapping)
PERSON: web.RequestKey[Person] = web.RequestKey("person", Person)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path (aiohttp's form, such as `/api/runs/{id}`)."""

    method: str
    path: str
    # None: everybody, logged in or not
    least: Role | None
    handler: Handler


def get(path: str, handler: Handler) -> Route:
    """Returns a route that every viewer may use."""
    return Route(method="GET", path=path, least=Role.VIEWER, handler=handler)


def post(path: str, least: Role, handler: Handler) -> Route:
    """Returns a route that changes something."""
    return Route(method="POST", path=path, least=least, handler=handler)


def add(app: web.Application, routes: Iterable[Route]) -> None:
    """Adds them to an application; what is not among them is refused to everybody."""
    least: dict[tuple[str, str], Role | None] = {}
    for route in routes:
        resource = app.router.add_route(route.method, route.path, route.handler).resource
        least[route.method, resource.canonical if resource else route.path] = route.least
    app[LEAST] = least


def person(request: web.Request) -> Person:
    """Returns who sends this request: the door has put it there."""
    return request[PERSON]
