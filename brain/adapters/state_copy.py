"""A copy of the snapshot in NATS, for a brain whose own is lost or cannot be read, on a log that no longer reaches back.

The leader writes it. It lies in an object store of the brains' account, which no node reaches, with as many replicas as the log.
"""

import asyncio
import logging
import zlib

from nats.aio.client import Client
from nats.js.api import ObjectStoreConfig, StorageType
from nats.js.errors import (
    BadObjectMetaError,
    BucketNotFoundError,
    DigestMismatchError,
    NotFoundError,
    ObjectNotFoundError,
)
from nats.js.object_store import ObjectStore

from agent.contract import subjects
from brain.adapters import copies

_log = logging.getLogger(__name__)

_NAME = "state"
_WITHIN_S = 30.0
_ATTEMPTS = 3  # to read it
MAX_BYTES = 1024 * 1024**2  # of a state that is unpacked


async def write(client: Client, cell: str, snapshot: bytes, replicas: int = 1) -> None:
    """Replaces the copy. One brain at a time: the leader. `LOST`: NATS does not take it, and the old one remains."""
    packed = await asyncio.to_thread(zlib.compress, snapshot, 1)
    async with asyncio.timeout(_WITHIN_S):
        store = await _store(client, cell, replicas)
        try:
            await store.put(_NAME, packed)
        except BadObjectMetaError:  # it would look for the old one's pieces, to remove them
            await client.jetstream().delete_object_store(subjects.state_bucket(cell))
            await (await _store(client, cell, replicas)).put(_NAME, packed)
        await _tidy_up(client, cell)


async def _tidy_up(client: Client, cell: str) -> None:
    """Removes pieces of no copy, which a brain leaves that is killed while it writes: nothing else ever would. `LOST`: NATS does
    not answer, and the next copy does it.
    """
    bucket = subjects.state_bucket(cell)
    about = await (await client.jetstream().object_store(bucket)).get_info(_NAME)
    pieces = f"$O.{bucket}.C."
    kept = (
        await client.jsm().stream_info(f"OBJ_{bucket}", subjects_filter=f"{pieces}>")
    ).state.subjects or {}
    for subject in kept:
        if subject != f"{pieces}{about.nuid}":
            await client.jsm().purge_stream(f"OBJ_{bucket}", subject=subject)


async def read(client: Client, cell: str) -> bytes:
    """The copy; empty: there is none, or it is damaged, which must keep no brain from leading. `LOST`: NATS does not answer."""
    for _ in range(_ATTEMPTS):
        try:
            # A copy that is replaced while it is read never ends: the next one is there by then.
            async with asyncio.timeout(_WITHIN_S / _ATTEMPTS):
                store = await client.jetstream().object_store(subjects.state_bucket(cell))
                found = await store.get(_NAME)
                return await asyncio.to_thread(_unpacked, found.data or b"")
        except (BucketNotFoundError, ObjectNotFoundError, NotFoundError):
            return b""
        except (BadObjectMetaError, DigestMismatchError, zlib.error) as error:
            return _damaged(type(error).__name__)
        except TimeoutError:
            # One that lacks a piece never ends either.
            if await _lacks(client, cell):
                return _damaged("a part of it is missing")
    raise TimeoutError("NATS does not give the copy of the state in time")


async def _lacks(client: Client, cell: str) -> bool:
    """Is less there than there should be? `LOST`: NATS does not answer."""
    bucket = subjects.state_bucket(cell)
    try:
        about = await (await client.jetstream().object_store(bucket)).get_info(_NAME)
        pieces = f"$O.{bucket}.C.{about.nuid}"
        kept = (await client.jsm().stream_info(f"OBJ_{bucket}", subjects_filter=pieces)).state.subjects or {}
    except (BucketNotFoundError, ObjectNotFoundError, NotFoundError, BadObjectMetaError):
        return False  # it is not the one that was read: the next attempt tells
    return kept.get(pieces, 0) < (about.chunks or 0)


def _damaged(why: str) -> bytes:
    _log.warning(
        "the copy of the state in NATS is damaged (%s), and not used: the leader writes another", why
    )
    return b""


async def _store(client: Client, cell: str, replicas: int) -> ObjectStore:
    jetstream = client.jetstream()
    try:
        store = await jetstream.object_store(subjects.state_bucket(cell))
        await copies.at_least(client, f"OBJ_{subjects.state_bucket(cell)}", replicas)
        return store
    except (BucketNotFoundError, NotFoundError):
        config = ObjectStoreConfig(
            description="the state of gpuward's brain", storage=StorageType.FILE, replicas=replicas
        )
        return await jetstream.create_object_store(subjects.state_bucket(cell), config)


def _unpacked(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    snapshot = unpacking.decompress(packed, MAX_BYTES)
    return b"" if unpacking.unconsumed_tail else snapshot
