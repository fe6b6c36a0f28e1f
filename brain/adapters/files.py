"""The brain's data folder: one brain uses it, and files in it that are of no use are moved away."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from agent.contract.errors import ConfigError

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MOST = 1000  # characters of a lock's content


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


def runtime_folder() -> Path | None:
    """The folder in memory that outlives this process, but not its machine: systemd's RuntimeDirectory=, or what the Kubernetes
    manifests mount. None: none is given.
    """
    first = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    return Path(first) if first else None


@contextlib.contextmanager
def exclusive(data_dir: Path, run: str = "") -> Iterator[str]:
    """Locks the data folder: two brains in one folder would destroy each other's files. ConfigError when it is taken.

    `run` names this run of the brain, and is left there. Yields the name of the run that had the folder before, and has
    ended: the lock is ours. Empty where that is not certain: none is known, or the folder is a copy, or of another boot.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        lock = (data_dir / "lock").open("a+", encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(
            f"data_dir {data_dir}: {error.strerror}: give a folder that gpuward may write"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(f"data_dir {data_dir} is in use by another brain") from None
        yield _passed_on(lock, run)


def _passed_on(lock: TextIO, run: str) -> str:
    """Leaves a run's name in a lock that is ours; returns the one that was left there by this very lock."""
    try:
        boot = _BOOT_ID.read_text(encoding="ascii").strip()
        status = os.fstat(lock.fileno())
        here = f"{boot} {status.st_dev}:{status.st_ino}"
        lock.seek(0)
        before, _, there = lock.read(_MOST).strip().partition("\n")
        lock.truncate(0)
        lock.write(f"{run}\n{here}\n")
        lock.flush()
    except OSError:  # a full disk: nothing is known, then
        return ""
    return before if there == here else ""
