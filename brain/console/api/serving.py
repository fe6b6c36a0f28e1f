"""From a row of the table to a route: the request is checked by its models, and the answer is one of its models."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic

from aiohttp import hdrs, web
from pydantic import ValidationError

from agent.contract.messages import clip
from brain.console.access.route import BODY, Route
from brain.console.answers import encoded, json_answer
from brain.console.api.base import Nothing, Shape
from brain.console.api.endpoint import B, Endpoint, Q
from brain.console.api.problems import wrong
from brain.console.packing import packed_answer
from brain.console_config import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked(Generic[Q, B]):
    """A request that fits its row."""

    http: web.Request
    query: Q
    body: B

    @property
    def id(self) -> str:
        """The part of the path that names one thing."""
        return self.http.match_info["id"]

    @property
    def name(self) -> str:
        """The same, where the part is called `name`."""
        return self.http.match_info["name"]


Serves = Callable[[Checked[Q, B]], Awaitable[Shape | web.StreamResponse]]


def serve(endpoint: Endpoint[Q, B], handler: Serves[Q, B]) -> Route:
    """Returns the route; HTTPBadRequest says what of a request does not fit."""

    async def answered(request: web.Request) -> web.StreamResponse:
        query = _query(endpoint.query, request)
        body = await _body(endpoint.body, request)
        answer = await handler(Checked(http=request, query=query, body=body))
        if not isinstance(answer, Shape):
            return answer
        if endpoint.method == hdrs.METH_GET:
            return await packed_answer(request, encoded(answer))
        return json_answer(answer)

    return Route(
        method=endpoint.method,
        path=endpoint.whole_path,
        least=endpoint.least,
        largest=endpoint.largest,
        handler=answered,
        open=endpoint.method == "GET" and not endpoint.named and endpoint.least is Role.VIEWER,
    )


def _query(kind: type[Q], request: web.Request) -> Q:
    given: dict[str, Any] = {}
    for key in request.query:
        values = request.query.getall(key)
        if len(values) > 1:
            raise web.HTTPBadRequest(text=f"the query has `{clip(key, 80)}` more than once")
        given[key] = values[0]
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise wrong("the query", error) from error


async def _body(kind: type[B], request: web.Request) -> B:
    if issubclass(kind, Nothing):
        return kind()
    try:
        return kind.model_validate_json(request[BODY] if BODY in request else await request.read())
    except ValidationError as error:
        raise wrong("the body", error) from error
