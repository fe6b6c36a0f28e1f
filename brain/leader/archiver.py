"""Writes the log into its archive, file by file, while this brain leads.

Where to go on is read from the archive itself, and everything that was not yet in it is read from the log again: so after a kill
as after a change of leader, and after each failure. A file ends where the log says so, at a size or at the end of a period of
the log's time; so each leader makes the same files, and one that is written twice is the same one. It holds up nothing: it reads
beside the live loop, at most a quarter of the time, and keeps one file in memory.
"""

import asyncio
import io
import logging
import math
import time

from nats.aio.client import Client

from agent.contract.errors import ConfigError, ContractError, Unreachable
from agent.shared.nats_connection import LOST
from agent.shared.tasks import abandonable, run_together
from brain.adapters import archive_store, log
from brain.adapters.log import LogClock, Record
from brain.adapters.log_file import Gap, LogFileWriter, LogName
from brain.adapters.log_pull import LogPull
from brain.archive_config import ArchiveConfig
from brain.config import BrainConfig
from brain.leader.archive_end import ArchiveEnd
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.leadership import Leadership
from brain.leader.notes import BrainNotes
from brain.unreadable import answered_by

_log = logging.getLogger(__name__)

BEHIND = "archive_behind"
CHECK_S = 1.0
FIRST_PAUSE_S = 1.0  # after a failure
MAX_PAUSE_S = 60.0
REST = 3.0  # so many times as long as the work it rests


class OpenSegment:
    """A file of the archive that is being made: pure but for the compression."""

    def __init__(self, name: LogName, first: int, config: ArchiveConfig) -> None:
        self.first = first
        self.gap: Gap | None = None  # before its first message
        self._config = config
        self._body = io.BytesIO()
        self._file = LogFileWriter(self._body.write, name, first)
        self._period: int | None = None

    @property
    def last(self) -> int:
        """The position of the newest message in it."""
        return self._file.last

    @property
    def last_at(self) -> float:
        """That one's time."""
        return self._file.last_at

    def takes(self, record: Record) -> bool:
        """Does it belong into this file? False: the file ends before it."""
        if self._period is None:
            return True
        jump = record.seq != self.last + 1
        return not jump and not self.full and self._period_of(record) <= self._period

    @property
    def full(self) -> bool:
        """Has it its size?"""
        return self._file.size >= self._config.segment_bytes

    def add(self, record: Record) -> None:
        """The next message. What is missing before the first one is told by the file."""
        if self._period is None:
            self._period = self._period_of(record)
            if record.seq != self.first:
                self.gap = Gap(first=self.first, last=record.seq - 1)
                self._file.gap(self.gap)
        self._file.add(record)

    def finished(self) -> bytes:
        """The whole file."""
        self._file.finish()
        return self._body.getvalue()

    def _period_of(self, record: Record) -> int:
        return math.floor(record.at / self._config.segment_s)


class Archiver:
    """One brain's part in the archive; `newest_seq`, `behind_s` and `failing` are for people and metrics."""

    def __init__(
        self,
        config: BrainConfig,
        *,
        leadership: Leadership,
        clock: LogClock,
        alerts: BrainAlerts,
        notes: BrainNotes,
    ) -> None:
        """ConfigError: there is to be one, and the library or the credentials are missing."""
        self._cell = config.cell
        self._config = config.archive
        self._leadership = leadership
        self._clock = clock
        self._alerts = alerts
        self._notes = notes
        self.failing = ""  # why it cannot be written now; "": it can, or this brain does not lead
        self._put_failed = False  # it may be read, and takes no file: its disk is full, say
        self._doing = ""
        self._told: tuple[str, int] = (
            "",
            0,
        )  # the newest file whose gap this brain has told, and where that begins
        self._moved_s = time.monotonic()  # when a file was written, or this brain began to lead
        # The oldest message that is not in the archive was stored after this time; None: it is not known
        self._newest_at: float | None = None
        # The position of the newest message in the archive; None: this brain does not lead, or has not looked yet
        self.newest_seq: int | None = None
        self.written = 0  # files, since the start
        self.written_bytes = 0
        self.missing = 0  # messages that had gone from the log, since the start
        if config.archive.on:
            archive_store.require(config.archive)

    @property
    def behind_s(self) -> float | None:
        """So much later than it should be is the archive; None: this brain does not write it."""
        if self._newest_at is None:
            return None
        return max(0.0, self._clock.now() - self._newest_at - self._config.segment_s)

    async def serve(self, client: Client) -> None:
        """Writes on one connection, until cancelled."""
        await run_together(self._write(client), self._watch())

    async def _watch(self) -> None:
        """Tells when it is late: also while a folder of a file server hangs."""
        while True:
            await asyncio.sleep(CHECK_S)
            if not self._config.on or not self._leadership.leads():
                self._alerts.clear(BEHIND)
                self._moved_s = time.monotonic()
                continue
            # A log that is much older than its archive takes a while, and moves.
            still_s = time.monotonic() - self._moved_s
            behind_s = self.behind_s
            late_s = still_s if behind_s is None else behind_s if self.failing else min(behind_s, still_s)
            if late_s >= self._config.behind_after_s:
                self._alerts.open(BEHIND, self._late(late_s))
            elif self.newest_seq is not None and not self.failing:
                self._alerts.clear(BEHIND)

    def _late(self, behind_s: float) -> str:
        late = f"{behind_s / 3600:.1f} h" if behind_s >= 3600 else f"{behind_s:.0f} s"
        why = self.failing or self._doing or "it is reading what the log has"
        return (
            f"the log's archive is {late} later than it should be: {why}. Nothing is lost while the log "
            "still has it (log.max_age_s, log.max_bytes)"
        )

    async def _write(self, client: Client) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            if not self._config.on or not self._leadership.leads():
                self._newest_at = self.newest_seq = None
                self.failing, self._put_failed = "", False
                await asyncio.sleep(CHECK_S)
                continue
            done = self.written
            try:
                with answered_by(error_kind=Unreachable):
                    await self._follow(client)
            except (Unreachable, ConfigError, ContractError, *LOST) as error:
                self._fails(str(error) or type(error).__name__)
            if self.written > done:
                pause_s = FIRST_PAUSE_S
            await asyncio.sleep(pause_s if self.failing else 0)
            pause_s = min(MAX_PAUSE_S, pause_s * 2) if self.failing else FIRST_PAUSE_S

    async def _follow(self, client: Client) -> None:
        """Goes on where the archive ends, until this brain no longer leads or something fails."""
        self._doing = "it is looking where to go on"
        store = await abandonable(lambda: archive_store.opened(self._config), "archive")
        await abandonable(lambda: store.check_writable(self._cell), "archive")
        taken = ArchiveEnd(store, self._cell, await log.info(client, self._cell))
        await abandonable(taken.look, "archive")
        if taken.compare(await log.info(client, self._cell)):
            await abandonable(taken.begin_anew, "archive")
        self._doing = ""
        self._told_of(taken)
        if taken.gap is not None and (taken.newest, taken.gap.first) != self._told:
            self._tell(taken.newest, taken.gap)
        if not self._put_failed:
            self._works()
        again = True
        while again:
            pull = LogPull(client, self._cell, taken.after - (taken.last is not None))
            try:
                again = await self._each(pull, taken)
            finally:
                await pull.close()

    async def _each(self, pull: LogPull, taken: ArchiveEnd) -> bool:
        """Writes file after file. True: the log is not the one that the archive has, and `taken` is where to begin."""
        segment = OpenSegment(taken.name, taken.after + 1, self._config)
        self.newest_seq, self._newest_at = taken.after, taken.at
        while self._leadership.leads():
            records = await pull.piece(CHECK_S)
            began_s = time.monotonic()
            for record in records:
                if not taken.goes_on_with(record):
                    await abandonable(taken.begin_anew, "archive")
                    self._told_of(taken)
                    return True
                if record.seq <= taken.after:
                    continue
                if self._newest_at is None:
                    self._newest_at = record.at
                if not segment.takes(record):
                    if not await self._put(taken, segment):
                        return False
                    segment = OpenSegment(taken.name, segment.last + 1, self._config)
                segment.add(record)
            await asyncio.sleep(REST * (time.monotonic() - began_s))
        return False

    def _told_of(self, taken: ArchiveEnd) -> None:
        for kind, text in taken.news:
            self._notes.write(kind, text)
        taken.news.clear()

    async def _put(self, taken: ArchiveEnd, segment: OpenSegment) -> bool:
        """Writes a file; False: another brain has written there, or leads."""
        if not await self._leadership.confirm(self._leadership.epoch):
            return False
        body = segment.finished()
        path = taken.path(segment.first)
        self._doing = f"{path} is being written"
        again = segment.first == taken.again
        self._put_failed = True
        if not await abandonable(taken.still_there, "archive"):
            self._notes.write(
                "archive.put_back",
                f"the archive no longer has {taken.newest}: an older copy of it was put back, its file was removed, or its file "
                "system is not mounted. What the log still has is written again",
            )
            return False
        own = await abandonable(lambda: taken.store.put(path, body, again=again), "archive")
        self._put_failed = False
        self._doing = ""
        if not own:
            _log.info("archive: another brain has written %s: looked at again", path)
            return False
        self.newest_seq, self._newest_at = segment.last, segment.last_at
        self._moved_s = time.monotonic()
        self.written += 1
        self.written_bytes += len(body)
        self._works()
        if segment.gap is not None:
            self._tell(path, segment.gap, first_file=taken.empty)
        taken.wrote(path)
        _log.info("archive: %s, messages %d to %d", path, segment.first, segment.last)
        return True

    def _tell(self, path: str, gap: Gap, *, first_file: bool = False) -> None:
        self._told = path, gap.first
        text = f"messages {gap.first} to {gap.last} are not in the archive, and had gone from the log when it was written"
        if first_file:  # the archive is younger than the log
            self._notes.write("archive.begins", f"{text}: it begins with message {gap.last + 1}")
            return
        self.missing += gap.last - gap.first + 1
        self._alerts.tell(
            "archive_gap", f"{text}: raise log.max_bytes, and see to it that the archive can be written"
        )

    def _fails(self, why: str) -> None:
        if not self.failing:
            self._notes.write("archive.failing", f"the log's archive cannot be written: {why}")
        self.failing = why
        self._doing = ""

    def _works(self) -> None:
        if self.failing:
            self._notes.write("archive.works", "the log's archive is written again")
            self.failing = ""
