"""Which reports were mailed: in a key-value bucket of the cell, so that every brain that comes to lead knows it."""

from dataclasses import asdict, dataclass
from typing import Any

import orjson
from nats.aio.client import Client
from nats.js.api import KeyValueConfig, StorageType
from nats.js.errors import BucketNotFoundError, KeyNotFoundError, NotFoundError
from nats.js.kv import KeyValue

from agent.contract import subjects
from brain.adapters import copies

_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SentReport:
    """How far one report has come. Times in seconds since 1970."""

    # when the newest one was due that all have got
    mailed: float
    # when the one was due that only some have got; 0: there is none
    begun: float = 0.0
    # the addresses that have got that one
    took: tuple[str, ...] = ()


async def read(client: Client, cell: str, name: str) -> SentReport | None:
    """Returns what is known of a report; None: nothing, it is new. `LOST`: NATS does not answer."""
    jetstream = client.jetstream(timeout=_WITHIN_S)
    try:
        entry = await (await jetstream.key_value(subjects.reports_bucket(cell))).get(name)
    except (BucketNotFoundError, KeyNotFoundError, NotFoundError):
        return None
    found: dict[str, Any] = orjson.loads(entry.value or b"{}")
    return SentReport(
        mailed=float(found["mailed"]), begun=float(found.get("begun", 0.0)), took=tuple(found.get("took", ()))
    )


async def write(client: Client, cell: str, name: str, sent: SentReport, replicas: int = 1) -> None:
    """Replaces it. `LOST`: NATS has perhaps not taken it."""
    await (await _bucket(client, cell, replicas)).put(name, orjson.dumps(asdict(sent)))


async def _bucket(client: Client, cell: str, replicas: int) -> KeyValue:
    jetstream = client.jetstream(timeout=_WITHIN_S)
    try:
        bucket = await jetstream.key_value(subjects.reports_bucket(cell))
        await copies.at_least(client, f"KV_{subjects.reports_bucket(cell)}", replicas)
        return bucket
    except (BucketNotFoundError, NotFoundError):
        config = KeyValueConfig(
            bucket=subjects.reports_bucket(cell),
            description="which reports gpuward has mailed",
            history=1,
            storage=StorageType.FILE,
            replicas=replicas,
        )
        return await jetstream.create_key_value(config)
