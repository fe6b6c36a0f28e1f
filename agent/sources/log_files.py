"""Follows log files. No inotify: file servers, where they often are, do not report changes. Not a source; a part of some."""

import re
from collections.abc import Mapping
from pathlib import Path

from agent.collectors.samples import Checkpoint, JobLine, Sample
from agent.host import Host
from agent.shared.printable import printable
from agent.sources.base import Emit
from agent.sources.poll import Poller
from agent.sources.tail import Tail, stat_of

MAX_FILES = 2000  # looked at in each poll: those written to last; of all others only the position is kept
_MOST_SAMPLES = 20_000  # of one poll, which are in memory together: more come in the next one
_RESCAN_S = 2.0  # how often the globs are looked up again
_FRESH_S = 10.0  # what was written so shortly before it was read counts as new


class LogFiles:
    """Emits a sample for each line, and Checkpoint. Files that exist at the first start are followed from their end, later
    ones from byte 0.

    `checkpoints`: where a former run with the same globs ended. What was written since follows, at most the last
    MAX_MISSED_BYTES of a file, as old as the file's last change.

    `globs` are absolute patterns. `job_pattern` is a regular expression on the file's path whose first group (or whole
    match) is the job id. Where `markers` are given, only lines that contain one of them are emitted: a job may write
    megabytes a second that are of no interest here.
    """

    def __init__(
        self,
        host: Host,
        *,
        name: str,
        globs: tuple[str, ...],
        job_pattern: str = "",
        poll_s: float = 0.5,
        markers: tuple[str, ...] = (),
        hang_s: float = 30.0,
        checkpoints: Mapping[str, str] | None = None,
    ) -> None:
        self._host = host
        self._globs = globs
        self._job = re.compile(job_pattern)
        self._markers = tuple(marker.encode() for marker in markers)
        self._checkpoints = dict(checkpoints or {})
        self._prefix = f"{name} "
        # Path → how old the lines are that were missed in it, seconds.
        self._aged: dict[str, float] = {}
        self._files: dict[str, Tail] | None = None
        self._followed: list[Tail] = []
        # The path with which the next poll begins; empty: the first.
        self._next = ""
        self._rescan_at_s = 0.0
        self._poller = Poller(self._poll, what=name, period_s=poll_s, hang_s=hang_s, forget=self._forget)

    async def run(self, emit: Emit) -> None:
        """Follow the files until cancelled."""
        await self._poller.run(emit)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self._poller.look(emit)

    async def once(self, emit: Emit) -> None:
        """Every line of the files that there are now."""
        for path in self._found():
            tail = Tail(path=path, shown=self._shown(path), job=self._job_of(path))
            at = -1
            while at != tail.offset:
                at = tail.offset
                for line, _ in tail.read(self._markers):
                    emit(self._sample(tail, line))
            for line, _ in tail.rest(self._markers):
                emit(self._sample(tail, line))
            tail.close()

    def _forget(self) -> None:
        self._rescan_at_s = 0.0

    def _poll(self) -> list[Sample]:
        now_s = self._host.mono_s()
        samples: list[Sample] = []
        if self._files is None or now_s >= self._rescan_at_s:
            self._rescan_at_s = now_s + _RESCAN_S
            samples += self._rescan()
        for tail in self._in_turn():
            if len(samples) > _MOST_SAMPLES:
                self._next = tail.path  # it and the rest come first in the next poll
                break
            for line, behind in tail.changed(self._markers, now_s):
                tail.checkpoint = f"{tail.inode} {behind}"
                samples += (self._checkpoint(tail.path, tail.checkpoint), self._sample(tail, line))
            self._aged.pop(tail.path, None)
            if tail.position != tail.checkpoint:
                tail.checkpoint = tail.position
                samples.append(self._checkpoint(tail.path, tail.checkpoint))
        return samples

    def _in_turn(self) -> list[Tail]:
        """Those that are followed, from the one on that the last poll did not come to."""
        at = next((number for number, tail in enumerate(self._followed) if tail.path == self._next), 0)
        self._next = ""
        return [*self._followed[at:], *self._followed[:at]]

    def _rescan(self) -> list[Sample]:
        """Looks for files that have come and gone; their checkpoints."""
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
        found = [self._checkpoint(path, "") for path in gone]
        if at_start:
            known = {self._prefix, *map(self._key, files)}
            found += [Checkpoint(key=key, value="") for key in self._checkpoints if key not in known]
            found += [self._checkpoint(tail.path, tail.position) for tail in files.values()]
            found.append(Checkpoint(key=self._prefix, value=" ".join(self._globs)))
            self._checkpoints.clear()
        return list(found)

    def _begin(self, tail: Tail) -> None:
        """Where to begin in a file that exists at the start."""
        if self._checkpoints.get(self._prefix) != " ".join(self._globs):
            tail.skip_to_end()  # no former run has followed these: what they hold is history
        elif tail.go_on(self._checkpoints.get(self._key(tail.path), "")):
            age_s = self._host.wall().timestamp() - _mtime(tail)
            self._aged[tail.path] = age_s if age_s > _FRESH_S else 0.0

    def _key(self, path: str) -> str:
        return self._prefix + printable(path)

    def _checkpoint(self, path: str, position: str) -> Checkpoint:
        return Checkpoint(key=self._key(path), value=position, mono_s=self._host.mono_s())

    def _found(self) -> list[str]:
        """Paths in a fixed order, without repeats."""
        found: dict[str, None] = {}
        for pattern in self._globs:
            found.update(
                dict.fromkeys(sorted(str(path) for path in self._host.root.glob(pattern.lstrip("/"))))
            )
        return list(found)

    def _shown(self, path: str) -> str:
        return printable(path if self._host.live else "/" + str(Path(path).relative_to(self._host.root)))

    def _job_of(self, path: str) -> str:
        match = self._job.search(self._shown(path))
        return (match[match.re.groups and 1] or "") if match else ""

    def _sample(self, tail: Tail, line: bytes) -> Sample:
        text = line.decode(errors="replace").rstrip("\r")
        return JobLine(text=text, file=tail.shown, job=tail.job, mono_s=self._written_s(tail))

    def _written_s(self, tail: Tail) -> float:
        """When its new lines were written, at the latest, on the monotonic clock."""
        return self._host.mono_s() - self._aged.get(tail.path, 0.0)


def _mtime(tail: Tail) -> float:
    info = stat_of(tail.path)
    return info.st_mtime if info is not None else 0.0
