"""The brain's log as one file (brain.adapters.log_file), made while somebody takes it."""

import asyncio
import time
from collections.abc import AsyncIterator

from nats.aio.client import Client

from agent.contract.errors import Unreachable
from agent.shared.nats_connection import LOST
from brain.adapters import log, log_pull
from brain.adapters.log_file import Gap, LogFileWriter, LogName
from brain.adapters.log_pull import LogPull

PIECE = 64 * 1024  # bytes
SILENT_S = 20.0  # NATS has more and gives nothing
REST = 1.0  # so many times as long as the work it rests


async def pieces(client: Client, cell: str, since: float, until: float) -> AsyncIterator[bytes]:
    """Yields the file, compressed, of what is on the log now from `since` on and before `until` (seconds since 1970).

    Unreachable: NATS does not give it.
    """
    try:
        async for piece in _pieces(client, cell, since, until):
            yield piece
    except LOST as error:
        raise Unreachable(f"NATS does not give the log: {error or type(error).__name__}") from error


async def _pieces(client: Client, cell: str, since: float, until: float) -> AsyncIterator[bytes]:
    info = await log.info(client, cell)
    first = await log_pull.first_at(client, cell, since) if since > 0 else max(info.first_seq, 1)
    made = bytearray()
    file = LogFileWriter(made.extend, LogName(cell=cell, log=info.identity), first)
    pull = LogPull(client, cell, first - 1)
    heard_s = time.monotonic()
    done = False
    try:
        while not done and file.last < info.last_seq:
            records = await pull.piece(1.0)
            began_s = time.monotonic()
            if records:
                heard_s = began_s
            elif began_s - heard_s > SILENT_S:
                raise Unreachable(f"NATS has not given message {file.last + 1} for {SILENT_S:g} s")
            for record in records:
                if record.at >= until or record.seq > info.last_seq:
                    done = True
                    break
                if record.seq != file.last + 1:
                    file.gap(Gap(first=file.last + 1, last=record.seq - 1))
                file.add(record)
            if len(made) >= PIECE:
                yield bytes(made)
                made.clear()
            await asyncio.sleep(REST * (time.monotonic() - began_s))
    finally:
        await pull.close()
    file.finish()
    yield bytes(made)
