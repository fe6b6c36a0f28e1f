"""The routes of the API, each with the weakest role that may use it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from aiohttp import web

from brain.console.access.people import Person
from brain.console_config import Role

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LEAST: web.AppKey[Mapping[tuple[str, str], Role | None]] = web.AppKey("least", Mapping)
OPEN: web.AppKey[frozenset[tuple[str, str]]] = web.AppKey(
    "open", frozenset
)  # may be read without a credential
LARGEST: web.AppKey[Mapping[tuple[str, str], int]] = web.AppKey("largest", Mapping)
MEDIA: web.AppKey[Mapping[tuple[str, str], str]] = web.AppKey("media", Mapping)
SIGNED: web.AppKey[frozenset[tuple[str, str]]] = web.AppKey("signed", frozenset)
BODY: web.RequestKey[bytes] = web.RequestKey("body", bytes)  # of a route that takes a larger one
PERSON: web.RequestKey[Person] = web.RequestKey("person", Person)
JUDGED: web.RequestKey[bool] = web.RequestKey(
    "judged", bool
)  # somebody has asked whether the person may do this


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path (aiohttp's form, such as `/api/v1/runs/{id}`)."""

    method: str
    path: str
    # None: everybody, logged in or not
    least: Role | None
    handler: Handler
    # May it be used without a credential where reading is open (console.open_reading)?
    open: bool = False
    # Bytes of a body; 0: as the server takes it (brain/console/server.py)
    largest: int = 0
    # The type of a body that is posted
    media: str = "application/json"
    # Does the handler itself verify who has sent it, and hold back the answers to others?
    signed: bool = False


def get(path: str, handler: Handler, *, named: bool = False) -> Route:
    """Returns a route that every viewer may use; `named`: only by a credential, also where reading is open."""
    return Route(method="GET", path=path, least=Role.VIEWER, handler=handler, open=not named)


def add(app: web.Application, routes: Iterable[Route]) -> None:
    """Adds them to an application; what is not among them is refused to everybody."""
    least: dict[tuple[str, str], Role | None] = {}
    readable: set[tuple[str, str]] = set()
    largest: dict[tuple[str, str], int] = {}
    media: dict[tuple[str, str], str] = {}
    signed: set[tuple[str, str]] = set()
    for route in routes:
        resource = app.router.add_route(route.method, route.path, route.handler).resource
        key = (route.method, resource.canonical if resource else route.path)
        least[key] = route.least
        largest[key] = route.largest
        media[key] = route.media
        if route.signed:
            signed.add(key)
        if route.open:
            readable.add(key)
    app[LEAST] = least
    app[LARGEST] = largest
    app[MEDIA] = media
    app[SIGNED] = frozenset(signed)
    app[OPEN] = frozenset(readable)


def person(request: web.Request) -> Person:
    """Returns who sends this request: the door has put it there."""
    return request[PERSON]
