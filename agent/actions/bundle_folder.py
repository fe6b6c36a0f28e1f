"""The folder of evidence bundles: `<folder>/<time>-<what>.tar.gz`, readable by root only, one written at a time.

A sick machine's file system may hang: then the thread that writes is left behind.
"""

import asyncio
import contextlib
import io
import os
import re
import secrets
import shutil
import stat
import tarfile
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from agent.contract.errors import ActionError
from agent.host import Host
from agent.shared.tasks import abandonable

MAX_BUNDLES = 20  # the oldest are removed first
_SCRATCH = "scratch-"

# (path in the bundle, its content or the file to copy)
Member = tuple[str, bytes | Path]


class BundleFolder:
    """See the module's docstring. Shared by all actions that write bundles."""

    def __init__(self, host: Host, folder: Path) -> None:
        self._host = host
        self.folder = folder
        self._one_at_a_time = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def reserved(self) -> AsyncIterator[Path]:
        """Inside the block only the caller collects and writes. Gives a scratch folder, which is removed afterwards, as are
        bundles that are too old. ActionError when the folder cannot be written.
        """
        async with self._one_at_a_time:
            scratch = self.folder / f"{_SCRATCH}{secrets.token_hex(4)}"
            try:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._tidy_up()
                scratch.mkdir(mode=0o700)
                yield scratch
            except OSError as error:
                raise ActionError(f"the bundle cannot be written to {self.folder}: {error}") from error
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
                with contextlib.suppress(OSError):
                    self._tidy_up()

    async def write(self, what: str, members: Iterable[Member], max_bytes: int) -> tuple[Path, int]:
        """Writes a new bundle within `reserved`; returns its path and how many members it has. Members given as bytes are cut
        at `max_bytes` in all (not compressed), so the most important come first; files are copied whole.
        """
        stop = threading.Event()
        try:
            return await abandonable(lambda: self._write(what, members, max_bytes, stop.is_set), "evidence")
        finally:
            stop.set()

    def _write(
        self, what: str, members: Iterable[Member], max_bytes: int, stopped: Callable[[], bool]
    ) -> tuple[Path, int]:
        stamp = self._host.wall().strftime("%Y%m%dT%H%M%S.%f")[:-3]
        name = f"{stamp}-{re.sub(r'[^A-Za-z0-9.-]+', '-', what)[:80]}.tar.gz"
        part = self.folder / f"{name}.part"
        count = 0
        try:
            with _private(part) as sink, tarfile.open(fileobj=sink, mode="w:gz", compresslevel=6) as bundle:
                for path, content in _within(members, max_bytes):
                    if stopped():
                        raise OSError("it was cancelled")
                    self._add(bundle, path, content)
                    count += 1
            if stopped():
                raise OSError("it was cancelled")
            part.rename(self.folder / name)
        finally:
            part.unlink(missing_ok=True)
        return self.folder / name, count

    def _add(self, bundle: tarfile.TarFile, path: str, content: bytes | Path) -> None:
        info = tarfile.TarInfo(path.lstrip("/"))
        info.mtime, info.mode = int(self._host.wall().timestamp()), 0o600
        with io.BytesIO(content) if isinstance(content, bytes) else _regular(content) as source:
            info.size = len(content) if isinstance(content, bytes) else os.fstat(source.fileno()).st_size
            bundle.addfile(info, source)

    def _tidy_up(self) -> None:
        """Keeps the newest MAX_BUNDLES bundles, and nothing that an earlier run left half done."""
        names = sorted(path.name for path in self.folder.iterdir())
        bundles = [name for name in names if name.endswith(".tar.gz")]
        for name in [*bundles[:-MAX_BUNDLES], *(name for name in names if name.endswith(".part"))]:
            with contextlib.suppress(OSError):
                (self.folder / name).unlink()
        for path in self.folder.glob(f"{_SCRATCH}*"):
            shutil.rmtree(path, ignore_errors=True)


def _within(members: Iterable[Member], max_bytes: int) -> Iterator[Member]:
    room = max_bytes
    for path, content in members:
        if isinstance(content, bytes):
            content = content[:room]
            room -= len(content)
        yield path, content
        if room <= 0:
            return


def _regular(path: Path) -> IO[bytes]:
    """The file itself: a link, a pipe or a device under its name is an OSError."""
    source = os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
        source.close()
        raise OSError(f"{path.name!r} is not a regular file")
    return source


def _private(path: Path) -> IO[bytes]:
    """A new file that only root can read: command lines may hold secrets."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
