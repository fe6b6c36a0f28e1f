"""Keeps a snapshot of the state on disk, so that a restart reads only what came after it."""

import asyncio
import time

from agent.contract.errors import Unreachable
from agent.shared.nats_connection import LOST
from agent.shared.tasks import abandonable
from brain.adapters import state_copy
from brain.adapters.snapshot import Snapshots, dump, packed
from brain.config import SnapshotConfig
from brain.leader.current_client import CurrentClient
from brain.leader.history import HistoryWriter
from brain.leader.leadership import Leadership
from brain.leader.notes import BrainNotes
from brain.leader.replica import Replica

CHECK_S = 1.0
CALM_S = 3600.0  # between snapshots while nothing happens
COPY_S = 600.0  # between copies in NATS: less than the log reaches back
WRITE_S = 10.0  # so long the disk may take for a snapshot; one that it takes later counts all the same


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
        nats: CurrentClient,
        cell: str,
        replicas: int,
    ) -> None:
        """`cell`, `replicas`: of the copy in NATS."""
        self._nats = nats
        self._cell = cell
        self._replicas = replicas
        self._copied_s: float | None = None
        self._snapshots = snapshots
        self._settings = settings
        self._replica = replica
        self._history = history
        self._leadership = leadership
        self._notes = notes
        self._under_way: asyncio.Task[None] | None = None

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
        if not replica.unsaved or self._leadership.stopped or self._hangs():
            return
        body, seq, identity = dump(replica.state), replica.seq, replica.identity
        if not await self._history.written_up_to(seq, WRITE_S):
            return
        self._under_way = asyncio.create_task(
            abandonable(lambda: self._snapshots.write(body, seq, identity), "snapshot")
        )
        try:
            async with asyncio.timeout(WRITE_S):
                await asyncio.shield(self._under_way)
        except TimeoutError:
            self._notes.write(
                "brain.snapshot_failed", f"the disk has not taken the snapshot in {WRITE_S:.0f} s"
            )
        except OSError as error:
            self._notes.write("brain.snapshot_failed", f"the snapshot was not written: {error}")
        else:
            if replica.identity == identity:
                replica.saved(seq)
            await self._offer(packed(body, seq, identity))

    def _hangs(self) -> bool:
        """Whether the disk has not taken the last one yet: two at once would write to one file."""
        if self._under_way is None or not self._under_way.done():
            return self._under_way is not None
        # What it said late was told when it was late.
        self._under_way.exception()
        return False

    async def _offer(self, snapshot: bytes) -> None:
        """Replaces the copy in NATS now and then, while this brain leads. A copy that is not taken is noted once in that time."""
        now_s = time.monotonic()
        if not self._leadership.leads() or (self._copied_s is not None and now_s - self._copied_s < COPY_S):
            return
        self._copied_s = now_s
        try:
            await state_copy.write(self._nats.required(), self._cell, snapshot, self._replicas)
        except (*LOST, Unreachable) as error:
            why = str(error) or type(error).__name__
            self._notes.write("brain.snapshot_failed", f"NATS did not take the copy of the state: {why}")
