"""One file to which others append: the position in it, and its new lines. It may be moved, truncated or removed; whoever writes
it may mean harm (agent.shared.guarded).
"""

import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from agent.shared import guarded

MAX_LINE_BYTES = 64 * 1024
MAX_MISSED_BYTES = 1024 * 1024  # of what was written while no agent read: the last so many
# Of one file in a poll: what grows faster is read later, not dropped. Lines that are wanted stay in memory until it ends.
_POLL_BYTES = 1024 * 1024
_POLL_LINES = 2000
_CHUNK_BYTES = 64 * 1024
_CLOSE_AFTER_S = 60.0  # an idle file is closed; its position is kept

_log = logging.getLogger(__name__)

Found = tuple[bytes, int]  # a line without its end, and the offset behind it


@dataclass(slots=True, kw_only=True)
class Tail:
    """See the module's docstring."""

    path: str
    shown: str
    job: str
    inode: int = 0
    offset: int = 0
    # The last line, when its end is not there yet.
    partial: bytes = b""
    # The rest of a line that was cut is being skipped.
    overlong: bool = False
    fd: int = -1
    idle_since_s: float = 0.0
    # The position that was handed on last.
    checkpoint: str = ""
    # Why it is not read, as it was logged.
    refused: str = ""

    @property
    def position(self) -> str:
        """Inode and offset up to which whole lines were handed on; what `go_on` takes."""
        return f"{self.inode} {self.offset - len(self.partial)}"

    def skip_to_end(self) -> None:
        """What the file holds now is history."""
        if (info := stat_of(self.path)) is not None:
            self.inode, self.offset = info.st_ino, info.st_size

    def go_on(self, position: str) -> bool:
        """Continues where a former run ended, or at the beginning (empty); True if anything was missed.

        Of much that was missed only the last part is read.
        """
        info = stat_of(self.path)
        inode, _, offset = position.partition(" ")
        if info is None or not (inode + offset).isdigit():
            inode, offset = "", "0"
        if info is None:
            return False
        # Another inode, or shorter than it was: a new file under the old name, all of which was missed.
        known = inode == str(info.st_ino) and int(offset) <= info.st_size
        self.inode, self.offset = info.st_ino, int(offset) if known else 0
        if info.st_size - self.offset > MAX_MISSED_BYTES:
            self.offset, self.overlong = info.st_size - MAX_MISSED_BYTES, True
        return info.st_size > self.offset

    def there(self) -> bool:
        """Is there such a file?"""
        return stat_of(self.path) is not None

    def changed(self, markers: tuple[bytes, ...], now_s: float) -> Iterator[Found]:
        """New lines since the last call."""
        info = stat_of(self.path)
        if self.fd >= 0 and (info is None or info.st_ino != self.inode):  # moved: read the rest of it
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

    def read(self, markers: tuple[bytes, ...]) -> Iterator[Found]:
        """Whole lines of the next part of the file; none at its end."""
        until, lines = self.offset + _POLL_BYTES, 0
        while self.offset < until and lines < _POLL_LINES:
            try:
                if self.fd < 0:
                    self.fd = guarded.open_log(self.path)
                data = os.pread(self.fd, _CHUNK_BYTES, self.offset)
                if data and not data.strip(b"\0") and self._skip_hole():
                    continue
            except OSError as error:  # no permission, or gone meanwhile; the next poll tries again
                self._refuse(error)
                self.close()
                return
            if not data:
                return
            for found in self._lines(data, markers):
                lines += 1
                yield found

    def rest(self, markers: tuple[bytes, ...]) -> Iterator[Found]:
        """The last line, when its end will not come any more."""
        last, self.partial = self.partial, b""
        if last and not self.overlong and _wanted(last, markers):
            yield last, self.offset

    def close(self) -> None:
        """Closes the file; the position stays."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _skip_hole(self) -> bool:
        """Zeros may be the beginning of a hole of many terabytes, which costs its writer nothing and would cost us hours.
        False: it is none.
        """
        try:
            data_at = os.lseek(self.fd, self.offset, os.SEEK_DATA)
        except OSError:  # ENXIO: nothing but a hole
            data_at = os.fstat(self.fd).st_size
        if data_at <= self.offset:
            return False
        self.offset, self.partial, self.overlong = data_at, b"", False
        return True

    def _refuse(self, error: OSError) -> None:
        """Logs once why a file is not read, if it is its name that forbids it."""
        if isinstance(error, PermissionError) and str(error.strerror) != self.refused:
            self.refused = str(error.strerror)
            _log.warning("%r is not read: %s", self.path, self.refused)

    def _lines(self, data: bytes, markers: tuple[bytes, ...]) -> Iterator[Found]:
        self.offset += len(data)
        if self.overlong:
            _, end, data = data.partition(b"\n")
            if not end:
                return
            self.overlong = False
        data = self.partial + data
        behind = self.offset - len(data)
        whole, end, self.partial = data.rpartition(b"\n")
        if end and _wanted(whole, markers):
            for line in whole.split(b"\n"):
                behind += len(line) + 1
                if _wanted(line, markers):
                    yield line[:MAX_LINE_BYTES], behind
        if len(self.partial) > MAX_LINE_BYTES:
            cut, self.partial, self.overlong = self.partial[:MAX_LINE_BYTES], b"", True
            if _wanted(cut, markers):
                yield cut, self.offset


def stat_of(path: str) -> os.stat_result | None:
    """The stat of a regular file; None when there is none."""
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info if stat.S_ISREG(info.st_mode) else None


def _wanted(data: bytes, markers: tuple[bytes, ...]) -> bool:
    return not markers or any(marker in data for marker in markers)
