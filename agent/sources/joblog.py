"""Tails the log files of jobs. No inotify: file servers, where they often lie, do not tell of changes."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from agent.collectors.readings import JobLine, Mark, Reading
from agent.host import Host
from agent.sources.base import Emit
from agent.sources.poll import Poller
from agent.sources.tail import Tail, stat_of

MAX_FILES = 2000  # looked at in each poll: those written to last; of all others only the position is kept
_RESCAN_S = 2.0  # how often the globs are looked up again
_FRESH_S = 10.0  # what was written so shortly before it was read is as good as new


class JobLogSource:
    """Emits JobLine, and Mark. Files that are there at the first start are followed from their end, later ones from byte 0.

    `marks`: where a former run with the same globs ended (its Marks): what was written since follows, at most the last
    MAX_MISSED_BYTES of a file, as old as the file's last change.

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
        marks: Mapping[str, str] | None = None,
    ) -> None:
        self._host = host
        self._globs = globs
        self._job = re.compile(job_pattern)
        self._markers = tuple(marker.encode() for marker in markers)
        self._marks = dict(marks or {})
        self._key = f"{self.name} "
        self._aged: dict[str, float] = {}  # path -> how old what was missed in it is, s
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
                for line, _ in tail.read(self._markers):
                    emit(self._reading(tail, line))
            for line, _ in tail.rest(self._markers):
                emit(self._reading(tail, line))
            tail.close()

    def _poll(self) -> list[Reading]:
        now_s = self._host.mono_s()
        readings: list[Reading] = []
        if self._files is None or now_s >= self._rescan_at_s:
            self._rescan_at_s = now_s + _RESCAN_S
            readings += self._rescan()
        for tail in self._followed:
            for line, behind in tail.changed(self._markers, now_s):
                tail.told = f"{tail.inode} {behind}"
                readings += (self._mark(tail.path, tail.told), self._reading(tail, line))
            self._aged.pop(tail.path, None)
            if tail.position != tail.told:
                tail.told = tail.position
                readings.append(self._mark(tail.path, tail.told))
        return readings

    def _rescan(self) -> list[Reading]:
        """Marks of what has come and gone."""
        at_start = self._files is None
        files = self._files or {}
        gone = [path for path in files if not files[path].there()]
        for path in self._found():
            if path not in files:
                files[path] = Tail(path=path, shown=self._shown(path), job=self._job_of(path))
                if at_start:
                    self._begin(files[path])
        for path in gone:
            files.pop(path).close()
        self._files = files
        self._followed = list(files.values())
        if len(files) > MAX_FILES:
            self._followed = sorted(self._followed, key=_mtime)[-MAX_FILES:]
        marks = [self._mark(path, "") for path in gone]
        if at_start:
            marks += [Mark(key=key, value="") for key in self._marks if not self._known(key, files)]
            marks += [self._mark(tail.path, tail.position) for tail in files.values()]
            marks.append(Mark(key=self._key, value=" ".join(self._globs)))
            self._marks.clear()
        return list(marks)

    def _begin(self, tail: Tail) -> None:
        """Where to begin in a file that is there at the start."""
        if self._marks.get(self._key) != " ".join(self._globs):
            tail.skip_to_end()  # nobody has followed these: what they hold is history
        elif tail.go_on(self._marks.get(self._key + tail.path, "")):
            age_s = self._host.wall().timestamp() - _mtime(tail)
            self._aged[tail.path] = age_s if age_s > _FRESH_S else 0.0

    def _known(self, key: str, files: Mapping[str, Tail]) -> bool:
        return key == self._key or key.removeprefix(self._key) in files

    def _mark(self, path: str, position: str) -> Mark:
        return Mark(key=self._key + path, value=position, mono_s=self._host.mono_s())

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
        return JobLine(text=text, file=tail.shown, job=tail.job, mono_s=self._written_s(tail))

    def _written_s(self, tail: Tail) -> float:
        """When its new lines were written, at the latest, on the monotonic clock."""
        return self._host.mono_s() - self._aged.get(tail.path, 0.0)


def _mtime(tail: Tail) -> float:
    info = stat_of(tail.path)
    return info.st_mtime if info is not None else 0.0
