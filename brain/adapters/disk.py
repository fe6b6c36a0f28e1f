"""Tries the brain's own disk: can a small file be written, brought to the disk, and read back from there?

It blocks for as long as the disk does: call it in a thread that can be abandoned (brain/leader/disk_watch.py does).
"""

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from agent.shared import files

NAME = "disk.trial"
_SIZE = 4096  # bytes
# Of a data folder, and of a store of NATS elsewhere, without which no brain starts
_FOLDERS = ("cell", "nats", "nats/keys", "keys", "js")
_DENIED = (errno.EACCES, errno.EPERM)
_FULL = (errno.ENOSPC, errno.EDQUOT)


class DiskState(StrEnum):
    """How a disk is."""

    WELL = "well"  # it takes what is written, and gives it back
    READ_ONLY = "read_only"  # it is mounted so that it can only be read
    DENIED = "denied"  # it is another user's, or its mode lets nobody write
    FULL = "full"  # no space, no inode, or no quota is left
    FAILING = "failing"  # it refuses for another reason, or gives back something else
    HANGING = "hanging"  # a write does not return


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskTrial:
    """What one trial has found."""

    state: DiskState
    # In the system's words; empty: it is well
    why: str = ""
    # Can files on it be read?
    readable: bool = True
    # Bytes left; None: it does not say
    free_bytes: int | None = None


def is_full(error: BaseException) -> bool:
    """Does it say that no space, no inode, or no quota is left?"""
    return isinstance(error, OSError) and error.errno in _FULL


def try_disk(folder: Path) -> DiskTrial:
    """Writes a file in this folder and reads it back. A folder in which no file can be replaced is left as it was."""
    path, body = folder / NAME, os.urandom(_SIZE)
    refused: OSError | None = None
    try:
        files.write(path, body, sync=True, mode=0o600)
    except OSError as error:
        refused = error
        with contextlib.suppress(OSError):
            path.with_name(path.name + ".part").unlink(missing_ok=True)
    try:
        found = _from_disk(path)
    except FileNotFoundError:
        found = None
    except OSError as error:
        state = DiskState.DENIED if error.errno in _DENIED else DiskState.FAILING
        return DiskTrial(state=state, why=_said(error), readable=False)
    if refused is not None:
        return DiskTrial(state=_of(refused), why=_said(refused), free_bytes=_free(folder))
    if found != body:
        return DiskTrial(
            state=DiskState.FAILING, why="what was written is not what is read back", readable=False
        )
    return DiskTrial(state=DiskState.WELL, free_bytes=_free(folder))


def try_folder(folder: Path, error: BaseException | None) -> DiskTrial:
    """As `try_disk`; besides what an error says that was met below this folder, and whether a file in it is another user's. WELL,
    too, where there is no such folder to write in.
    """
    met = error.__cause__ if error is not None and error.__cause__ is not None else error
    state = _of(met) if isinstance(met, OSError) else DiskState.FAILING
    if state is not DiskState.FULL and _is_missing(folder):
        return DiskTrial(state=DiskState.WELL)
    if isinstance(met, OSError) and state is not DiskState.FAILING and _is_about(met, folder):
        return DiskTrial(state=state, why=_met(met))
    found = try_disk(folder)
    if found.state is DiskState.WELL and (theirs := _not_ours(folder)):
        return DiskTrial(state=DiskState.DENIED, why=f"{theirs}: {os.strerror(errno.EACCES)}")
    return found


def _is_about(met: OSError, folder: Path) -> bool:
    """Not where it names a file elsewhere, a program that may not be run, say."""
    named = Path(os.fsdecode(met.filename)) if isinstance(met.filename, str | bytes) else folder
    return named.is_relative_to(folder) or folder.is_relative_to(named)


def _is_missing(folder: Path) -> bool:
    """Whether there is certainly no such folder. One below another user's, on a disk that fails, or on a file server that has
    forgotten it (ESTALE) is not missing.
    """
    try:
        return not stat.S_ISDIR(folder.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


def _not_ours(folder: Path) -> str:
    """A file of the brain's in this folder, or a folder, that it cannot read and write; empty: there is none. What else lies
    there (`lost+found` of a disk of its own) may be anybody's.
    """
    files_ = [found for found in folder.glob("*") if found.is_file()]
    below = [
        found for name in _FOLDERS for found in (folder / name, *folder.glob(f"{name}/*")) if found.exists()
    ]
    for found in sorted((*files_, *below)):
        needed = os.R_OK | os.W_OK | (os.X_OK if found.is_dir() else 0)
        if not os.access(found, needed, effective_ids=True):
            return str(found)
    return ""


def _met(error: OSError) -> str:
    return f"{error.filename}: {_said(error)}" if error.filename else _said(error)


def _of(error: OSError) -> DiskState:
    if error.errno == errno.EROFS:
        return DiskState.READ_ONLY
    if error.errno in _DENIED:
        return DiskState.DENIED
    return DiskState.FULL if is_full(error) else DiskState.FAILING


def _said(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _from_disk(path: Path) -> bytes:
    """Reads it past what the kernel still has of it in memory."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        return os.read(handle, 2 * _SIZE)
    finally:
        os.close(handle)


def _free(folder: Path) -> int | None:
    try:
        space = os.statvfs(folder)
    except OSError:
        return None
    return space.f_bavail * space.f_frsize
