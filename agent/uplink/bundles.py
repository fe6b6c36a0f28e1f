"""Evidence bundles → the bus' object store, each until the broker has all of it; also over restarts of the agent.

The layout is that of an object store of NATS, but for two things. The subjects name the node, so that the server lets
a node write its own bundles only; and each chunk has a subject of its own, of which the stream keeps the last
message, so that sending again after a broken connection costs no room.
"""

import asyncio
import base64
import hashlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import nats
import orjson

from agent.contract import subjects
from agent.uplink.journal import Entry, Journal

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js.client import JetStreamContext

ANSWER_S = 5.0
FIRST_PAUSE_S = (
    1.0  # after the broker did not take it (no bucket yet, no permission): doubled up to MAX_PAUSE_S
)
MAX_PAUSE_S = 60.0

_log = logging.getLogger(__name__)


class Bundles:
    """Sends one node's bundles; `serve` for each connection. `folder`: where they lie."""

    def __init__(self, journal: Journal, folder: Path, cell: str, node: str) -> None:
        self._journal = journal
        self._folder = folder
        self._cell = cell
        self._node = node
        self._wake = asyncio.Event()
        self._said = ""

    def look(self) -> None:
        """There may be a new one."""
        self._wake.set()

    async def serve(self, client: "Client") -> None:
        """Sends what was not sent, then waits for more, until cancelled."""
        pause_s = FIRST_PAUSE_S
        while True:
            self._wake.clear()
            try:
                for entry in self._journal.unsent():
                    await self._send(client, entry)
            except (nats.errors.Error, OSError, TimeoutError) as error:
                if client.is_closed:
                    raise
                self._say(f"{type(error).__name__}: {error}")
                await asyncio.sleep(pause_s)
                pause_s = min(MAX_PAUSE_S, pause_s * 2)
            else:
                pause_s = FIRST_PAUSE_S
                await self._wake.wait()

    async def _send(self, client: "Client", entry: Entry) -> None:
        name = entry.result.evidence if entry.result is not None else ""
        try:
            source = (self._folder / name).open("rb")
        except OSError as error:
            _log.warning("evidence %s of command %s cannot be sent: %s", name, entry.id, error)
            self._journal.send(entry.id)  # newer ones have taken its place
            return
        with source:
            await self._send_file(client.jetstream(timeout=ANSWER_S), entry.id, name, source)
        self._journal.send(entry.id)
        self._said = ""
        _log.info("evidence %s of command %s is in the object store", name, entry.id)

    async def _send_file(self, log: "JetStreamContext", command: str, file: str, source: BinaryIO) -> None:
        digest = hashlib.sha256()
        size = count = 0
        while chunk := source.read(subjects.MAX_BUNDLE_CHUNK):
            await log.publish(subjects.bundle_chunk(self._cell, self._node, command, count), chunk)
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
        await log.publish(subjects.bundle_about(self._cell, self._node, command), orjson.dumps(about))

    def _say(self, error: str) -> None:
        """One line per change, not one per try."""
        if error != self._said:
            self._said = error
            _log.warning("the broker does not take evidence: %s", error)
