"""Watches the files of rules and runbooks: a changed pack is built, tried on its own examples, and then put into force.

A pack that cannot be used is refused with its errors; the one in force stays.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from agent.contract.errors import ConfigError
from agent.shared.tasks import abandonable
from brain.adapters.pack_build import Build, Wanted
from brain.config import BrainConfig
from brain.core.pack.spec import Pack

POLL_S = 2.0
BuildPack = Callable[[Wanted], Awaitable[Build]]


class PackWatch:
    """Checks the files every POLL_S, and immediately on request. Files that have not changed are not read again for it."""

    def __init__(self, config: BrainConfig, build: BuildPack) -> None:
        """`build` reads the files and tries the rules (brain/adapters/pack_process.py)."""
        self._config = config
        self._build = build
        # What `_built` was built from. Both change together: a build that is cut off is none.
        self._stamp: object = None
        self._built: Build | None = None
        self._forced = 0  # how often the files were to be read, changed or not
        self._warned: Sequence[str] = ()
        self._now = asyncio.Event()

    def check_now(self) -> None:
        """Reads the files again, changed or not (SIGHUP)."""
        self._forced += 1
        self._now.set()

    def sources(self, version: str) -> Mapping[tuple[str, str], str]:
        """Returns where each part of the pack of this version stands; empty: the files hold another one."""
        built = self._built
        if built is None or built.pack is None or built.pack.version != version:
            return {}
        return {(kind, name): place for kind, name, place in built.sources}

    def report_again(self) -> None:
        """Says once more what the files hold (a new leader): read, and tried on the examples, they were when they changed."""
        self._now.set()

    async def serve(
        self,
        take: Callable[[Pack], None],
        refuse: Callable[[Sequence[str]], None],
        warn: Callable[[Sequence[str]], None],
    ) -> None:
        """Calls `take` with each usable pack and `refuse` with the errors of the others, until cancelled.

        `warn` gets the warnings of a usable pack, once as long as they stay the same.
        """
        while True:
            stamp = (self._forced, await abandonable(self._files, "rules"))
            built = self._built
            changed = built is None or stamp != self._stamp
            if built is None or changed:
                built = await self._read()
                self._stamp, self._built = stamp, built
            # Who asked in the meantime is told as well: once, not twice.
            requested = self._now.is_set()
            self._now.clear()
            if changed or requested:
                self._report(built, take, refuse, warn)
            try:
                async with asyncio.timeout(POLL_S):
                    await self._now.wait()
            except TimeoutError:
                continue

    def _report(
        self,
        built: Build,
        take: Callable[[Pack], None],
        refuse: Callable[[Sequence[str]], None],
        warn: Callable[[Sequence[str]], None],
    ) -> None:
        if built.pack is None:
            refuse(built.errors)
            return
        if built.warnings and built.warnings != self._warned:
            warn(built.warnings)
        self._warned = built.warnings
        take(built.pack)

    async def _read(self) -> Build:
        config = self._config
        try:
            settings = config.site_settings()
        except ConfigError as error:
            return Build(errors=(str(error),))
        return await self._build(
            Wanted(
                rules_dir=config.rules_dir,
                runbooks_dir=config.runbooks_dir,
                topology=config.topology,
                settings=settings,
            )
        )

    def _files(self) -> object:
        """Returns a value that changes when a file is changed, added or removed."""
        files: list[Path] = []
        for folder in (self._config.rules_dir, self._config.runbooks_dir):
            files += sorted(path for path in folder.rglob("*.yaml") if not path.name.startswith("."))
        if self._config.topology:
            files.append(self._config.topology)
        found: list[tuple[str | int, ...]] = []
        for file in files:
            try:
                status = file.stat()
            except FileNotFoundError:
                continue  # removed between the listing and here
            except OSError as error:
                found.append((str(file), str(error)))
                continue
            # The time of the change of status cannot be set back, as that of the content can (cp -p, rsync -t).
            found.append((str(file), status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino))
        return found
