"""The brain's data folder: one brain uses it, and files in it that are of no use are moved away."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from agent.contract.errors import ConfigError


def keep_private() -> None:
    """No file that this process or a child of it makes from now on can be read by others (0640 at most, folders 0750),
    whatever the umask was: the data folder holds keys, evidence, and the log itself.
    """
    os.umask(os.umask(0o077) | 0o027)


def move_away(path: Path, why: str) -> Path:
    """Renames a file that cannot be used to `<name>.<why>`; only the newest such file is kept."""
    away = path.with_name(f"{path.name}.{why}")
    path.replace(away)
    return away


@contextlib.contextmanager
def exclusive(data_dir: Path) -> Iterator[None]:
    """Locks the data folder: two brains in one folder would destroy each other's files. ConfigError when it is taken."""
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
