"""Evidence bundles as a whole, for tests."""

import asyncio
import base64
import hashlib

import nats
from nats.aio.client import Client

from agent.contract import subjects
from agent.contract.bundle_parts import KEPT, Bundle, Chunk, decode_part_answer, encode_part
from brain.adapters import evidence
from brain.adapters.evidence_store import EvidenceStore
from brain.nats_config import EvidenceConfig


async def fetch(client: Client, cell: str, node: str, command: str) -> bytes | None:
    """The bundle that a command made on a node; None: there is none. Raises as `evidence.find`."""
    found = await evidence.find(client, cell, node, command)
    return None if found is None else b"".join([piece async for piece in found.pieces()])


async def store(url: str, seed_file: str, cell: str, node: str, command: str, body: bytes) -> None:
    """Puts a bundle where a node's would be once a brain has taken it in."""
    client = await nats.connect(url, nkeys_seed=seed_file)
    try:
        into = EvidenceStore(cell, EvidenceConfig())
        pieces = [
            body[at : at + subjects.MAX_BUNDLE_CHUNK] for at in range(0, len(body), subjects.MAX_BUNDLE_CHUNK)
        ]
        digest = "SHA-256=" + base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode()
        begin = Bundle(
            command=command,
            file=f"{command}.tar.gz",
            digest=digest,
            size=len(body),
            chunks=len(pieces),
        )
        parts = [Chunk(command=command, number=n, content=piece) for n, piece in enumerate(pieces)]
        everything: list[Bundle | Chunk] = [begin, *parts]
        for part in everything:
            async with asyncio.timeout(60):
                while not (said := await into.take(client, node, encode_part(part))):
                    await asyncio.sleep(0.1)  # the bucket is not there yet: as a node does
            answer = decode_part_answer(said)
            assert answer.word == KEPT, answer
    finally:
        await client.close()
