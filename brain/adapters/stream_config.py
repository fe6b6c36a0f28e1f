"""What a stream on NATS is configured to be, in the server's own words: changed key by key, so that all else stays as it is.

nats-py reads the keys that it knows. Written back as a whole, its `StreamConfig` takes from a stream what a person has set by
hand (`nats stream edit`: compression, placement, metadata, a description), and what only a newer server knows.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from nats.aio.client import Client
from nats.errors import NoRespondersError
from nats.js.errors import APIError, ServiceUnavailableError

_ANSWER_S = 5.0


async def change(client: Client, stream: str, keys: Mapping[str, Any]) -> None:
    """Sets these keys of a stream that is there; times in nanoseconds. Where it has them all, nothing is asked of the servers.

    NotFoundError: it is not there. APIError: the servers refuse. `LOST`: they do not answer.
    """
    found = (await _asked(client, f"STREAM.INFO.{stream}", {}))["config"]
    if not all(_same(found.get(key), value) for key, value in keys.items()):
        await _asked(client, f"STREAM.UPDATE.{stream}", {**found, **keys})


def _same(there: Any, wanted: Any) -> bool:
    """The servers leave out what is 0, false or empty."""
    return bool(there == wanted or not (there or wanted))


async def _asked(client: Client, what: str, body: Mapping[str, Any]) -> Any:
    try:
        answer = await client.request(f"$JS.API.{what}", orjson.dumps(body) if body else b"", _ANSWER_S)
    except NoRespondersError as error:
        raise ServiceUnavailableError from error
    said = orjson.loads(answer.data)
    if "error" in said:
        APIError.from_error(said["error"])  # raises what it is
    return said
