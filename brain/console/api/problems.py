"""Errors of the API (RFC 9457): what is wrong, who must act, and what they must do."""

from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus

from aiohttp import hdrs, web
from pydantic import Field, ValidationError

from agent.contract.messages import clip
from brain.console.answers import encoded
from brain.console.api.base import Shape
from brain.console.speech import told

PROBLEM = "application/problem+json"
MOST_MISTAKES = 5  # that are named in one answer
COUNTED_FROM = 100  # mistakes: more are only counted, for to put each into words takes time
# What the HTTP server itself answers, before the door or after a bug
_ITS_OWN: Mapping[int, str] = {
    417: "the only expectation that is known here is 100-continue",
    500: "that is a bug of gpuward: the brain's log has it",
    504: "something took too long: the brain's log may say what",
}
KEPT = (hdrs.WWW_AUTHENTICATE, hdrs.RETRY_AFTER, hdrs.ALLOW)


class Who(StrEnum):
    """Who must act."""

    CALLER = "caller"  # whoever sent the request must change it, or show a credential
    ADMINISTRATOR = "administrator"  # an administrator of this cell must allow it
    SITE = "site"  # whoever looks after the brain and what it stands on: see `gpuward doctor`
    NOBODY = "nobody"  # it passes: send the request again later


_WHO: Mapping[int, Who] = {
    403: Who.ADMINISTRATOR,
    421: Who.SITE,
    429: Who.NOBODY,
    500: Who.SITE,
    502: Who.SITE,
    503: Who.NOBODY,
    504: Who.NOBODY,
}


class ProblemShape(Shape):
    """An error (RFC 9457)."""

    type: str = Field(default="about:blank", description="The title says what kind of problem it is.")
    title: str = Field(description="The name of the status.")
    status: int = Field(description="The status of the answer.")
    detail: str = Field(description="What is wrong, and what to do.")
    who: Who = Field(
        description="Who must act: whoever sent the request (`caller`), an `administrator` of the cell, whoever looks after "
        "the brain (`site`), or `nobody`: it passes."
    )
    retry_after_s: int | None = Field(
        default=None, description="When to send it again, in seconds; null: not by itself."
    )


def problem(status: int, detail: str, retry_after_s: int | None = None) -> ProblemShape:
    """Returns the problem of a status of 400 or more."""
    return ProblemShape(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        who=_WHO.get(status, Who.CALLER),
        retry_after_s=retry_after_s,
    )


def problem_answer(value: ProblemShape) -> web.Response:
    """Returns the answer."""
    return web.Response(body=encoded(value), status=value.status, content_type=PROBLEM)


def answer_of(error: web.HTTPException) -> web.Response:
    """Returns the answer to a request that was refused."""
    again = error.headers.get(hdrs.RETRY_AFTER, "")
    said = error.text or error.reason
    if error.status == HTTPStatus.NOT_FOUND and said == f"{error.status}: {error.reason}":
        said = "there is no such path: see /api/v1/openapi.json"
    if error.status == HTTPStatus.METHOD_NOT_ALLOWED:
        said = f"this path takes {error.headers.get(hdrs.ALLOW, 'no such method')}"
    answer = problem_answer(problem(error.status, told(said), int(again) if again.isdecimal() else None))
    for name in KEPT:
        if name in error.headers:
            answer.headers[name] = error.headers[name]
    return answer


async def of_the_server(_: web.Request, response: web.StreamResponse) -> None:
    """Makes a problem of what aiohttp answers by itself, which may quote the request (a signal handler of aiohttp)."""
    text = _ITS_OWN.get(response.status)
    if text is None or not isinstance(response, web.Response) or response.content_type == PROBLEM:
        return
    body = encoded(problem(response.status, text))
    response.body = body
    # aiohttp has counted the one before
    response.headers.update({hdrs.CONTENT_TYPE: PROBLEM, hdrs.CONTENT_LENGTH: str(len(body))})


def wrong(where: str, error: ValidationError) -> web.HTTPBadRequest:
    """What is wrong in a query or body (`where`), in one sentence for each mistake."""
    if error.error_count() > COUNTED_FROM:
        said = f"{error.error_count()} mistakes: what this path takes is in /api/v1/openapi.json"
        return web.HTTPBadRequest(text=f"{where}: {said}")
    found = []
    for one in error.errors(include_url=False, include_input=False):
        name = clip(".".join(map(str, one["loc"])), 80)
        match one["type"]:
            case "missing":
                found.append(f"`{name}` is missing")
            case "extra_forbidden":
                found.append(f"there is no `{name}`")
            case _:
                found.append(clip(f"`{name}`: {one['msg']}" if name else one["msg"], 300))
    return web.HTTPBadRequest(text=f"{where}: {'; '.join(found[:MOST_MISTAKES])}")
