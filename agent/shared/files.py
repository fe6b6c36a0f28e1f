"""Small files that a process keeps over its restarts: replaced atomically, read without trust."""

import os
from pathlib import Path
from typing import Any

import orjson


def keep_private() -> None:
    """No file that this process or a child of it makes from now on can be read by others (0640 at most, folders 0750),
    whatever the umask was: the data folder holds keys, command lines and what job logs said.
    """
    os.umask(os.umask(0o077) | 0o027)


def belongs_as(handle: int, folder: Path) -> None:
    """As root: gives an open file to whom the folder belongs. A command of root's must not lock a service out of its files."""
    if os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(handle, owner.st_uid, owner.st_gid)


def write(
    path: Path,
    data: bytes,
    *,
    sync: bool = False,
    mode: int = 0o666,
    whatever_umask: bool = False,
    like: Path | None = None,
) -> None:
    """Replaces a file atomically: a reader sees the old content or the new one, never a part of it.

    `sync`: the new content is on the disk when this returns, so it survives a power failure. `mode`: as of `os.open`; with
    `whatever_umask` exactly this, for what others are to read. `like`: a folder to whose owner it belongs when root writes it.
    OSError: the file is as it was before.
    """
    part = path.with_name(path.name + ".part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as sink:
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
        return orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
