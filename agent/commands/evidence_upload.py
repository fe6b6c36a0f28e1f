"""Evidence bundles → the bus' object store, each until the broker has all of it; also over restarts of the agent.

The layout is that of a NATS object store, with two differences. The subjects name the node, so that the server lets a node
write only its own bundles. And each chunk has a subject of its own, of which the stream keeps the last message, so that
sending it again after a broken connection costs no room.
"""

import asyncio
import base64
import hashlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import orjson

from agent.commands.journal import Journal, JournalEntry
from agent.contract import subjects
from agent.shared.nats_connection import LOST

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js.client import JetStreamContext

ANSWER_S = 5.0
# After the broker did not accept a chunk (no bucket yet, no permission): doubled up to MAX_PAUSE_S.
FIRST_PAUSE_S = 1.0
MAX_PAUSE_S = 60.0

_log = logging.getLogger(__name__)


class EvidenceUpload:
    """Uploads one node's bundles; `serve` for each connection. `folder`: where the bundles are."""

    def __init__(self, journal: Journal, folder: Path, cell: str, node: str) -> None:
        self._journal = journal
        self._folder = folder
        self._cell = cell
        self._node = node
        self._wake = asyncio.Event()
        self._last_error = ""

    def wake(self) -> None:
        """To be called when there may be a new bundle."""
        self._wake.set()

    async def serve(self, client: "Client") -> None:
        """Uploads what is waiting, then waits for more, until cancelled."""
        pause_s = FIRST_PAUSE_S
        while True:
            self._wake.clear()
            try:
                for entry in self._journal.to_upload():
                    await self._upload(client, entry)
            except LOST as error:
                if client.is_closed:
                    raise
                self._report(f"{type(error).__name__}: {error}")
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
            await self._upload_file(client.jetstream(timeout=ANSWER_S), entry.id, name, source)
        self._journal.mark_uploaded(entry.id)
        self._last_error = ""
        _log.info("evidence %s of command %s is in the object store", name, entry.id)

    async def _upload_file(
        self, jetstream: "JetStreamContext", command: str, file: str, source: BinaryIO
    ) -> None:
        digest = hashlib.sha256()
        size = count = 0
        while chunk := source.read(subjects.MAX_BUNDLE_CHUNK):
            await jetstream.publish(subjects.bundle_chunk(self._cell, self._node, command, count), chunk)
            digest.update(chunk)
            size, count = size + len(chunk), count + 1
        about = {
            "name": subjects.bundle(self._node, command),
            "bucket": subjects.evidence_bucket(self._cell),
            "description": file,
            "size": size,
            "chunks": count,
            "digest": "SHA-256=" + base64.urlsafe_b64encode(digest.digest()).decode(),
        }
        await jetstream.publish(subjects.bundle_about(self._cell, self._node, command), orjson.dumps(about))

    def _report(self, error: str) -> None:
        """Logs one line per change, not one per attempt."""
        if error != self._last_error:
            self._last_error = error
            _log.warning("the broker does not accept evidence: %s", error)
