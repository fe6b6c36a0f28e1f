"""Cursor pages: a list of any length, a page at a time. A cursor says after what the next page begins, so that what is
added meanwhile moves nothing. Clients take it as it is.
"""

import base64
import binascii
from typing import Any

import orjson
from aiohttp import web
from pydantic import Field

from brain.console.api.base import Asked

MOST = 1000  # on one page
_LONGEST = 1000  # characters of a cursor


class Paged(Asked):
    """Which page."""

    limit: int | None = Field(default=None, ge=1, le=MOST, description="How many on one page.")
    cursor: str = Field(
        default="", max_length=_LONGEST, description="`next` of the page before; empty: the first page."
    )


def cursor(list_: str, *place: Any) -> str:
    """Returns the cursor that stands for a place in the list of this name."""
    return base64.urlsafe_b64encode(orjson.dumps((list_, *place))).rstrip(b"=").decode()


def place(list_: str, text: str, *kinds: type) -> tuple[Any, ...] | None:
    """Returns the place of a cursor; None: the first page. HTTPBadRequest: it is none of the list of this name."""
    if not text:
        return None
    try:
        found = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError) as error:
        raise _wrong() from error
    if not isinstance(found, list) or len(found) != 1 + len(kinds) or found[0] != list_:
        raise _wrong()
    if not all(isinstance(one, kind) for one, kind in zip(found[1:], kinds, strict=True)):
        raise _wrong()
    return tuple(found[1:])


def _wrong() -> web.HTTPBadRequest:
    return web.HTTPBadRequest(text="`cursor` is none of this list: begin again without it")
