"""Keeps the evidence bundles that nodes offer: the brain writes them into the object store, within each node's share.

A node announces a bundle with its size; for the room its own oldest bundles go, never another node's. Only the chunks of
the bundle that was announced last are taken, in order, and its description is written when all of them are there and the
digest fits: what is described is complete. An empty bundle is none.

What changes the bucket asks for the lease directly before it leaves (brain/fence.py): a brain that was stopped in the middle of
a bundle must not remove what its successor has stored.
"""

import asyncio
import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from agent.contract import subjects
from agent.contract.bundle_parts import (
    AGAIN,
    KEPT,
    REFUSED,
    Bundle,
    Chunk,
    PartAnswer,
    decode_part,
    encode_part_answer,
)
from agent.contract.messages import clip
from agent.shared.nats_connection import LOST
from brain import fence
from brain.adapters.evidence import MAX_BYTES
from brain.allowance import Allowance
from brain.fence import Deposed, Fence
from brain.nats_config import EvidenceConfig

SHARE = 0.1  # of the bucket, for one node
ANSWER_S = 5.0
# How many bundles a node may announce at once, and how many more per second: after an outage an agent has some dozens.
ANNOUNCED_BURST, ANNOUNCED_PER_S = 60.0, 1.0
TOO_LARGE = "brain.evidence_too_large"  # kind of the note
TELL_S = 60.0  # between two of them about one node
_MOST_KEPT = 1000  # bundles of one node


@dataclass(slots=True)
class _Upload:
    bundle: Bundle
    count: int = 0
    size: int = 0
    # Described; it is remembered since the answer to its last chunk may be lost, and then that chunk comes again.
    complete: bool = False
    digest: Any = field(default_factory=hashlib.sha256)


class EvidenceStore:
    """The bundles of one cell. It keeps the uploads under way, and what each node has; with each leadership it begins again."""

    def __init__(
        self, cell: str, config: EvidenceConfig, note: Callable[[str, str], None] = lambda _kind, _text: None
    ) -> None:
        """`note`: tells people, by kind and text, of a bundle that is too large."""
        self._cell = cell
        self._note = note
        # Node → when people were told of a bundle of it that is too large.
        self._told_s: dict[str, float] = {}
        self._most = min(MAX_BYTES, int(config.max_bytes * SHARE))
        self._uploads: dict[str, _Upload] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        # Node → command → bytes of each bundle that it has, the oldest first; of nodes that have announced one.
        self._sizes: dict[str, dict[str, int]] = {}
        self._paces: dict[str, Allowance] = {}
        self._fence = fence.outside
        self._slowed: Callable[[str], None] = _nobody

    def begin(self, asked: Fence, slowed: Callable[[str], None]) -> None:
        """A new leadership, which `asked` knows: what was in the bucket may be another brain's work since. `slowed` is told
        of nodes above their pace.
        """
        self._fence, self._slowed = asked, slowed
        self._paces.clear()
        self._uploads.clear()
        self._sizes.clear()

    async def take(self, client: Client, node: str, message: bytes) -> bytes:
        """One part that `node` has offered; the answer to it, empty: none (the bucket does not answer now, and the node sends it
        again). ContractError: it cannot be read.
        """
        part = decode_part(message)
        async with self._turns.setdefault(
            node, asyncio.Lock()
        ):  # a part may come twice, and each changes what is there
            try:
                if isinstance(part, Bundle):
                    await self._pace(node)
                    answer = await self._begin(client, node, part)
                else:
                    answer = await self._chunk(client, node, part)
            except (*LOST, Deposed):
                self._uploads.pop(node, None)
                self._sizes.pop(node, None)
                return b""
        return encode_part_answer(answer)

    async def _pace(self, node: str) -> None:
        """Waits until the node may announce another bundle."""
        pace = self._paces.setdefault(node, Allowance(ANNOUNCED_BURST, ANNOUNCED_PER_S))
        loop = asyncio.get_running_loop()
        while not pace.spend(loop.time()):
            self._slowed(node)
            await asyncio.sleep(pace.ready_s())

    async def _begin(self, client: Client, node: str, bundle: Bundle) -> PartAnswer:
        if why := self._unfit(bundle):
            if bundle.size > self._most:
                self._tell_too_large(node, bundle, why)
            return PartAnswer(command=bundle.command, number=-1, word=REFUSED, why=why)
        before = self._uploads.pop(node, None)
        if before is not None and not before.complete:
            await self._purge(client, subjects.bundle_chunks(self._cell, node, before.bundle.command))
        await self._make_room(client, node, bundle)
        self._uploads[node] = _Upload(bundle)
        return PartAnswer(command=bundle.command, number=-1, word=KEPT)

    def _unfit(self, bundle: Bundle) -> str:
        """Why a bundle is not kept; empty: it is."""
        if bundle.size > self._most:
            return too_large(bundle.size, self._most)
        if not bundle.size:
            return "it is empty"
        if bundle.chunks != -(-bundle.size // subjects.MAX_BUNDLE_CHUNK):
            return "size and chunks do not fit each other"
        return ""

    def _tell_too_large(self, node: str, bundle: Bundle, why: str) -> None:
        """People look for it in vain, and only the node has it. One that announces many is told now and then."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._told_s.get(node, -TELL_S) >= TELL_S:
            self._told_s[node] = now_s
            self._note(TOO_LARGE, f"{subjects.bundle(node, bundle.command)}: {why}")

    async def _chunk(self, client: Client, node: str, chunk: Chunk) -> PartAnswer:
        upload = self._uploads.get(node)
        if upload is None or upload.bundle.command != chunk.command:
            return PartAnswer(command=chunk.command, number=chunk.number, word=AGAIN)
        if chunk.number == upload.count - 1:  # the answer to it was lost
            return PartAnswer(command=chunk.command, number=chunk.number, word=KEPT)
        left = upload.bundle.size - upload.size
        if chunk.number != upload.count or len(chunk.content) != min(left, subjects.MAX_BUNDLE_CHUNK):
            del self._uploads[node]
            await self._purge(client, subjects.bundle_chunks(self._cell, node, chunk.command))
            return PartAnswer(command=chunk.command, number=chunk.number, word=AGAIN)
        subject = subjects.bundle_chunk(self._cell, node, chunk.command, chunk.number)
        await self._publish(client, subject, chunk.content)
        upload.count += 1
        upload.size += len(chunk.content)
        upload.digest.update(chunk.content)
        if upload.count == upload.bundle.chunks:
            return await self._complete(client, node, upload)
        return PartAnswer(command=chunk.command, number=chunk.number, word=KEPT)

    async def _complete(self, client: Client, node: str, upload: _Upload) -> PartAnswer:
        command, number = upload.bundle.command, upload.count - 1
        digest = "SHA-256=" + base64.urlsafe_b64encode(upload.digest.digest()).decode()
        if digest != upload.bundle.digest:
            del self._uploads[node]
            await self._purge(client, subjects.bundle_chunks(self._cell, node, command))
            why = "the digest does not fit: the file has changed meanwhile"
            return PartAnswer(command=command, number=number, word=REFUSED, why=why)
        await self._describe(client, node, upload)
        return PartAnswer(command=command, number=number, word=KEPT)

    async def _describe(self, client: Client, node: str, upload: _Upload) -> None:
        bundle = upload.bundle
        about = {
            "name": subjects.bundle(node, bundle.command),
            "bucket": subjects.evidence_bucket(self._cell),
            "description": clip(bundle.file, 200),
            "size": bundle.size,
            "chunks": bundle.chunks,
            "digest": bundle.digest,
        }
        subject = subjects.bundle_about(self._cell, node, bundle.command)
        await self._publish(client, subject, orjson.dumps(about))
        upload.complete = True
        sizes = self._sizes.setdefault(node, {})
        sizes.pop(bundle.command, None)
        sizes[bundle.command] = bundle.size

    async def _make_room(self, client: Client, node: str, bundle: Bundle) -> None:
        """Removes the node's oldest bundles until the new one fits into its share; and what an older brain left of one."""
        await self._purge(client, subjects.bundle_chunks(self._cell, node, bundle.command))
        if node not in self._sizes:
            kept = await self._kept(client, node)
            self._sizes[node] = {command: size for _, command, size in sorted(kept)}
        sizes = self._sizes[node]
        room = self._most - bundle.size + sizes.get(bundle.command, 0)
        for command in [one for one in sizes if one != bundle.command]:
            if sum(sizes.values()) <= room and len(sizes) < _MOST_KEPT:
                break
            await self._purge(client, subjects.bundle_about(self._cell, node, command))
            await self._purge(client, subjects.bundle_chunks(self._cell, node, command))
            del sizes[command]

    async def _kept(self, client: Client, node: str) -> list[tuple[int, str, int]]:
        """(position, command, bytes) of each bundle of the node that is described: asks the bucket once for each."""
        manager, stream = client.jsm(timeout=ANSWER_S), subjects.evidence_stream(self._cell)
        _, descriptions = subjects.node_bundles(self._cell, node)
        info = await manager.stream_info(stream, subjects_filter=descriptions)
        found: Mapping[str, int] = info.state.subjects or {}
        kept = []
        for subject in found:
            try:
                message = await manager.get_last_msg(stream, subject)
                size = int(orjson.loads(message.data or b"")["size"])
            except (NotFoundError, ValueError, KeyError, TypeError):
                continue
            kept.append((message.seq or 0, subjects.command_of_bundle(subject), size))
        return kept

    async def _publish(self, client: Client, subject: str, content: bytes) -> None:
        await fence.passed(self._fence)
        await client.jetstream(timeout=ANSWER_S).publish(subject, content)

    async def _purge(self, client: Client, subject: str) -> None:
        await fence.passed(self._fence)
        await client.jsm(timeout=ANSWER_S).purge_stream(subjects.evidence_stream(self._cell), subject=subject)


def _nobody(_: str) -> None:
    return


def too_large(size: int, most: int) -> str:
    """Why a bundle of so many bytes is not kept, and what can be done."""
    return (
        f"the bundle has {size / 1024**2:.1f} MiB and is not kept, as a node may keep {most / 1024**2:.1f} MiB: a tenth of "
        f"evidence.max_bytes of brain.toml, and at most {MAX_BYTES // 1024**2} MiB. It is on its node, in the folder evidence of "
        "the agent's data_dir"
    )
