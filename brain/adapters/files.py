"""Files that are there complete or not at all."""

import os
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces `path` by `data`, also when the power goes at this moment. OSError when the disk says no."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with part.open("wb") as sink:
        sink.write(data)
        sink.flush()
        os.fsync(sink.fileno())
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def set_aside(path: Path, why: str) -> Path:
    """Renames a file that cannot be used to `<name>.<why>`; only the newest such file is kept."""
    aside = path.with_name(f"{path.name}.{why}")
    path.replace(aside)
    return aside
