"""Evidence bundles in the NATS object store: creates the bucket, and reads from it (brain/adapters/evidence_store.py writes).

The bucket does not allow roll-ups, with which any writer could empty an ordinary object store, and keeps only the last
message of each subject. When it is full, the oldest bundles are dropped.
"""

import base64
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import orjson
from nats.aio.client import Client
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import NotFoundError

from agent.contract import subjects
from agent.contract.errors import ActionError, ConfigError, Unreachable
from agent.shared.nats_connection import LOST
from brain.adapters import streams
from brain.config import BrainConfig
from brain.nats_config import EvidenceConfig

LEAST_BYTES = 16 * 1024**2
MAX_BYTES = 64 * 1024**2  # of one bundle
_MAX_CHUNKS = MAX_BYTES // subjects.MAX_BUNDLE_CHUNK


async def offer(client: Client, config: BrainConfig, note: Callable[[str, str], None]) -> None:
    """Creates the bucket. Without storage for it the brain continues without a bucket, and notes that: `note` takes the
    kind and the text.
    """
    try:
        await ensure(client, config.cell, config.evidence, config.nats.replicas, alone=config.embedded)
    except (*LOST, ConfigError, Unreachable) as error:
        if client.is_closed:
            raise
        note("brain.evidence_failed", f"evidence bundles cannot be kept in NATS: {error}")


async def ensure(
    client: Client, cell: str, config: EvidenceConfig, replicas: int = 1, *, alone: bool = False
) -> None:
    """Creates the bucket or updates its limits; raises as `streams.ensure`."""
    wanted = StreamConfig(
        name=subjects.evidence_stream(cell),
        description="evidence bundles of gpuward's nodes",
        subjects=subjects.evidence_subjects(cell),
        storage=StorageType.FILE,
        retention=RetentionPolicy.LIMITS,
        discard=DiscardPolicy.OLD,
        max_age=config.keep_s,
        max_bytes=config.max_bytes,
        max_msgs_per_subject=1,
        max_msg_size=2 * subjects.MAX_BUNDLE_CHUNK,
        num_replicas=replicas,
    )
    await streams.ensure(client, wanted, "evidence.max_bytes", least=LEAST_BYTES, alone=alone)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBundle:
    """A bundle (a .tar.gz) in the bucket. It is read chunk by chunk: it is never in memory as a whole."""

    client: Client
    cell: str
    node: str
    command: str
    size: int
    chunks: int
    digest: str

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields its chunks. Unreachable: NATS does not answer. ActionError, at the end: it is incomplete, its oldest chunks
        were dropped.
        """
        left, digest = self.size, hashlib.sha256()
        for number in range(self.chunks):
            chunk = await _last(
                self.client, self.cell, subjects.bundle_chunk(self.cell, self.node, self.command, number)
            )
            if chunk is None or len(chunk) > left:
                break
            left -= len(chunk)
            digest.update(chunk)
            yield chunk
        if "SHA-256=" + base64.urlsafe_b64encode(digest.digest()).decode() != self.digest:
            raise ActionError(f"{self.node}/{self.command} is no longer complete: parts of it were dropped")


async def find(client: Client, cell: str, node: str, command: str) -> StoredBundle | None:
    """Returns the bundle that this command made on this node; None: not there, or not yet.

    Unreachable: NATS does not answer. ActionError: it is incomplete, which it finds out by reading all of it.
    """
    raw = await _last(client, cell, subjects.bundle_about(cell, node, command))
    if raw is None:
        return None
    try:
        about = orjson.loads(raw)
        size, count, digest = int(about["size"]), int(about["chunks"]), str(about["digest"])
    except (ValueError, TypeError, KeyError):
        raise ActionError(f"the description of {node}/{command} cannot be read") from None
    if not (0 <= size <= MAX_BYTES and 0 <= count <= _MAX_CHUNKS):
        raise ActionError(
            f"{node}/{command} has {size} bytes: larger than a bundle may be, {MAX_BYTES} bytes"
        )
    found = StoredBundle(
        client=client, cell=cell, node=node, command=command, size=size, chunks=count, digest=digest
    )
    async for _ in found.pieces():
        pass
    return found


async def _last(client: Client, cell: str, subject: str) -> bytes | None:
    try:
        return (await client.jsm().get_last_msg(subjects.evidence_stream(cell), subject)).data or b""
    except NotFoundError:
        return None
    except LOST as error:
        raise Unreachable(f"NATS: {error or type(error).__name__}") from error
