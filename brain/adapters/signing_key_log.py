"""Whether a cell has had a brain whose key nodes obey: its log says so. Apart from signing_key.py: commands need no NATS."""

import asyncio
import contextlib
import time
from collections.abc import Callable

from nats.js.errors import NotFoundError

from agent.contract import subjects
from agent.contract.errors import ConfigError
from agent.shared import reasons
from agent.shared.nats_connection import LOST, NatsConnection, close
from brain.config import BrainConfig

PAUSE_S = 1.0


async def check(
    config: BrainConfig,
    connection: NatsConnection,
    stop: asyncio.Event,
    *,
    silent: Callable[[str], None] = lambda _: None,
    after_s: float = 10.0,
) -> None:
    """ConfigError: the key is not there, and the log says that the cell has had a brain, or until `stop` nobody could say; it
    says what to copy. An embedded server is for one brain: nothing is asked. `silent` hears why the servers do not
    answer, once they have not for `after_s`, and an empty text when they do: without their answer the brain goes no further.
    """
    key = config.signing_key
    if config.embedded or key.exists():
        return
    written = await _asked(config, connection, stop, silent, after_s)
    if written:
        raise ConfigError(
            f"{key} is not there, and another brain has written the log of cell {config.cell}: nodes obey its key and no "
            "other. On that brain's machine say `gpuward cell share FILE`, and here, as root, `gpuward cell take "
            "FILE` (docs/operations.md, `A second brain`). If nobody has the key any more: `gpuward cell rotate signing "
            "--compromised`, and every node joins again"
        )


async def _asked(
    config: BrainConfig,
    connection: NatsConnection,
    stop: asyncio.Event,
    silent: Callable[[str], None],
    after_s: float,
) -> bool:
    """Whether the log has had a message. ConfigError as above: servers that have just been started may take a while."""
    until_s = time.monotonic() + after_s
    while True:
        try:
            written = await _is_written(config.cell, connection)
        except LOST as error:
            said = reasons.of_connection(error)
            if stop.is_set():
                raise ConfigError(
                    f"{config.signing_key} is not there, and NATS does not answer ({said}), so nobody can say whether the cell "
                    "has another brain, whose key nodes obey: start the brain when the servers run, or bring that key here "
                    "(`gpuward cell take`)"
                ) from error
            if time.monotonic() >= until_s:
                silent(said)
        else:
            silent("")
            return written
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), PAUSE_S)


async def _is_written(cell: str, connection: NatsConnection) -> bool:
    """As above. LOST: the servers do not say."""
    client = await connection.connect()
    try:
        info = await client.jsm().stream_info(subjects.stream(cell))
    except NotFoundError:
        return False
    finally:
        await close(client)
    return bool(info.state.last_seq)
