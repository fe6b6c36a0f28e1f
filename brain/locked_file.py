"""A small file that several processes change: each change takes its lock and replaces it whole; a changed one is read again."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from agent.contract.errors import ConfigError
from agent.shared import files

T = TypeVar("T")
LOCK_WITHIN_S = (
    10.0  # a change of ours takes milliseconds; whoever holds the lock for longer hangs, or means harm
)
_LOCK_POLL_S = 0.02


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
        self._seen: tuple[int, int, int] | None = None
        self._value = empty()

    @property
    def last(self) -> T:
        """What `value` has read last. Never an error."""
        return self._value

    def value(self) -> T:
        """Returns what the file holds now. ConfigError: it cannot be read; then it holds nothing until it changes again."""
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            self._seen, self._value = None, self._empty()
            return self._value
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}") from error
        seen = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if seen != self._seen:
            value = self._empty()
            try:
                value = self._read()
            finally:  # at once: another thread that asks meanwhile gets what was, not nothing
                self._seen, self._value = seen, value
        return self._value

    def change(self, change: Callable[[T], T]) -> None:
        """Replaces what the file holds. ConfigError: it cannot be read or written; it is as it was."""
        with self._locked():
            body = self._dump(change(self._read()))
            try:
                files.write(self.path, body, sync=True, mode=0o600, like=self.path.parent)
            except OSError as error:
                raise ConfigError(f"{self.path}: {error.strerror}") from error
        self.value()

    def _read(self) -> T:
        try:
            return self._parse(self.path.read_bytes())
        except FileNotFoundError:
            return self._empty()
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_name(self.path.name + ".lock")
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
                time.sleep(_LOCK_POLL_S)
            yield
        finally:
            os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
