"""Whether systemd starts a unit when this machine starts, by the links that `systemctl enable` and `mask` make.

Files are read, and not the bus asked: that may be forbidden to whoever asks, and the answer is about the next boot. Source:
systemctl(1), is-enabled; systemd.unit(5), "Unit File Load Path".
"""

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
    files = [root / folder / unit for folder in _FOLDERS]
    file = next((one for one in files if one.is_symlink() or one.exists()), None)
    if file is None or not (root / _RUNS).is_dir():
        return UnitStart.NONE
    if file.is_symlink() and file.readlink() == Path("/dev/null"):
        return UnitStart.MASKED
    links = (
        wanting / unit
        for folder in _FOLDERS
        if folder != _RUNS
        for kind in _LINKS
        for wanting in (root / folder).glob(f"*.{kind}")
    )
    return UnitStart.STARTS if any(one.is_symlink() or one.exists() for one in links) else UnitStart.WAITS
