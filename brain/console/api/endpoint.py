"""One row of the table of the API: everything about one method of one path, in one place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pydantic import BaseModel

from brain.console.api.base import Nothing, Shape
from brain.console_config import Role

PREFIX = "/api/v1"
Q = TypeVar("Q", bound=BaseModel)
B = TypeVar("B", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Generic[Q, B]):
    """What is sent and answered. Registration, the checks of requests, the OpenAPI document and docs/api.md come from it."""

    # Its name in the OpenAPI document (operationId)
    name: str
    method: str
    # below PREFIX, in aiohttp's form
    path: str
    summary: str
    # The weakest role that gets past the door
    least: Role = Role.VIEWER
    # Only with a credential, also where reading is open (console.open_reading)
    named: bool = False
    query: type[Q]
    body: type[B]
    # Status -> what is answered. Files and streams: `media`
    answers: Mapping[int, type[Shape]] = field(default_factory=dict)
    # Media types of an answer that is no JSON, or can be none, with commas; empty: each is JSON
    media: str = ""
    # What the path's parts mean
    parts: Mapping[str, str] = field(default_factory=dict)
    # Further statuses of problems, beside those that each request can have
    problems: tuple[int, ...] = ()
    # Bytes of a body; 0: as the server takes it
    largest: int = 0

    @property
    def whole_path(self) -> str:
        """The path that clients use, in aiohttp's form."""
        return PREFIX + self.path


def reads(
    name: str,
    path: str,
    summary: str,
    answer: type[Shape] | None = None,
    *,
    query: type[Q],
    least: Role = Role.VIEWER,
    named: bool = False,
    media: str = "",
    parts: Mapping[str, str] | None = None,
    problems: tuple[int, ...] = (),
) -> Endpoint[Q, Nothing]:
    """Returns the row of something that is read."""
    return Endpoint(
        name=name,
        method="GET",
        path=path,
        summary=summary,
        least=least,
        named=named,
        query=query,
        body=Nothing,
        answers={200: answer} if answer else {},
        media=media,
        parts=parts or {},
        problems=problems,
    )


def sends(
    name: str,
    path: str,
    summary: str,
    answers: Mapping[int, type[Shape]],
    *,
    body: type[B],
    least: Role,
    problems: tuple[int, ...] = (),
    largest: int = 0,
) -> Endpoint[Nothing, B]:
    """Returns the row of something that changes something: its handler says by `Door.demand` what it touches."""
    return Endpoint(
        name=name,
        method="POST",
        path=path,
        summary=summary,
        least=least,
        named=True,
        query=Nothing,
        body=body,
        answers=answers,
        problems=problems,
        largest=largest,
    )
