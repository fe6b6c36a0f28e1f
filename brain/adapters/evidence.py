"""Evidence bundles in the bus' object store: the bucket that nodes write to, and reading from it.

The bucket allows no roll-ups, by which a writer of an ordinary object store can empty all of it, and keeps the last
message of each subject only (see agent/uplink/bundles.py). The oldest bundles go when it is full.
"""

import base64
import hashlib
from typing import Protocol

import orjson
from nats.aio.client import Client
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import NotFoundError

from agent.contract import subjects
from agent.contract.errors import ActionError, ConfigError, Unreachable
from brain.adapters import log
from brain.adapters.broker import LOST
from brain.config import BrainConfig, EvidenceConfig

LEAST_BYTES = 16 * 1024**2
MAX_BYTES = 64 * 1024**2  # of one bundle: it is held in memory while it is handed on
_MAX_CHUNKS = MAX_BYTES // subjects.MAX_BUNDLE_CHUNK


class Live(Protocol):
    """What `offer` needs of the live loop."""

    @property
    def seq(self) -> int:
        """The last place on the log that was handled."""
        ...

    @property
    def caught_up(self) -> bool:
        """Was the whole log read since the start?"""
        ...

    async def reached(self, seq: int, timeout_s: float) -> bool:
        """Waits until the input at `seq` was handled."""
        ...

    def tell(self, kind: str, text: str) -> None:
        """A note of the brain itself."""
        ...


async def offer(client: Client, config: BrainConfig, live: Live) -> None:
    """Makes the bucket, once the log is read: the log and the lease need their room first. Where NATS has none, the
    brain goes on without, and says so.
    """
    while not live.caught_up:
        await live.reached(live.seq + 1, log.HEARTBEAT_S)
    try:
        await ensure(client, config.cell, config.evidence, config.nats.replicas)
    except (*LOST, ConfigError, Unreachable) as error:
        if client.is_closed:
            raise
        live.tell("brain.evidence_failed", f"evidence bundles cannot be kept in NATS: {error}")


async def ensure(client: Client, cell: str, config: EvidenceConfig, replicas: int = 1) -> None:
    """Makes the bucket, or sets its limits anew; errors as of the log."""
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
    await log.make(client, wanted, "evidence.max_bytes", least=LEAST_BYTES)


async def fetch(client: Client, cell: str, node: str, command: str) -> bytes | None:
    """The bundle that this command made on this node (a .tar.gz); None: it is not there, or not yet.

    Unreachable: NATS does not answer. ActionError: it is not whole, its oldest parts have gone.
    """
    stream, manager = subjects.evidence_stream(cell), client.jsm()

    async def last(subject: str) -> bytes | None:
        try:
            return (await manager.get_last_msg(stream, subject)).data or b""
        except NotFoundError:
            return None
        except LOST as error:
            raise Unreachable(f"NATS: {error or type(error).__name__}") from error

    raw = await last(subjects.bundle_about(cell, node, command))
    if raw is None:
        return None
    try:
        about = orjson.loads(raw)
        size, count, digest = int(about["size"]), int(about["chunks"]), str(about["digest"])
    except (ValueError, TypeError, KeyError):
        raise ActionError(f"the description of {node}/{command} cannot be read") from None
    if not (0 <= size <= MAX_BYTES and 0 <= count <= _MAX_CHUNKS):
        raise ActionError(f"{node}/{command} has {size} bytes: larger than a bundle may be")
    content = bytearray()
    for number in range(count):
        chunk = await last(subjects.bundle_chunk(cell, node, command, number))
        if chunk is None or len(content) + len(chunk) > size:
            break
        content += chunk
    found = "SHA-256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
    if found != digest:
        raise ActionError(f"{node}/{command} is not whole any more: parts of it have gone")
    return bytes(content)
