"""A small file that several processes change: each change takes its lock and replaces it whole; a changed one is read again.

What cannot be read (damage, a passing error of this machine, a disk that hangs) is no change: what was read last counts until it
can be read again.
"""

import fcntl
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from agent.contract.errors import ConfigError
from agent.shared import files
from brain.glance import FileHangs, Glance

T = TypeVar("T")
LOCK_WITHIN_S = (
    10.0  # a change of ours takes milliseconds; whoever holds the lock for longer hangs, or means harm
)
_LOCK_POLL_S = 0.02
AGAIN_S = 1.0  # what could not be read is tried again after this, though nobody has changed it
_Stamp = tuple[int, int, int] | None


class LockedFile(Generic[T]):
    """One file, readable by its owner only. `change` may wait for its lock: in an event loop it belongs into a thread."""

    def __init__(
        self, path: Path, *, parse: Callable[[bytes], T], dump: Callable[[T], bytes], empty: Callable[[], T]
    ) -> None:
        """`parse` raises ConfigError for what it cannot read. `empty`: what a missing file holds."""
        self.path = path
        self._parse = parse
        self._dump = dump
        self._empty = empty
        self._seen: _Stamp = None
        self._value = empty()
        self._was_read = False
        self._trouble = ""
        self._again_s = 0.0  # when it is read though nobody has changed it
        self._glance = Glance(self._look)
        self._taking = threading.Lock()
        self._taken = 0  # how often something was seen

    @property
    def last(self) -> T:
        """What `value` has read last; of a file that was never read: what a missing one holds. Never an error."""
        return self._value

    def value(self) -> T:
        """Returns what the file holds now or, while it cannot be read, what it held last. ConfigError: it was never read."""
        try:
            why = self.trouble()
        except FileHangs:
            if not self._was_read:
                raise
        else:
            if why and not self._was_read:
                raise ConfigError(why)
        return self._value

    def trouble(self) -> str:
        """Looks whether the file has changed, and returns why it cannot be read; empty: it can. FileHangs: its disk hangs."""
        if not self._glance():
            raise FileHangs(self.path)
        return self._trouble

    def _look(self) -> None:
        """Where another thread has seen something since this one began, on a disk that hung, that is newer."""
        before, seen = self._taken, self._seen
        try:
            seen = self._stamp()
            if seen != self._seen or time.monotonic() >= self._again_s:
                value = self._read()
                with self._taking:
                    if self._taken == before:
                        # At once: another thread that asks meanwhile gets what was, not nothing.
                        self._value, self._was_read, self._trouble = value, True, ""
                        self._seen, self._again_s, self._taken = seen, math.inf, before + 1
        except ConfigError as error:
            with self._taking:
                if self._taken == before:
                    self._trouble = str(error)
                    self._seen, self._again_s = seen, time.monotonic() + AGAIN_S
                    self._taken += 1

    def change(self, change: Callable[[T], T]) -> None:
        """Replaces what the file holds. ConfigError: it cannot be read or written; it is as it was."""
        with locked(self.path.with_name(f"{self.path.name}.lock")):
            body = self._dump(change(self._read()))
            try:
                files.write(self.path, body, sync=True, mode=0o600, like=self.path.parent)
            except OSError as error:
                raise ConfigError(f"{self.path}: {error.strerror}") from error
        with self._taking:
            self._taken += 1  # what anybody has begun to read before is what was
        self._look()

    def _stamp(self) -> _Stamp:
        """What is another one after each change; None: there is no file. ConfigError: nobody can tell."""
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}") from error
        return stat.st_ino, stat.st_mtime_ns, stat.st_size

    def _read(self) -> T:
        try:
            return self._parse(files.read(self.path))
        except FileNotFoundError:
            return self._empty()
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}") from error


@contextmanager
def locked(lock: Path) -> Iterator[None]:
    """One process at a time is inside. ConfigError: the lock cannot be opened, or another process does not let it go."""
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise ConfigError(f"{lock}: {error.strerror}") from error
    try:
        files.belongs_as(handle, lock.parent)
        until_s = time.monotonic() + LOCK_WITHIN_S
        while not _taken(handle):
            if time.monotonic() > until_s:
                raise ConfigError(
                    f"{lock}: another process holds it for {LOCK_WITHIN_S:g} s: find it with `fuser`, and end it"
                )
            time.sleep(_LOCK_POLL_S)  # flock has no time limit of its own
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
