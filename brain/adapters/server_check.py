"""Is this NATS server one that keeps nodes apart? Asked on each new connection, before anything else.

Strict mode refuses API requests with fields that the server does not know. Without it a message of another kind can pass for
a request: an event that is answered into the API would purge the log (docs/security.md).
"""

import orjson
from nats.aio.client import Client
from nats.js.errors import APIError

from agent.contract.errors import ConfigError

LEAST_VERSION = (2, 12, 0)  # the first with strict mode
_INVALID_REQUEST = 10025
_ANSWER_S = 5.0


async def check(client: Client) -> None:
    """ConfigError: the server is too old, or not strict; it says what to change. APIError: it cannot say now."""
    found = client.connected_server_version
    version = (found.major, found.minor, found.patch)
    if version < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        raise ConfigError(
            f"NATS server {'.'.join(map(str, version))}: gpuward needs {least} or newer: update it"
        )
    answer = await client.request(
        "$JS.API.STREAM.NAMES", b'{"gpuward_asks_whether_you_are_strict":1}', _ANSWER_S
    )
    error = orjson.loads(answer.data).get("error")
    if error and error.get("err_code") != _INVALID_REQUEST:
        APIError.from_error(error)  # such as 503 while a cluster elects its leader
    if not error:
        raise ConfigError(
            "the NATS server takes JetStream requests that it does not understand: "
            "set `jetstream { strict: true }` in its configuration, and restart it"
        )
