"""The kernel log as a stream: `/dev/kmsg`, woken by the kernel, one record per read."""

import asyncio
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from agent.collectors.samples import Overrun
from agent.contract import kernel_text
from agent.host import Host
from agent.options import option
from agent.sources.base import Emit, Source, SourceSetup

PATH = "/dev/kmsg"
_RECORD_BYTES = 8192  # the kernel's own limit of one record; a smaller buffer would return EINVAL
_MOST_RECORDS = 1_000_000  # more than any ring holds: a flood cannot hold up the first start
_DRIFT_S = 0.5  # a record that seems so much older than the newest ones was read late: that is no drift
_CREEP = 0.02
_BATCH = 256  # records in one go, so that a flood does not starve the rest of the agent


def open_log(path: Path) -> int:
    """A non-blocking descriptor at the oldest record that the kernel still has."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


@dataclass(frozen=True, slots=True, kw_only=True)
class KmsgSourceOptions:
    """What an operator can set."""

    # Whoever may open the device for writing can forge a line, but never one of facility 0.
    kmsg_facilities: tuple[int, ...] = option(
        (kernel_text.KERNEL,),
        "kernel log facilities that are believed; 0 is the kernel, and any local user can write the others",
    )


class KmsgSource(Source):
    """Emits Line, and Overrun where records were lost.

    `start` is the position at which a former run ended (boot id, sequence number). Same boot: the records after it follow.
    Another boot: all of this boot's records follow, as no run has seen them. None (the first start ever): only records
    written from now on, so that an installation does not report history as news.
    """

    name: ClassVar[str] = "kmsg"
    needs: ClassVar[str] = "/dev/kmsg: root or CAP_SYSLOG"
    options: ClassVar[tuple[type[Any], ...]] = (KmsgSourceOptions,)

    def __init__(
        self,
        host: Host,
        options: KmsgSourceOptions,
        *,
        start: tuple[str, int] | None = None,
        path: str = PATH,
        opener: Callable[[Path], int] = open_log,
    ) -> None:
        self._host = host
        self._position = start
        self._facilities = frozenset(options.kmsg_facilities)
        self._path = path
        self._open = opener
        self._clock = KernelClock(host)
        # While it is followed: reads some of what has been written; was it all?
        self._drain: Callable[[], bool] | None = None

    @classmethod
    def of(cls, setup: SourceSetup) -> Self:
        """See Source."""
        return cls(setup.host, setup.options(KmsgSourceOptions), start=setup.kmsg_start)

    @property
    def position(self) -> tuple[str, int] | None:
        """(boot id, sequence number) up to which records were emitted; store it for the next run."""
        return self._position

    async def run(self, emit: Emit) -> None:
        """Follow the log until cancelled."""
        loop = asyncio.get_running_loop()
        broken: asyncio.Future[None] = loop.create_future()
        boot = self._host.boot_id()
        fd = self._open(self._host.path(self._path))
        try:
            if self._position is None:
                last = _skip_to_end(fd)
                self._position = None if last is None else (boot, last)
            elif self._position[0] != boot:
                self._position = (boot, -1)

            def readable() -> bool:
                try:
                    return self._read(fd, emit, boot)
                except OSError as error:
                    loop.remove_reader(fd)
                    if not broken.done():
                        broken.set_exception(error)
                    return False

            loop.add_reader(fd, readable)
            self._drain = readable
            await broken
        finally:
            self._drain = None
            loop.remove_reader(fd)
            os.close(fd)

    async def look(self, emit: Emit) -> None:  # noqa: ARG002  lines are no state: they go their usual way
        """See Source: what the kernel has written up to now is read."""
        while self._drain is not None:
            if self._drain():
                return
            await asyncio.sleep(0)
        raise OSError("kmsg: the kernel log is not open")

    async def once(self, emit: Emit) -> None:
        """All records that there are now: the kernel's ring, or a recorded text file in any encoding."""
        path = self._host.path(self._path)
        if not self._host.live and not path.exists():
            return
        if stat.S_ISREG(path.stat().st_mode):
            with path.open(errors="replace") as lines:
                for _, recorded in kernel_text.records(lines):
                    if recorded.facility in self._facilities:
                        emit(recorded)
            return
        fd = self._open(path)
        try:
            while (record := _next_record(fd)) is not None:
                line = kernel_text.parse(record.decode(errors="replace"))
                if line is not None and line.facility in self._facilities:
                    emit(line)
        finally:
            os.close(fd)

    def _read(self, fd: int, emit: Emit, boot: str) -> bool:
        """Reads up to _BATCH records; were they all?"""
        for _ in range(_BATCH):
            record = _next_record(fd)
            if record is None:
                self._clock.live = True  # what comes next is read as soon as it is written
                return True
            seq = _seq(record)
            if seq is None:
                continue
            before = self._position[1] if self._position is not None else seq - 1
            if seq <= before:
                continue  # a former run has emitted it
            # The kernel skips what it overwrote, so a gap in the sequence is the number of lost records. A gap at the
            # start of another boot's log is what its ring no longer has.
            if seq > before + 1:
                emit(Overrun(lost=seq - before - 1, mono_s=self._host.mono_s()))
            line = kernel_text.parse(record.decode(errors="replace"))
            if line is not None:
                line = replace(line, mono_s=self._clock.monotonic(line.mono_s))
                if line.facility in self._facilities:
                    emit(line)
            self._position = (boot, seq)
        return False


class KernelClock:
    """Converts the kernel log's clock to the monotonic one.

    They start together and drift apart by seconds in a month (the log's is not slewed by NTP): a fresh line must not
    look minutes old. A record that is read as soon as it was written shows the difference. The smallest one seen is
    used, since a late reader only makes it larger, and it creeps upward to follow the drift.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._offset_s: float | None = None
        # No backlog: records come as they are written.
        self.live = False

    def monotonic(self, stamp_s: float) -> float:
        """The monotonic time of a record's stamp; never in the future."""
        now_s = self._host.mono_s()
        offset_s = now_s - stamp_s
        if self.live:
            if self._offset_s is None or offset_s < self._offset_s:
                self._offset_s = offset_s
            elif offset_s - self._offset_s < _DRIFT_S:
                self._offset_s += (offset_s - self._offset_s) * _CREEP
        return min(now_s, stamp_s + (self._offset_s or 0.0))


def _skip_to_end(fd: int) -> int | None:
    """Reads to the end of the log; the last sequence number, where a restart can go on. None: no record.

    Seeking to the end would not show the number: a restart before the next line could not know what it missed. All at
    once (some ten milliseconds), so that no other part of the agent runs before the position is known.
    """
    last: int | None = None
    for _ in range(_MOST_RECORDS):
        record = _next_record(fd)
        if record is None:
            break
        seq = _seq(record)
        last = last if seq is None else seq
    return last


def _next_record(fd: int) -> bytes | None:
    """The next record; None when there is none yet. After an overrun: the oldest that the kernel still has."""
    while True:
        try:
            record = os.read(fd, _RECORD_BYTES)
        except BlockingIOError:
            return None
        except BrokenPipeError:
            continue
        if not record:
            raise OSError("the kernel log ended: the device was closed by its other side")
        return record


def _seq(record: bytes) -> int | None:
    parts = record.split(b",", 2)
    try:
        return int(parts[1])
    except (IndexError, ValueError):
        return None
