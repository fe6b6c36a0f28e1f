"""Whether systemd starts a unit when this machine starts, by the links that `systemctl enable` and `mask` make.

Files are read, and not the bus asked: that may be forbidden to whoever asks, and the answer is about the next boot. A folder that
nobody may read to whoever asks counts as empty. Source: systemctl(1), is-enabled; systemd.unit(5), "Unit File Load Path".
"""

import os
from enum import StrEnum
from pathlib import Path

_RUNS = "run/systemd/system"  # is there where systemd is the first process: sd_booted(3); what is in it ends with a boot
_FOLDERS = (
    "etc/systemd/system",
    _RUNS,
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
)
_LINKS = ("wants", "requires", "upholds")


class UnitStart(StrEnum):
    """What becomes of a unit at the next boot."""

    NONE = "none"  # no such unit, or no systemd: something else starts the program
    STARTS = "starts"  # with the machine
    WAITS = "waits"  # until somebody starts it
    MASKED = "masked"  # nobody can start it


def at_boot(unit: str, root: Path = Path("/")) -> UnitStart:
    """What becomes of it, e.g. of gpuward.service."""
    there = [one for folder in _FOLDERS if os.path.lexists(one := root / folder / unit)]
    if not there or not os.path.lexists(root / _RUNS):
        return UnitStart.NONE
    # What lies in _RUNS beside another one, as a mask until the next boot, is gone then.
    if _is_masked(next((one for one in there if one.parent != root / _RUNS), there[0])):
        return UnitStart.MASKED
    links = (
        wanting / unit
        for folder in _FOLDERS
        if folder != _RUNS
        for kind in _LINKS
        for wanting in (root / folder).glob(f"*.{kind}")
    )
    return UnitStart.STARTS if any(map(os.path.lexists, links)) else UnitStart.WAITS


def _is_masked(file: Path) -> bool:
    """A link to /dev/null, or an empty file: systemd.unit(5)."""
    if file.is_symlink():
        return file.readlink() == Path("/dev/null")
    return not file.lstat().st_size
