"""Keeps a snapshot of the state on disk, so that a restart reads only what came after it."""

import asyncio
import time

from brain.adapters.snapshot import Snapshots, dump
from brain.config import SnapshotConfig
from brain.leader.history import HistoryWriter
from brain.leader.leadership import Leadership
from brain.leader.notes import BrainNotes
from brain.leader.replica import Replica

CHECK_S = 1.0
CALM_S = 3600.0  # between snapshots while nothing happens


class SnapshotKeeper:
    """Writes a snapshot every so often and every so many inputs."""

    def __init__(
        self,
        *,
        snapshots: Snapshots,
        settings: SnapshotConfig,
        replica: Replica,
        history: HistoryWriter,
        leadership: Leadership,
        notes: BrainNotes,
    ) -> None:
        self._snapshots = snapshots
        self._settings = settings
        self._replica = replica
        self._history = history
        self._leadership = leadership
        self._notes = notes

    async def serve(self) -> None:
        """Writes snapshots, until cancelled."""
        settings = self._settings
        last_s, last_seq = time.monotonic(), 0
        while True:
            await asyncio.sleep(min(CHECK_S, settings.every_s))
            now_s, seq = time.monotonic(), self._replica.seq
            # Where only pulses go round, the state is as it was; a restart would only read them again.
            every_s = max(settings.every_s, CALM_S) if self._replica.calm else settings.every_s
            if now_s - last_s >= every_s or seq - last_seq >= settings.every_inputs:
                await self.write()
                last_s, last_seq = now_s, seq

    async def write(self) -> None:
        """Writes one, if anything has happened since the last. A full disk is noted and does not stop the brain."""
        replica = self._replica
        # After a broken invariant the state may be wrong; and a snapshot must never be ahead of the read model.
        if not replica.unsaved or self._leadership.stopped or not self._history.flush():
            return
        body, seq, identity = dump(replica.state), replica.seq, replica.identity
        try:
            await asyncio.to_thread(self._snapshots.write, body, seq, identity)
        except OSError as error:
            self._notes.write("brain.snapshot_failed", f"the snapshot was not written: {error}")
        else:
            replica.saved(seq)
