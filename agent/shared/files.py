"""Small files that a process keeps over its restarts: replaced atomically, read without trust."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

import orjson

MOST_READ = 64 * 1024**2  # bytes: the registry of 10,000 nodes has 2 MiB


def keep_private() -> None:
    """No file that this process or a child of it makes from now on can be read by others (0640 at most, folders 0750),
    whatever the umask was: the data folder holds keys, command lines and what job logs said.
    """
    os.umask(os.umask(0o077) | 0o027)


def belongs_as(handle: int, folder: Path) -> None:
    """As root: gives an open file to whom the folder belongs. A command of root's must not lock a service out of its files.

    Only a file that has no other name: through one that somebody has laid here root would give away what it stands for.
    """
    if os.geteuid() == 0 and os.fstat(handle).st_nlink == 1:
        owner = folder.stat()
        os.fchown(handle, owner.st_uid, owner.st_gid)


def read(path: Path) -> bytes:
    """Returns what a small file holds. OSError: it cannot be read, is longer than MOST_READ, or no file: who can lay a pipe or
    a hole there would make its reader wait for ever, or take all memory.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as source:
        found = os.fstat(source.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        content = source.read(MOST_READ + 1) if found.st_size <= MOST_READ else b""
        if found.st_size > MOST_READ or len(content) > MOST_READ:
            raise OSError(errno.EFBIG, f"it is longer than {MOST_READ} bytes", str(path))
        return content


def write(
    path: Path,
    data: bytes,
    *,
    sync: bool = False,
    mode: int = 0o666,
    whatever_umask: bool = False,
    like: Path | None = None,
) -> None:
    """Replaces a file atomically: a reader sees the old content or the new one, never a part of it. It is written to a file that
    is made for it: whatever lies there under that name, a link too, is removed and not followed.

    `sync`: the new content is on the disk when this returns, so it survives a power failure. `mode`: as of `os.open`; with
    `whatever_umask` exactly this, for what others are to read. `like`: a folder to whose owner it belongs when root writes it.
    OSError, which names the file: it is as it was before.
    """
    try:
        _replace(path, data, sync=sync, mode=mode, whatever_umask=whatever_umask, like=like)
    except OSError as error:
        # A full disk is met while writing, and that does not know where; and nobody finds a file that was written beside it.
        if error.filename is None or str(error.filename) == f"{path}.part":
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _replace(
    path: Path, data: bytes, *, sync: bool, mode: int, whatever_umask: bool, like: Path | None
) -> None:
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb") as sink:
        if whatever_umask:
            os.fchmod(sink.fileno(), mode)
        if like is not None:
            belongs_as(sink.fileno(), like)
        sink.write(data)
        if sync:
            sink.flush()
            os.fsync(sink.fileno())
    part.replace(path)
    if sync:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_json(path: Path, value: Any, *, sync: bool = False) -> None:
    """Replaces a JSON file; as `write`."""
    write(path, orjson.dumps(value), sync=sync)


def read_json(path: Path) -> Any:
    """Returns the value in a JSON file; None when the file is missing or damaged."""
    try:
        return orjson.loads(read(path))
    except (OSError, ValueError):
        return None
