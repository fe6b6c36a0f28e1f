"""Mounted file systems: does each one answer, and how full is it? One that hangs costs a thread, no more."""

import asyncio
import os
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from agent.collectors.samples_node import Mount
from agent.filesystems.mount_table import REMOTE, Listed, reached, watched
from agent.host import Host
from agent.options import option
from agent.sources.apart import Apart
from agent.sources.base import Emit, Source, SourceSetup


@dataclass(frozen=True, slots=True, kw_only=True)
class MountSourceOptions:
    """What an operator can set."""

    mount_interval_s: float = option(30.0, "pause between queries of file systems", unit="s", least=0.05)
    mount_deadline_s: float = option(
        10.0, "a file system that does not answer within this time hangs", unit="s", least=0.05
    )


class MountSource(Source):
    """Emits Mount for each file system, after each pause.

    One whose statvfs takes longer than the deadline is `hung`, and is not queried again until that has returned. Those in
    `expected` (mount points) are `gone` when they are not mounted.
    """

    name: ClassVar[str] = "mounts"
    needs: ClassVar[str] = "/proc/mounts; each file system is queried with statvfs, with a deadline"
    options: ClassVar[tuple[type[Any], ...]] = (MountSourceOptions,)

    def __init__(self, host: Host, options: MountSourceOptions, *, expected: tuple[str, ...] = ()) -> None:
        self._host = host
        self._expected = expected
        self._period_s = options.mount_interval_s
        self._queries = Apart[Mount](host, "statvfs", deadline_s=options.mount_deadline_s)

    @classmethod
    def of(cls, setup: SourceSetup) -> Self:
        """See Source."""
        return cls(setup.host, setup.options(MountSourceOptions), expected=setup.config.mounts)

    async def run(self, emit: Emit) -> None:
        """Follow the file systems until cancelled."""
        while True:
            await self.once(emit)
            await asyncio.sleep(self._period_s)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self.once(emit)

    async def once(self, emit: Emit) -> None:
        """Every file system once; returns after the deadline at the latest."""
        listed = {mount.path: mount for mount in watched(self._host, self._expected)}
        now_s = self._host.mono_s()
        for path in self._expected:
            if path not in listed:
                emit(Mount(path=path, fstype="", remote=True, state="gone", mono_s=now_s))
        if not self._host.live:  # a recorded machine's file systems cannot be queried
            return
        queries = {path: partial(_statvfs, self._host, mount) for path, mount in listed.items()}
        hung = await self._queries.ask(queries, lambda _, answer: emit(answer))
        for path, waited_s in hung.items():
            fstype = listed[path].fstype
            emit(
                Mount(
                    path=path,
                    fstype=fstype,
                    remote=fstype in REMOTE,
                    state="hung",
                    waited_s=waited_s,
                    mono_s=self._host.mono_s(),
                )
            )


def _statvfs(host: Host, mount: Listed) -> Mount:
    remote = mount.fstype in REMOTE
    try:
        found = os.statvfs(reached(host, mount.path))
    except OSError as error:
        # A lack of permission is no failure of the file system.
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
        # As df counts: what is reserved for root is neither used nor free.
        total_bytes=(used + found.f_bavail) * found.f_frsize,
        free_bytes=found.f_bavail * found.f_frsize,
        files=found.f_files,
        files_free=found.f_favail,
        mono_s=host.mono_s(),
    )
