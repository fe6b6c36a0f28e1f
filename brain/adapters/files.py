"""Files that are there complete or not at all; and a folder that one brain uses."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from agent.contract.errors import ConfigError


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


@contextlib.contextmanager
def only_one(data_dir: Path) -> Iterator[None]:
    """Two brains with one folder would destroy each other's files."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        lock = (data_dir / "lock").open("w")
    except OSError as error:
        raise ConfigError(
            f"data_dir {data_dir}: {error.strerror}: give a folder that gpuward may write"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(f"data_dir {data_dir} is in use by another brain") from None
        yield
