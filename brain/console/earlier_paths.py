"""The paths that the API had in version 0.1, without a version: whoever asks there is led on.

Scripts follow by themselves. The command line of version 0.1 follows nobody, because a token goes only where a person said; it
shows the `error` of the answer. Until version 0.3 (brain/renamed.py).
"""

from aiohttp import hdrs, web

from brain.console.access.route import Route
from brain.console.answers import json_answer
from brain.console.api.endpoint import PREFIX
from brain.renamed import UNTIL

_NAMES = (
    "status", "nodes", "incidents", "explain", "runs", "watch", "me", "tokens", "evidence", "command", "drill",
)  # fmt: skip
PATH = f"/api/{{old:(?:{'|'.join(_NAMES)})(?:/.+)?}}"


def routes() -> list[Route]:
    """Returns the routes. They tell nothing, and do nothing: the door judges at the new path."""

    async def lead_on(request: web.Request) -> web.Response:
        where = PREFIX + request.rel_url.raw_path_qs.removeprefix("/api")
        told = (
            f"the API of this brain is below {PREFIX}: use the `gpuward` of its version; what asks at the old paths is led on "
            f"until version {UNTIL}"
        )
        answer = json_answer({"error": told}, 308)
        answer.headers[hdrs.LOCATION] = where
        return answer

    return [Route(method=method, path=PATH, least=None, handler=lead_on) for method in ("GET", "POST")]
