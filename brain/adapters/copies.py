"""How many servers keep a stream: as many as `nats.replicas` says, also of a stream that was made when it said less.

None is ever taken away here: a second brain whose brain.toml has forgotten the key would leave the cell with one copy of all.
Whoever wants fewer says so to the servers (`nats stream edit`).
"""

import logging

from nats.aio.client import Client
from nats.js.api import StreamConfig
from nats.js.errors import APIError, ServiceUnavailableError

from brain.adapters import stream_config

_log = logging.getLogger(__name__)


def of(found: StreamConfig) -> int:
    """How many copies a stream has."""
    return found.num_replicas or 1


async def at_least(client: Client, stream: str, replicas: int) -> None:
    """Gives a stream that is there as many copies. One for which the servers have no place stays as it is: it works, and a brain
    that did not lead would be worse. `LOST`: NATS does not answer.
    """
    found = (await client.jsm().stream_info(stream)).config
    if of(found) >= replicas:
        return
    try:
        await stream_config.change(client, stream, {"num_replicas": replicas})
    except ServiceUnavailableError:
        raise
    except APIError as error:
        _log.warning("NATS keeps %s in %d of %d copies: %s", stream, of(found), replicas, error.description)
