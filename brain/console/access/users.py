"""The people of [console.users] and the groups of [console.oidc.groups], as brain.toml names them now: the file is read again
when it changes, for these alone. While its disk hangs they stay as they are.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from agent.contract.errors import ConfigError
from brain import config
from brain.config import BrainConfig
from brain.console_config import GrantConfig
from brain.glance import FileHangs, Glance

_log = logging.getLogger(__name__)
NOTE = "access.people"


class Users:
    """Who may come in, by name or by group. Where the brain was started without a file they stay as they are."""

    def __init__(self, started_with: BrainConfig, note: Callable[[str, str], None]) -> None:
        """`note(kind, text)`: for what people must be able to read later."""
        self._file = started_with.file
        self._note = note
        self._now = started_with.console.users
        self._groups = _groups(started_with)
        self._seen: tuple[int, int, int] | None = None  # the file may have changed since it was read
        self._trouble = ""
        self._glance = Glance(self._read, known=True)
        self._found: BrainConfig | ConfigError | None = None  # that nobody has taken yet

    def now(self) -> Mapping[str, GrantConfig]:
        """Name -> what they may do. A file that cannot be used changes nobody, and is noted once."""
        self._look()
        return self._now

    def groups(self) -> Mapping[str, GrantConfig]:
        """Group at the identity provider -> what its people may do; as above."""
        self._look()
        return self._groups

    def trouble(self) -> str:
        """Looks whether the file has changed, and returns why it cannot be used; empty: it can. FileHangs: its disk hangs."""
        if not self._look() and self._file is not None:
            raise FileHangs(self._file)
        return self._trouble

    def _look(self) -> bool:
        """False: its disk hangs, and nobody knows whether it has changed."""
        answers = self._file is None or self._glance()
        found, self._found = self._found, None
        if isinstance(found, BrainConfig):
            self._take(found)
            self._trouble = ""
        elif found is not None and self._file is not None:
            why = str(found).splitlines()[0].replace(str(self._file), self._file.name)
            self._trouble = f"{self._file.name} cannot be used: {why}"
            self._note(NOTE, f"people stay as they were, because {self._trouble}")
        return answers

    def _read(self) -> None:
        stamp = _stamp(self._file)
        if self._file is not None and stamp and stamp != self._seen:
            try:
                self._found = config.load(self._file)
            except ConfigError as error:
                self._found = error
            self._seen = stamp

    def _take(self, new: BrainConfig) -> None:
        users, groups = new.console.users, _groups(new)
        changes = [*_changes(self._now, users), *_changes(self._groups, groups, "group ")]
        self._now, self._groups = users, groups
        if changes and self._file is not None:
            self._note(NOTE, f"{self._file.name} was read again: {', '.join(changes)}")


def _groups(found: BrainConfig) -> Mapping[str, GrantConfig]:
    return found.console.oidc.groups if found.console.oidc else {}


def _changes(old: Mapping[str, GrantConfig], new: Mapping[str, GrantConfig], what: str = "") -> Iterator[str]:
    yield from (f"{what}{name} is new" for name in new if name not in old)
    yield from (f"{what}{name} has left" for name in old if name not in new)
    for name in (name for name in new if name in old and new[name] != old[name]):
        same_role = new[name].role is old[name].role
        yield f"{what}{name} has other limits" if same_role else f"{what}{name} is {new[name].role.value}"


def _stamp(file: Path | None) -> tuple[int, int, int] | None:
    """A value that changes with the file; None: it is not there now."""
    try:
        stat = file.stat() if file is not None else None
    except OSError:
        return None
    return (stat.st_ino, stat.st_mtime_ns, stat.st_size) if stat else None
