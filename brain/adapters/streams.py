"""A stream on NATS and its limits: as much room as the servers have, and never less than another brain has set."""

import asyncio
import logging
from typing import Any, TypeVar

from nats.aio.client import Client
from nats.errors import Error
from nats.js.api import StorageType, StreamConfig
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError, ServiceUnavailableError
from nats.js.manager import JetStreamManager

from agent.contract.errors import ConfigError, Unreachable
from brain.adapters import copies, stream_config

_log = logging.getLogger(__name__)
Number = TypeVar("Number", int, float)

# What it must be for the brain to work, and its limits: nobody else sets them.
_OURS = (
    *("retention", "discard", "discard_new_per_subject", "no_ack", "max_msgs_per_subject", "max_msg_size"),
    *("max_bytes", "max_age", "duplicate_window"),
)
_ENSURE_TRIES = 20
_ENSURE_PAUSE_S = 0.25
_NO_ROOM = 10047  # the server's "insufficient storage resources available"
_OVERLAP = 10065  # "subjects overlap with an existing stream"
_NO_PEERS = 10005  # a cluster's "no suitable peers for placement", for this or another reason


class NoRoom(Error):
    """The server has no space for a stream: somebody must make some."""


async def ensure(client: Client, wanted: StreamConfig, key: str, *, least: int, alone: bool = False) -> None:
    """Creates a stream or updates its limits, and how many copies there are at least. Where the server has no room for its
    max_bytes it gets less, down to `least`; `key` is the key of max_bytes in the configuration. `alone`: no other brain has set
    its limits, so they may become smaller. ConfigError: the stream exists with other subjects or storage, or another
    one has its subjects.
    """
    manager = client.jsm()
    for _ in range(_ENSURE_TRIES):
        try:
            try:
                found = (await manager.stream_info(wanted.name or "")).config
            except NotFoundError:
                await _add(manager, wanted, key, least)
            else:
                if found.storage != StorageType.FILE or sorted(found.subjects or []) != sorted(
                    wanted.subjects or []
                ):
                    raise ConfigError(
                        f"NATS stream {wanted.name} has storage {found.storage} and subjects {found.subjects}: "
                        f"it was not made by gpuward; remove it or set another `cell`"
                    )
                limits = wanted if alone else _not_smaller(found, wanted, key)
                await _update(client, found, limits, key)
                await copies.at_least(client, wanted.name or "", wanted.num_replicas or 1)
            return
        except (OSError, TimeoutError, ServiceUnavailableError, NoStreamResponseError):
            await asyncio.sleep(_ENSURE_PAUSE_S)
    raise Unreachable(f"NATS does not make the stream {wanted.name}: is JetStream enabled there?")


async def _add(manager: JetStreamManager, wanted: StreamConfig, key: str, least: int) -> None:
    """Creates the stream. The server reserves max_bytes immediately: a smaller log is better than none."""
    bytes_ = wanted.max_bytes or 0
    while True:
        try:
            await manager.add_stream(wanted.evolve(max_bytes=bytes_))
        except APIError as error:
            if error.err_code == _OVERLAP:
                raise ConfigError(
                    f"another stream of these NATS servers has subjects of {wanted.name} ({', '.join(wanted.subjects or [])}), "
                    "and was not made by gpuward: `nats stream ls --subjects` names it. Take them from it, or set another `cell`"
                ) from error
            if not _no_room(error):
                raise
            if bytes_ < 2 * least:
                raise NoRoom(_no_room_text(wanted, key)) from error
            bytes_ //= 2
        else:
            break
    if bytes_ != wanted.max_bytes:
        bytes_ //= 2  # other streams need room as well
        await manager.update_stream(wanted.evolve(max_bytes=bytes_))
        _log.warning("NATS has no room for %s: it keeps at most %d MiB", key, bytes_ // 1024**2)


def _not_smaller(found: StreamConfig, wanted: StreamConfig, key: str) -> StreamConfig:
    """With the limits of the stream that is there where ours are smaller: those are another brain's, and what is within them must
    not go because a line is missing in a second brain.toml.
    """
    table = key.partition(".")[0]
    kept = wanted.evolve(
        max_bytes=_larger(found.max_bytes, wanted.max_bytes),
        max_age=_larger(found.max_age, wanted.max_age),
        duplicate_window=_larger(found.duplicate_window, wanted.duplicate_window),
    )
    if (kept.max_bytes, kept.max_age) != (wanted.max_bytes, wanted.max_age):
        _log.warning(
            "%s keeps up to %s, as another brain or a person has set it, and [%s] of this brain.toml says %s: the larger is "
            "kept, so that nothing is dropped. Write the same [%s] for each brain of the cell; to keep less, say so to the "
            "servers, too (`nats stream edit %s`)",
            wanted.name,
            _limits_text(kept),
            table,
            _limits_text(wanted),
            table,
            wanted.name,
        )
    return kept


def _larger(there: Number | None, ours: Number | None) -> Number:
    """Of two limits; 0 and less is none."""
    return max(there, ours) if there and ours and there > 0 and ours > 0 else 0


def _limits_text(stream: StreamConfig) -> str:
    size = f"{stream.max_bytes // 1024**2} MiB" if stream.max_bytes and stream.max_bytes > 0 else "any size"
    age = f"{stream.max_age / 86400:.3g} days" if stream.max_age else "any age"
    return f"{size} and {age}"


def _no_room(error: APIError) -> bool:
    return error.err_code == _NO_ROOM or (
        error.err_code == _NO_PEERS and "insufficient storage" in (error.description or "")
    )


async def _update(client: Client, found: StreamConfig, wanted: StreamConfig, key: str) -> None:
    """Sets the configured limits; without room for them the stream keeps its present size. What else a person has set stays."""
    try:
        await stream_config.change(client, wanted.name or "", _ours(wanted))
    except APIError as error:
        if not _no_room(error):
            raise
        _log.warning(
            "NATS has no room for %s: it keeps at most %d MiB", key, (found.max_bytes or 0) // 1024**2
        )
        try:
            kept = wanted.evolve(max_bytes=found.max_bytes)
            await stream_config.change(client, wanted.name or "", _ours(kept))
        except APIError as still:
            if not _no_room(still):
                raise
            # It is there and works: what was promised to it is more than the server would promise today.
            _log.warning("%s; its other limits stay as they are", _no_room_text(found, key))


def _ours(wanted: StreamConfig) -> dict[str, Any]:
    """The keys of a stream that are the brain's, as the server has them: an unlimited size is -1."""
    said = wanted.evolve(max_bytes=wanted.max_bytes or -1).as_dict()
    if not wanted.duplicate_window:
        del said["duplicate_window"]  # the server's default
    return {key: said[key] for key in _OURS if key in said}


def _no_room_text(stream: StreamConfig, key: str) -> str:
    mib = (stream.max_bytes or 0) // 1024**2
    return (
        f"NATS may not use {mib} MiB more of its disk for {key}: make room, lower log.max_bytes and evidence.max_bytes, or "
        "raise max_file_store of servers of your own"
    )
