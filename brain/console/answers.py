"""The JSON answers of the API: what acts on a terminal stands in them as `\\uXXXX`, which means the same."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson
from aiohttp import web
from pydantic import BaseModel

from agent.contract.inert import inert_json


def encoded(value: Any) -> bytes:
    """Returns JSON."""
    text = value.model_dump_json() if isinstance(value, BaseModel) else orjson.dumps(value).decode()
    return inert_json(text).encode()


def encoded_list(
    key: str, values: Iterable[Any], pause: Callable[[], None], more: Mapping[str, Any] | None = None
) -> bytes:
    """Returns `{key: [...]}` with `more` behind it; `pause` is called between the values."""
    parts = []
    for value in values:
        parts.append(encoded(value))
        pause()
    rest = encoded(more)[1:] if more else b"}"
    return encoded(key).join((b"{", b":[")) + b",".join(parts) + b"]" + (b"," if more else b"") + rest


def json_answer(value: Any, status: int = 200) -> web.Response:
    """Returns an answer with a JSON body."""
    return web.Response(body=encoded(value), status=status, content_type="application/json")
