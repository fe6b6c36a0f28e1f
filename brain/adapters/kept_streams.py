"""What a brain keeps on NATS, and what the servers say of it: for the doctor, and for the metrics."""

import asyncio
from enum import StrEnum

from nats.aio.client import Client
from nats.js.api import StreamInfo
from nats.js.errors import NotFoundError

from agent.contract import subjects
from brain.adapters import lanes


class StreamUse(StrEnum):
    """What a stream is for."""

    LOG = "log"
    LEASE = "lease"
    STATE = "state"
    EVIDENCE = "evidence"
    LANES = "lanes"  # 72 of them


def names(cell: str) -> list[tuple[StreamUse, str]]:
    """Each stream of a cell; not those that the brain makes only when they are needed."""
    return [
        (StreamUse.LOG, subjects.stream(cell)),
        (StreamUse.LEASE, f"KV_{subjects.LEASE_BUCKET}"),
        (StreamUse.STATE, f"OBJ_{subjects.state_bucket(cell)}"),
        (StreamUse.EVIDENCE, subjects.evidence_stream(cell)),
        *((StreamUse.LANES, lane.stream) for lane in lanes.lanes(cell)),
    ]


async def told(client: Client, cell: str) -> list[tuple[StreamUse, StreamInfo | Exception]]:
    """What the servers say of each that is there; the error of one that they say nothing of, as while they elect its leader."""
    wanted = names(cell)
    asked = (client.jsm().stream_info(stream) for _, stream in wanted)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    found: list[tuple[StreamUse, StreamInfo | Exception]] = []
    for (what, _), answer in zip(wanted, answers, strict=True):
        if isinstance(answer, BaseException) and not isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, NotFoundError):
            found.append((what, answer))
    return found
