"""The key of a brain that has none, where other brains may be on the same servers: for each log one is made, whoever starts.

Whoever makes it claims it first, by the very first message of the log, which the servers take from one brain only (decision 89).
A brain that has a key claims a log that has no message, too (brain/leader/key_claim.py). Apart from signing_key.py: commands need
no NATS.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
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
from brain.adapters.log import LogInfo
from brain.config import BrainConfig
from brain.core.inputs import Pulse

T = TypeVar("T")
PAUSE_S = 1.0
_CLAIM = "key"  # what the id of a claim begins with; the brain and the id of its key follow
_WRONG_LAST_SEQUENCE = (10071, 10164)  # of one server, and of a cluster that is just storing another message


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the first message of a log says: which brain begins it, and the id of the key that it signs with."""

    brain: str
    key_id: str


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
    asked. `opened` makes what lies in the key's folder, and looks what is there. `silent` hears why the servers do not answer,
    once they have not for `after_s`, and an empty text when they do: without their answer the brain goes no further.
    """
    key = config.signing_key
    if config.embedded or await opened(key.exists):
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

    The key is on the disk before it is claimed, so that nobody claims what a crash then takes from him. Where the claim was
    purged or has expired before the key lay in its place, it is made once more.
    """
    key, cell = config.signing_key, config.cell
    if await opened(key.exists):
        return True  # it was brought meanwhile (`gpuward cell take`)
    client = await connection.connect()
    try:
        await server_check.check(client)
        extent = await log.ensure(client, cell, config.log, config.nats.replicas)
        # An earlier run of this brain, perhaps after its claim.
        cut_short = bool(await opened(keys.beside(key, keys.FIRST).exists))
        first = await opened(lambda: _on_disk(key, keys.make_first))
        if first is None:
            return False
        unled = extent.empty and extent.last_seq <= cut_short  # who leads writes more than one message
        if unled:
            await claim(client, cell, Claim(brain=brain, key_id=first.key_id), after=extent.last_seq)
        extent = await log.info(client, cell)
        found = await claim_of(client, cell, extent)
    finally:
        await close(client)
    if found is not None and found.key_id == first.key_id:
        return bool(await opened(lambda: _on_disk(key, keys.put_first)))
    if unled and found is None and not await opened(key.exists):
        raise Unreachable(f"the first message of the log of cell {cell} has gone again")
    if (found is not None or await opened(key.exists)) and not await opened(
        lambda: _on_disk(key, keys.drop_first)
    ):
        return False
    if await opened(key.exists):
        return True
    raise ConfigError(_told(config, brain, found, extent))


def _on_disk(key: Path, change: Callable[[Path], T]) -> T:
    """ConfigError: its folder takes nothing."""
    try:
        return change(key)
    except OSError as error:
        raise ConfigError(
            f"{key} is not there, and cannot be made: {error.strerror}: give the brain's user a folder that it may write, or "
            "name another file in signing_key_file"
        ) from error


async def claim(client: Client, cell: str, what: Claim, *, after: int) -> None:
    """Puts a claim onto a log that has no message, and whose last one was at `after`; where somebody was faster, that one is read
    afterwards.
    """
    subject, body = Codec(cell).encode(Pulse(id=f"{_CLAIM}:{what.brain}:{what.key_id}"))
    headers = {Header.EXPECTED_LAST_SEQUENCE.value: str(after)}
    try:
        await client.jetstream().publish(subjects.brain_input(cell, subject), body, headers=headers)
    except BadRequestError as error:
        if error.err_code not in _WRONG_LAST_SEQUENCE:
            raise


async def claim_of(client: Client, cell: str, extent: LogInfo) -> Claim | None:
    """What the log's first message says; None: it is no claim, or there is no message."""
    if extent.empty:
        return None
    try:
        message = await client.jsm().get_msg(subjects.stream(cell), seq=extent.first_seq)
    except NotFoundError:
        return None
    found = Codec(cell).decode(message.subject or "", message.data or b"", extent.first_seq)
    what, _, rest = found.id.partition(":") if isinstance(found, Pulse) else ("", "", "")
    brain, _, made = rest.rpartition(":")
    return Claim(brain=brain, key_id=made) if what == _CLAIM else None


def _told(config: BrainConfig, brain: str, found: Claim | None, extent: LogInfo) -> str:
    key, cell = config.signing_key, config.cell
    share = (
        "say `gpuward cell share FILE`, and here, as root, `gpuward cell take FILE` (docs/operations.md, `A second brain`). If "
        "nobody has the key any more: `gpuward cell rotate signing --compromised`, and every node joins again"
    )
    if found is None and extent.first_seq > 1:
        return (
            f"{key} is not there, and the log of cell {cell} has lost its beginning, the messages before {extent.first_seq}: "
            "nobody can tell from it which brain has a key that nodes obey. Where another brain of the cell has one, on its "
            f"machine {share}"
        )
    if found is not None and found.brain == brain:
        return (
            f"{key} is not there, and a brain of this name, {brain}, has written the log of cell {cell}: its key is "
            f"{found.key_id}, and nodes obey no other. If it was this one, its folder is missing: mount the disk of "
            f"{config.data_dir}, or put the folder back from your backup. If it was another one, give one of the two another "
            f"name (`brain`), and on that brain's machine {share}"
        )
    if found is not None:
        return (
            f"{key} is not there, and brain {found.brain} has written the log of cell {cell}: its key is {found.key_id}, and "
            f"nodes obey no other. On that brain's machine {share}"
        )
    return (
        f"{key} is not there, and another brain has written the log of cell {cell}: nodes obey its key and no other. On that "
        f"brain's machine {share}"
    )
