"""The JSON answers of the API."""

from typing import Any

import orjson
from aiohttp import web


def json_answer(value: Any, status: int = 200) -> web.Response:
    """Returns an answer with a JSON body."""
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")
