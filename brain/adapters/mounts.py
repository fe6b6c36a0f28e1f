"""Which file system of this machine's table (/etc/fstab) lies above a folder, and is not mounted."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TABLE = Path("/etc/fstab")
MOUNTED = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")  # how both files write a space


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mount:
    """One that is there."""

    at: Path
    device: str  # major:minor
    root: Path  # what of the file system is to be seen there


def unmounted_above(folder: Path) -> Path | None:
    """The place of a file system that this folder is to be on, or below which it is, and that is not mounted; None: there is
    none, or nobody can tell.
    """
    try:
        wanted = sorted(_places(TABLE.read_text(encoding="utf-8", errors="surrogateescape")))
        mounts = list(_mounts(MOUNTED.read_text(encoding="utf-8", errors="surrogateescape")))
    except OSError:
        return None
    found = Path(os.path.realpath(folder))
    there = {one.at for one in mounts if not _shows_what_is_there(one, mounts)}
    return next((at for at in wanted if found.is_relative_to(at) and at not in there), None)


def _places(text: str) -> Iterator[Path]:
    for line in text.splitlines():
        fields = line.split()
        if (
            len(fields) > 2
            and not fields[0].startswith("#")
            and fields[1].startswith("/")
            and fields[1] != "/"
        ):
            yield Path(os.path.realpath(_plain(fields[1])))


def _mounts(text: str) -> Iterator[_Mount]:
    for line in text.splitlines():
        fields = line.split()
        if len(fields) > 4:
            yield _Mount(at=Path(_plain(fields[4])), device=fields[2], root=Path(_plain(fields[3])))


def _shows_what_is_there(one: _Mount, mounts: list[_Mount]) -> bool:
    """Is it only the folder itself, mounted once more at its own place? So a unit's ReadWritePaths= are."""
    above = [other for other in mounts if other.at != one.at and one.at.is_relative_to(other.at)]
    if not above:
        return False
    nearest = max(
        above, key=lambda other: len(other.at.parts)
    )  # the newest of several at one place comes last
    below = one.at.relative_to(nearest.at)
    return one.device == nearest.device and one.root == nearest.root / below


def _plain(field: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), field)
