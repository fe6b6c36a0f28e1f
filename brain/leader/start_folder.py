"""The start of a brain whose folder takes nothing: it waits, people hear once who must do what, and it goes on by itself.

What is opened there is opened beside the event loop: a disk that hangs holds up neither the page nor the end (decision 90).
"""

import asyncio
import logging
import os
import pwd
import time
from asyncio import Future
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from agent.contract.errors import ConfigError
from agent.shared.tasks import abandonable, unless
from brain.adapters.disk import DiskState, DiskTrial, try_folder
from brain.adapters.files import FolderTaken
from brain.adapters.lost_folder import FolderLost
from brain.leader import disk_watch
from brain.leader.brain_alerts import BrainAlerts

T = TypeVar("T")
_log = logging.getLogger(__name__)


async def when_writable(
    folder: Path,
    opening: Callable[[], T],
    alerts: BrainAlerts,
    stop: asyncio.Event,
    *,
    also: Path | None = None,
    in_thread: bool = True,
) -> T | None:
    """What `opening` opens below this folder, or below the other one (`also`). While nothing can be written there, or the disk of
    one is not mounted (FolderLost), it is tried again, and people hear of it after a while; None: until `stop`. ConfigError,
    OSError: there is no such folder, it is in use, or the reason is another one.

    `in_thread`: not so what starts a process that ends with the thread which has started it; that holds up the event loop.
    """
    run = partial(abandonable, opening, "opening") if in_thread else partial(_here, opening)
    opened = await unless(stop, _opened([folder, *filter(None, (also,))], run, alerts))
    if opened is None:
        _log.info("asked to stop while %s could not be opened", folder)
    return opened


async def in_time(look: Callable[[], T]) -> T | None:
    """What `look` finds on a disk; None: that hangs, and `when_writable` says so later."""
    try:
        async with asyncio.timeout(disk_watch.HANGS_S):
            return await abandonable(look, "look")
    except TimeoutError:
        return None


async def _here(opening: Callable[[], T]) -> T:
    return opening()


async def _opened(folders: list[Path], run: Callable[[], Coroutine[Any, Any, T]], alerts: BrainAlerts) -> T:
    began_s, said = time.monotonic(), False
    while True:
        work = asyncio.ensure_future(run())
        while not work.done():
            await asyncio.wait({work}, timeout=disk_watch.HANGS_S)
            error = _error(work)
            if work.done() and error is None:
                return work.result()
            text = await _trouble(folders, error)
            if not text:
                if error is not None:
                    raise error
                continue  # it only takes its time
            if not said:
                said = True
                _log.error("%s", text)
            if time.monotonic() - began_s >= disk_watch.TELL_AFTER_S:
                alerts.open(disk_watch.DISK, text)
        await asyncio.sleep(disk_watch.AGAIN_S)


def _error(work: "Future[T]") -> ConfigError | OSError | None:
    """Why it was not opened; None: it was, or it is still under way. Any other error is raised."""
    if not work.done() or (error := work.exception()) is None:
        return None
    if isinstance(error, ConfigError | OSError) and not isinstance(error, FolderTaken):
        return error
    raise error


async def _trouble(folders: list[Path], error: ConfigError | OSError | None) -> str:
    """What is wrong, and what to do; empty: nothing is wrong with these folders."""
    if isinstance(error, FolderLost):
        return (
            f"{error}. Until then this brain begins nothing anew: it hears of no fault and can do nothing. When that is done, it "
            "starts by itself"
        )
    for folder in folders:
        found = await _tried(folder, error)
        if found.state is not DiskState.WELL:
            return _text(folder, found)
    return ""


async def _tried(folder: Path, error: ConfigError | OSError | None) -> DiskTrial:
    try:
        async with asyncio.timeout(disk_watch.HANGS_S):
            return await abandonable(lambda: try_folder(folder, error), "disk")
    except TimeoutError:
        return DiskTrial(state=DiskState.HANGING)


def _text(folder: Path, found: DiskTrial) -> str:
    return (
        f"this brain's folder {folder} {disk_watch.said_of(found)}, and the brain cannot start: it hears of no fault and can do "
        f"nothing. Another brain may lead meanwhile. {_todo(folder, found.state)}: it then starts by itself"
    )


def _todo(folder: Path, state: DiskState) -> str:
    if state is DiskState.DENIED:
        return (
            f"As root: `chown -R {_us()}: {folder}`, and `chmod -R u+rwX {folder}`; the folders above it must let that user pass "
            f"(`namei -l {folder}`)"
        )
    if state is DiskState.READ_ONLY:
        return f"{disk_watch.TODO[state]}. In a unit of systemd it must be in ReadWritePaths=, too"
    return disk_watch.TODO[state]


def _us() -> str:
    """The user who runs this brain."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
