"""The key of a brain that has none, where other brains may be on the same servers: for each log one is made, whoever starts.

Whoever makes it claims it first, by the very first message of the log, which the servers take from one brain only (decision 89).
Apart from signing_key.py: commands need no NATS.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from nats.aio.client import Client
from nats.js.api import Header
from nats.js.errors import BadRequestError, NotFoundError

from agent.contract import subjects
from agent.contract.errors import ConfigError, Unreachable
from agent.shared import reasons
from agent.shared.nats_connection import LOST, NatsConnection, close
from agent.shared.tasks import unless
from brain.adapters import keys, log, server_check
from brain.adapters.codec import Codec
from brain.config import BrainConfig
from brain.core.inputs import Pulse

T = TypeVar("T")
PAUSE_S = 1.0
_CLAIM = "key"  # what the id of a claim begins with; the brain and the id of its key follow
_EXPECTS_NOTHING = {Header.EXPECTED_LAST_SEQUENCE.value: "0"}
_WRONG_LAST_SEQUENCE = 10071


class Opened(Protocol):
    """Gives what a function makes in the key's folder, once it can be written; None: not until the brain was asked to stop."""

    async def __call__(self, opening: Callable[[], T], /) -> T | None:
        """ConfigError: the folder is not the reason that it cannot be made."""


async def _at_once(opening: Callable[[], T], /) -> T | None:
    return opening()


async def settle(
    config: BrainConfig,
    connection: NatsConnection,
    brain: str,
    stop: asyncio.Event,
    *,
    opened: Opened = _at_once,
    silent: Callable[[str], None] = lambda _: None,
    after_s: float = 10.0,
) -> bool:
    """Makes the key where there is none, and the cell never had one. False: the servers had not answered before `stop`.

    ConfigError: another brain has made it, or may have; it says what to copy. An embedded server is for one brain: nothing is
    asked. `opened` makes what lies in the key's folder. `silent` hears why the servers do not answer, once they have not for
    `after_s`, and an empty text when they do: without their answer the brain goes no further.
    """
    key = config.signing_key
    if config.embedded or key.exists():
        return True
    until_s = time.monotonic() + after_s
    while not stop.is_set():
        try:
            if not await unless(stop, _claim(config, connection, brain, opened)):
                break
        except (*LOST, Unreachable) as error:
            if time.monotonic() >= until_s:
                silent(reasons.of_connection(error))
        else:
            silent("")
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PAUSE_S):
                await stop.wait()
    return False


async def _claim(config: BrainConfig, connection: NatsConnection, brain: str, opened: Opened) -> bool:
    """Makes the key if this brain is the one that may, else ConfigError as above. LOST, Unreachable: the servers do not say.
    False: the brain was asked to stop.

    The key is on the disk before it is claimed, so that nobody claims what a crash then takes from him.
    """
    key, cell = config.signing_key, config.cell
    if key.exists():
        return True  # it was brought meanwhile (`gpuward cell take`)
    client = await connection.connect()
    try:
        await server_check.check(client)
        extent = await log.ensure(client, cell, config.log, config.nats.replicas)
        first = await opened(lambda: _on_disk(key, keys.make_first))
        if first is None:
            return False
        if not extent.last_seq:
            await _write(client, cell, f"{_CLAIM}:{brain}:{first.key_id}")
        who, made = await _claimed(client, cell)
    finally:
        await close(client)
    if made == first.key_id:
        return bool(await opened(lambda: _on_disk(key, keys.put_first)))
    if not await opened(lambda: _on_disk(key, keys.drop_first)):
        return False
    if key.exists():
        return True
    raise ConfigError(_told(config, brain, who))


def _on_disk(key: Path, change: Callable[[Path], T]) -> T:
    """ConfigError: its folder takes nothing."""
    try:
        return change(key)
    except OSError as error:
        raise ConfigError(
            f"{key} is not there, and cannot be made: {error.strerror}: give the brain's user a folder that it may write, or "
            "name another file in signing_key_file"
        ) from error


async def _write(client: Client, cell: str, claim: str) -> None:
    """Puts the claim onto a log that has no message yet; where another one was faster, that is read afterwards."""
    what, body = Codec(cell).encode(Pulse(id=claim))
    try:
        await client.jetstream().publish(subjects.brain_input(cell, what), body, headers=_EXPECTS_NOTHING)
    except BadRequestError as error:
        if error.err_code != _WRONG_LAST_SEQUENCE:
            raise


async def _claimed(client: Client, cell: str) -> tuple[str, str]:
    """The brain that has claimed the key, and the id of its key; empty: the log's first message is no claim, or has gone."""
    try:
        message = await client.jsm().get_msg(subjects.stream(cell), seq=1)
    except NotFoundError:
        return "", ""
    found = Codec(cell).decode(message.subject or "", message.data or b"", 1)
    what, _, rest = found.id.partition(":") if isinstance(found, Pulse) else ("", "", "")
    brain, _, made = rest.partition(":")
    return (brain, made) if what == _CLAIM else ("", "")


def _told(config: BrainConfig, brain: str, who: str) -> str:
    key, cell = config.signing_key, config.cell
    share = (
        "say `gpuward cell share FILE`, and here, as root, `gpuward cell take FILE` (docs/operations.md, `A second brain`). If "
        "nobody has the key any more: `gpuward cell rotate signing --compromised`, and every node joins again"
    )
    if who == brain:
        return (
            f"{key} is not there, and a brain of this name, {brain}, has written the log of cell {cell}: nodes obey its key and "
            f"no other. If it was this one, its folder is missing: mount the disk of {config.data_dir}, or put the folder back "
            "from your backup. If it was another one, give one of the two another name (`brain`), and on that brain's machine "
            f"{share}"
        )
    whose = f"brain {who}" if who else "another brain"
    return (
        f"{key} is not there, and {whose} has written the log of cell {cell}: nodes obey its key and no other. On that brain's "
        f"machine {share}"
    )
