"""A copy of the snapshot in NATS, for a brain whose own is lost or cannot be read, on a log that no longer reaches back.

The leader writes it. It lies in an object store of the brains' account, which no node reaches, with as many replicas as the log.
"""

import asyncio
import zlib

from nats.aio.client import Client
from nats.js.api import ObjectStoreConfig, StorageType
from nats.js.errors import BucketNotFoundError, NotFoundError, ObjectNotFoundError
from nats.js.object_store import ObjectStore

from agent.contract import subjects

_NAME = "state"
_WITHIN_S = 30.0
_ATTEMPTS = 3  # to read it
MAX_BYTES = 1024 * 1024**2  # of a state that is unpacked


async def write(client: Client, cell: str, snapshot: bytes, replicas: int = 1) -> None:
    """Replaces the copy. `LOST`: NATS does not take it, and the old one remains."""
    packed = await asyncio.to_thread(zlib.compress, snapshot, 1)
    async with asyncio.timeout(_WITHIN_S):
        store = await _store(client, cell, replicas)
        await store.put(_NAME, packed)


async def read(client: Client, cell: str) -> bytes:
    """The copy; empty: there is none, or it cannot be read. `LOST`: NATS does not answer."""
    for attempt in range(_ATTEMPTS):
        try:
            # A copy that is replaced while it is read never ends: the next one is there by then.
            async with asyncio.timeout(_WITHIN_S / _ATTEMPTS):
                found = await (await client.jetstream().object_store(subjects.state_bucket(cell))).get(_NAME)
        except (BucketNotFoundError, ObjectNotFoundError, NotFoundError):
            return b""
        except TimeoutError:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            break
    try:
        return await asyncio.to_thread(_unpacked, found.data or b"")
    except zlib.error:
        return b""


async def _store(client: Client, cell: str, replicas: int) -> ObjectStore:
    jetstream = client.jetstream()
    try:
        return await jetstream.object_store(subjects.state_bucket(cell))
    except (BucketNotFoundError, NotFoundError):
        config = ObjectStoreConfig(
            description="the state of gpuward's brain", storage=StorageType.FILE, replicas=replicas
        )
        return await jetstream.create_object_store(subjects.state_bucket(cell), config)


def _unpacked(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    snapshot = unpacking.decompress(packed, MAX_BYTES)
    return b"" if unpacking.unconsumed_tail else snapshot
