"""Mounted file systems: does each answer, and how full is it. One that hangs costs a thread, no more."""

import asyncio
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from agent.collectors.readings_node import Mount
from agent.host import Host
from agent.mount_table import REMOTE, Listed, watched
from agent.sources.base import Emit


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A question that is under way."""

    thread: threading.Thread
    since_s: float


class MountSource:
    """Emits Mount for each file system, every `period_s` seconds.

    A statvfs that takes longer than `deadline_s` is `hung`, and asked no second time until it has returned. Those in
    `expected` (mount points) are `gone` when they are not mounted.
    """

    name: ClassVar[str] = "mounts"
    needs: ClassVar[str] = "/proc/mounts; each file system is asked with statvfs, with a deadline"

    def __init__(
        self,
        host: Host,
        *,
        expected: tuple[str, ...] = (),
        period_s: float = 30.0,
        deadline_s: float = 10.0,
    ) -> None:
        self._host = host
        self._expected = expected
        self._period_s, self._deadline_s = period_s, deadline_s
        self._asked: dict[str, _Asked] = {}

    async def run(self, emit: Emit) -> None:
        """Follow the file systems until cancelled."""
        while True:
            await self.once(emit)
            await asyncio.sleep(self._period_s)

    async def once(self, emit: Emit) -> None:
        """Every file system once; returns after the deadline at the latest."""
        listed = {mount.path: mount for mount in watched(self._host, self._expected)}
        now_s = self._host.mono_s()
        for path in self._expected:
            if path not in listed:
                emit(Mount(path=path, fstype="", remote=True, state="gone", mono_s=now_s))
        if not self._host.live:  # a recorded machine's file systems cannot be asked
            return
        loop = asyncio.get_running_loop()
        answers: asyncio.Queue[Mount] = asyncio.Queue()
        open_ = {path for path, mount in listed.items() if self._ask(mount, loop, answers)}
        with suppress(TimeoutError):
            async with asyncio.timeout(self._deadline_s):
                while open_:
                    answer = await answers.get()
                    open_.discard(answer.path)
                    emit(answer)
        now_s = self._host.mono_s()
        for path, asked in self._asked.items():
            if (
                path in listed
                and asked.thread.is_alive()
                and (path in open_ or now_s - asked.since_s > self._deadline_s)
            ):
                emit(
                    Mount(
                        path=path,
                        fstype=listed[path].fstype,
                        remote=listed[path].fstype in REMOTE,
                        state="hung",
                        waited_s=now_s - asked.since_s,
                        mono_s=now_s,
                    )
                )

    def _ask(self, mount: Listed, loop: asyncio.AbstractEventLoop, answers: "asyncio.Queue[Mount]") -> bool:
        """Starts the question; False when the last one has not returned yet."""
        asked = self._asked.get(mount.path)
        if asked is not None and asked.thread.is_alive():
            return False

        def work() -> None:
            answer = _statvfs(self._host, mount)
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(answers.put_nowait, answer)

        # A daemon: the agent can end while it hangs.
        thread = threading.Thread(target=work, name=f"statvfs {mount.path}", daemon=True)
        self._asked[mount.path] = _Asked(thread=thread, since_s=self._host.mono_s())
        thread.start()
        return True


def _statvfs(host: Host, mount: Listed) -> Mount:
    remote = mount.fstype in REMOTE
    try:
        found = os.statvfs(host.path(mount.path))
    except OSError as error:
        # Not allowed to look is no failure of the file system.
        state = "ok" if isinstance(error, PermissionError) else "error"
        reason = "" if state == "ok" else str(error.strerror or error)
        return Mount(
            path=mount.path,
            fstype=mount.fstype,
            remote=remote,
            state=state,
            reason=reason,
            mono_s=host.mono_s(),
        )
    used = found.f_blocks - found.f_bfree
    return Mount(
        path=mount.path,
        fstype=mount.fstype,
        remote=remote,
        state="ok",
        # As df counts: what is kept for root is neither used nor free.
        total_bytes=(used + found.f_bavail) * found.f_frsize,
        free_bytes=found.f_bavail * found.f_frsize,
        files=found.f_files,
        files_free=found.f_favail,
        mono_s=host.mono_s(),
    )
