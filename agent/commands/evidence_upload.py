"""Evidence bundles → the brain, which keeps them in the bus' object store: each until the brain has all of it; also over
restarts of the agent. The parts and the brain's answers are those of agent/contract/bundle_parts.py.
"""

import asyncio
import base64
import hashlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from agent.commands.journal import Journal, JournalEntry
from agent.contract import subjects
from agent.contract.bundle_parts import (
    AGAIN,
    KEPT,
    Bundle,
    Chunk,
    PartAnswer,
    decode_part_answer,
    encode_part,
)
from agent.contract.errors import ActionError, ContractError, Refused, Unreachable
from agent.shared.log_fields import about
from agent.shared.nats_connection import LOST
from agent.uplink.port import MOST_WAITING_BYTES

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

ANSWER_S = 5.0
# After the brain did not take a part (none leads, no bucket yet): doubled up to MAX_PAUSE_S.
FIRST_PAUSE_S = 1.0
MAX_PAUSE_S = 60.0

_log = logging.getLogger(__name__)


class EvidenceUpload:
    """Uploads one node's bundles; `serve` for each connection. `folder`: where the bundles are."""

    def __init__(self, journal: Journal, folder: Path, cell: str, node: str) -> None:
        self._journal = journal
        self._folder = folder
        self._offer = subjects.offer(cell, node, subjects.EVIDENCE)
        self._answers = subjects.acknowledgement(cell, node, subjects.EVIDENCE)
        self._wake = asyncio.Event()
        self._last_error = ""
        # (command, part) → who waits for the brain's answer to it.
        self._asked: dict[tuple[str, int], asyncio.Future[PartAnswer]] = {}

    def wake(self) -> None:
        """To be called when there may be a new bundle."""
        self._wake.set()

    async def serve(self, client: "Client") -> None:
        """Uploads what is waiting, then waits for more, until cancelled."""
        await client.subscribe(self._answers, cb=self._on_answer, pending_bytes_limit=MOST_WAITING_BYTES)
        pause_s = FIRST_PAUSE_S
        while True:
            self._wake.clear()
            try:
                for entry in self._journal.to_upload():
                    with about(step=entry.id):
                        await self._upload(client, entry)
            except (*LOST, ActionError) as error:
                if client.is_closed:
                    raise
                self._report(str(error) or type(error).__name__)
                await asyncio.sleep(pause_s)
                pause_s = min(MAX_PAUSE_S, pause_s * 2)
            else:
                pause_s = FIRST_PAUSE_S
                await self._wake.wait()

    async def _upload(self, client: "Client", entry: JournalEntry) -> None:
        name = entry.result.evidence if entry.result is not None else ""
        try:
            source = (self._folder / name).open("rb")
        except OSError as error:
            _log.warning("evidence %s of command %s cannot be uploaded: %s", name, entry.id, error)
            self._journal.mark_uploaded(entry.id)  # newer bundles have taken its place
            return
        with source:
            try:
                await self._upload_file(client, entry.id, name, source)
            except Refused as error:
                _log.warning("evidence %s of command %s is not kept by the brain: %s", name, entry.id, error)
            else:
                _log.info("evidence %s of command %s is in the object store", name, entry.id)
        self._journal.mark_uploaded(entry.id)
        self._last_error = ""

    async def _upload_file(self, client: "Client", command: str, file: str, source: BinaryIO) -> None:
        """Sends all parts, each when the brain has the one before. Refused: the brain does not keep it."""
        bundle = _about(command, file, source)
        source.seek(0)
        await self._send(client, bundle, -1)
        for number in range(bundle.chunks):
            chunk = Chunk(command=command, number=number, content=source.read(subjects.MAX_BUNDLE_CHUNK))
            await self._send(client, chunk, number)

    async def _send(self, client: "Client", part: Bundle | Chunk, number: int) -> None:
        key = part.command, number
        self._asked[key] = asyncio.get_running_loop().create_future()
        try:
            await client.publish(self._offer, encode_part(part))
            async with asyncio.timeout(ANSWER_S):
                answer = await self._asked[key]
        except TimeoutError:
            raise Unreachable(f"no brain took a part within {ANSWER_S:g} s") from None
        finally:
            del self._asked[key]
        if answer.word == AGAIN:
            raise Unreachable("the brain wants it from the beginning")
        if answer.word != KEPT:
            raise Refused(answer.why or "refused")

    async def _on_answer(self, message: "Msg") -> None:
        try:
            answer = decode_part_answer(message.data)
        except ContractError as error:
            _log.warning("an answer that cannot be read: %s", error)
            return
        asked = self._asked.get((answer.command, answer.number))
        if asked is not None and not asked.done():
            asked.set_result(answer)

    def _report(self, error: str) -> None:
        """Logs one line per change, not one per attempt."""
        if error != self._last_error:
            self._last_error = error
            _log.warning("evidence is not uploaded yet: %s", error)


def _about(command: str, file: str, source: BinaryIO) -> Bundle:
    digest = hashlib.sha256()
    size = chunks = 0
    while content := source.read(subjects.MAX_BUNDLE_CHUNK):
        digest.update(content)
        size, chunks = size + len(content), chunks + 1
    text = "SHA-256=" + base64.urlsafe_b64encode(digest.digest()).decode()
    return Bundle(command=command, file=file, digest=text, size=size, chunks=chunks)
