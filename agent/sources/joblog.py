"""Tails the log files of jobs. No inotify: file servers, where they often lie, do not tell of changes."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from agent.collectors.readings import JobLine, Reading
from agent.host import Host
from agent.sources.base import Emit
from agent.sources.poll import Poller

MAX_LINE_BYTES = 64 * 1024
MAX_FILES = 2000  # looked at in each poll: those written to last; of all others only the position is kept
_POLL_BYTES = 1024 * 1024  # of one file at a poll: a file that grows faster is read later, not dropped
_RESCAN_S = 2.0  # how often the globs are looked up again
_CLOSE_AFTER_S = 60.0  # an idle file is closed; its position is kept


class JobLogSource:
    """Emits JobLine. Files that are there at start are followed from their end, later ones from byte 0.

    `globs` are absolute patterns. `job_pattern` is a regular expression on the file's path whose first group
    (or whole match) is the job id. Where `markers` are given, only lines that hold one of them are emitted:
    a job may write megabytes a second of which nobody here wants to know.
    """

    name: ClassVar[str] = "joblog"
    needs: ClassVar[str] = "read access to the job log files that the config names"

    def __init__(
        self,
        host: Host,
        *,
        globs: tuple[str, ...],
        job_pattern: str = r"([0-9]+)[^/]*$",
        poll_s: float = 0.5,
        markers: tuple[str, ...] = (),
        hang_s: float = 30.0,
    ) -> None:
        self._host = host
        self._globs = globs
        self._job = re.compile(job_pattern)
        self._markers = tuple(marker.encode() for marker in markers)
        self._files: dict[str, Tail] | None = None
        self._followed: list[Tail] = []
        self._rescan_at_s = 0.0
        self._poller = Poller(self._poll, what=self.name, period_s=poll_s, hang_s=hang_s)

    async def run(self, emit: Emit) -> None:
        """Follow the files until cancelled."""
        await self._poller.run(emit)

    async def once(self, emit: Emit) -> None:
        """Every line of the files that there are now."""
        for path in self._found():
            tail = Tail(path=path, shown=self._shown(path), job=self._job_of(path))
            at = -1
            while at != tail.offset:
                at = tail.offset
                for line in tail.read(self._markers):
                    emit(self._reading(tail, line))
            for line in tail.rest(self._markers):
                emit(self._reading(tail, line))
            tail.close()

    def _poll(self) -> list[Reading]:
        now_s = self._host.mono_s()
        if self._files is None or now_s >= self._rescan_at_s:
            self._rescan_at_s = now_s + _RESCAN_S
            self._rescan()
        readings: list[Reading] = []
        for tail in self._followed:
            for line in tail.changed(self._markers, now_s):
                readings.append(self._reading(tail, line))
        return readings

    def _rescan(self) -> None:
        at_start = self._files is None
        files = self._files or {}
        found = self._found()
        for path in found:
            if path not in files:
                files[path] = Tail(path=path, shown=self._shown(path), job=self._job_of(path))
                if at_start:
                    files[path].skip_to_end()
        for path in [path for path in files if not files[path].there()]:
            files.pop(path).close()
        self._files = files
        self._followed = list(files.values())
        if len(files) > MAX_FILES:
            self._followed = sorted(self._followed, key=_mtime)[-MAX_FILES:]

    def _found(self) -> list[str]:
        """Paths in a fixed order, without repeats."""
        found: dict[str, None] = {}
        for pattern in self._globs:
            found.update(
                dict.fromkeys(sorted(str(path) for path in self._host.root.glob(pattern.lstrip("/"))))
            )
        return list(found)

    def _shown(self, path: str) -> str:
        return path if self._host.live else "/" + str(Path(path).relative_to(self._host.root))

    def _job_of(self, path: str) -> str:
        match = self._job.search(self._shown(path))
        return (match[match.re.groups and 1] or "") if match else ""

    def _reading(self, tail: "Tail", line: bytes) -> Reading:
        text = line.decode(errors="replace").rstrip("\r")
        return JobLine(text=text, file=tail.shown, job=tail.job, mono_s=self._host.mono_s())


@dataclass(slots=True, kw_only=True)
class Tail:
    """Where we are in one file."""

    path: str
    shown: str
    job: str
    inode: int = 0
    offset: int = 0
    partial: bytes = b""  # a last line without its end
    overlong: bool = False  # the rest of a line that was cut is being passed over
    fd: int = -1
    idle_since_s: float = 0.0

    def skip_to_end(self) -> None:
        """What the file holds now is history."""
        if (info := _stat(self.path)) is not None:
            self.inode, self.offset = info.st_ino, info.st_size

    def there(self) -> bool:
        return _stat(self.path) is not None

    def changed(self, markers: tuple[bytes, ...], now_s: float) -> Iterator[bytes]:
        """New lines since the last call."""
        info = _stat(self.path)
        if self.fd >= 0 and (
            info is None or info.st_ino != self.inode
        ):  # moved away: read what is left in it
            yield from self.read(markers)
            yield from self.rest(markers)
            self.close()
        if info is None:
            return
        if info.st_ino != self.inode or info.st_size < self.offset:
            self.close()
            self.inode, self.offset, self.partial, self.overlong = info.st_ino, 0, b"", False
        if info.st_size > self.offset:
            self.idle_since_s = now_s
            yield from self.read(markers)
        elif self.fd >= 0 and now_s - self.idle_since_s > _CLOSE_AFTER_S:
            yield from self.rest(markers)
            self.close()

    def read(self, markers: tuple[bytes, ...]) -> Iterator[bytes]:
        """Whole lines of the next piece of the file; none at its end."""
        try:
            if self.fd < 0:
                self.fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            data = os.pread(self.fd, _POLL_BYTES, self.offset)
        except OSError:  # no right to read it, or gone meanwhile; looked at again at the next poll
            self.close()
            return
        self.offset += len(data)
        yield from self._lines(data, markers)

    def rest(self, markers: tuple[bytes, ...]) -> Iterator[bytes]:
        """The last line, when nothing will end it any more."""
        last, self.partial = self.partial, b""
        if last and not self.overlong and _wanted(last, markers):
            yield last

    def close(self) -> None:
        """Closes the file; the position stays."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _lines(self, data: bytes, markers: tuple[bytes, ...]) -> Iterator[bytes]:
        if self.overlong:
            _, end, data = data.partition(b"\n")
            if not end:
                return
            self.overlong = False
        data = self.partial + data
        whole, end, self.partial = data.rpartition(b"\n")
        if end and _wanted(whole, markers):
            for line in whole.split(b"\n"):
                if _wanted(line, markers):
                    yield line[:MAX_LINE_BYTES]
        if len(self.partial) > MAX_LINE_BYTES:
            cut, self.partial, self.overlong = self.partial[:MAX_LINE_BYTES], b"", True
            if _wanted(cut, markers):
                yield cut


def _wanted(data: bytes, markers: tuple[bytes, ...]) -> bool:
    return not markers or any(marker in data for marker in markers)


def _stat(path: str) -> os.stat_result | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info if stat.S_ISREG(info.st_mode) else None


def _mtime(tail: Tail) -> float:
    info = _stat(tail.path)
    return info.st_mtime if info is not None else 0.0
