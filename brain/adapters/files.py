"""The brain's data folder: one brain uses it, and files in it that are of no use are moved away."""

import contextlib
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from agent.contract.errors import ConfigError

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - see runtime_folder
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MOST = 1000  # characters of a lock's content


class FolderTaken(ConfigError):
    """Another brain runs in this folder."""


def keep_private() -> None:
    """No file that this process or a child of it makes from now on can be read by others (0640 at most, folders 0750),
    whatever the umask was: the data folder holds keys, evidence, and the log itself.
    """
    os.umask(os.umask(0o077) | 0o027)


def move_away(path: Path, why: str) -> Path:
    """Renames a file that cannot be used to `<name>.<why>`; only the newest such file is kept."""
    away = path.with_name(f"{path.name}.{why}")
    if away.is_dir() and not away.is_symlink():
        shutil.rmtree(away)
    elif path.is_dir():  # a folder takes no file's place
        away.unlink(missing_ok=True)
    path.replace(away)
    return away


def runtime_folder(data_dir: Path) -> Path | None:
    """The folder in memory that outlives this process, but not its machine: systemd's RuntimeDirectory=, or what the Kubernetes
    manifests mount, else one of this user's own for this data folder, which is made where it is missing, in the machine's shared
    memory. None: there is none.
    """
    first = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    if first:
        return Path(first)
    own = SHARED_MEMORY / f"gpuward-{os.geteuid()}"
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        found = data_dir.stat()
        own.mkdir(mode=0o700, exist_ok=True)
        status = own.lstat()
        # Whoever made the folder before us could have laid anything there.
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            return None
        folder = own / f"{found.st_dev:x}-{found.st_ino:x}"
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return folder


@contextlib.contextmanager
def exclusive(data_dir: Path, run: str = "") -> Iterator[str]:
    """Locks the data folder: two brains in one folder would destroy each other's files. FolderTaken when it is taken;
    ConfigError: it is none, or cannot be written.

    `run` names this run of the brain, and is left there. Yields the name of the run that had the folder before, and has
    ended: the lock is ours. Empty where that is not certain: none is known, or the folder is a copy, or of another boot.
    """
    file = data_dir / "lock"
    with contextlib.ExitStack() as stack:
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
            _lock_itself(data_dir, stack)  # first: it can be locked also where nothing can be written
            if file.exists() and not file.is_file():
                raise ConfigError(f"{file}: it is no file: remove it, the brain makes it anew")
            lock = stack.enter_context(file.open("a+", encoding="utf-8", errors="replace"))
        except BlockingIOError:
            raise _taken(data_dir) from None
        except FileExistsError as error:
            leads = (
                f"leads to {data_dir.readlink()}, which is not there"
                if data_dir.is_symlink()
                else "is no folder"
            )
            raise ConfigError(
                f"data_dir {data_dir} {leads}: mount its disk, or name another folder"
            ) from error
        except OSError as error:
            raise ConfigError(
                f"data_dir {data_dir}: {error.strerror}: give a folder that gpuward may write"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _taken(data_dir) from None
        yield _passed_on(lock, run)


def _taken(data_dir: Path) -> FolderTaken:
    return FolderTaken(f"data_dir {data_dir} is in use by another brain")


def _lock_itself(folder: Path, stack: contextlib.ExitStack) -> None:
    """Whoever unpacks a backup over the folder of a brain that runs puts another file in the lock's place, and the next brain
    would find that one free: so the folder is locked, too, where it can be (not on NFS). BlockingIOError: another brain has it.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


def _passed_on(lock: TextIO, run: str) -> str:
    """Leaves a run's name in a lock that is ours; returns the one that was left there by this very lock."""
    try:
        boot = _BOOT_ID.read_text(encoding="ascii").strip()
        status = os.fstat(lock.fileno())
        here = f"{boot} {status.st_dev}:{status.st_ino}"
        lock.seek(0)
        before, _, there = lock.read(_MOST).strip().partition("\n")
        lock.truncate(0)
        os.write(
            lock.fileno(), f"{run}\n{here}\n".encode()
        )  # kept in no buffer, which a close would write later
    except OSError:  # a full disk: nothing is known, then
        return ""
    return before if there == here else ""
