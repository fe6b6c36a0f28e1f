"""Rules and runbooks that change on disk: built, tried on their own examples, and only then put into force.

A pack that cannot be used is refused with its errors; the one in force stays.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.contract.errors import GpuwardError
from brain.adapters import pack as packs
from brain.config import BrainConfig
from brain.core.spec import Pack

LOOK_S = 2.0
Problems = Callable[[Pack], Sequence[str]]  # what is wrong, one line each


class PackWatch:
    """Looks at the files every LOOK_S, and at once when asked to."""

    def __init__(self, config: BrainConfig, problems: Problems) -> None:
        self._config = config
        self._problems = problems
        self._stamp: object = None
        self._now = asyncio.Event()

    def look_now(self) -> None:
        """Reads the files again, changed or not (SIGHUP, a new leader)."""
        self._now.set()

    async def serve(self, take: Callable[[Pack], None], refuse: Callable[[list[str]], None]) -> None:
        """Calls `take` with each usable pack, `refuse` with the errors of the others, until cancelled."""
        while True:
            asked = self._now.is_set()
            self._now.clear()
            stamp = await asyncio.to_thread(self._look)
            if asked or stamp != self._stamp:
                self._stamp = stamp
                # In a thread: reading YAML and running examples takes long, and events must not wait for it.
                pack, errors = await asyncio.to_thread(self.build)
                if pack is not None:
                    take(pack)
                else:
                    refuse(errors)
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._now.wait()
            except TimeoutError:
                continue

    def build(self) -> tuple[Pack | None, list[str]]:
        """The pack of the files as they are now, or what is wrong with them."""
        try:
            pack = packs.load(
                self._config.rules_dir,
                self._config.runbooks_dir,
                self._config.site_settings(),
                self._config.places(),
            )
            errors = list(self._problems(pack))
        except GpuwardError as error:  # a pack that breaks the engine in its examples is refused as well
            return None, str(error).splitlines() or [type(error).__name__]
        return (None, errors) if errors else (pack, [])

    def _look(self) -> object:
        """What tells that a file was changed, added or removed."""
        files: list[Path] = []
        for folder in (self._config.rules_dir, self._config.runbooks_dir):
            files += sorted(folder.rglob("*.yaml"))
        if self._config.topology:
            files.append(self._config.topology)
        found = []
        for file in files:
            try:
                status = file.stat()
            except FileNotFoundError:
                continue  # removed between the listing and here
            found.append((str(file), status.st_mtime_ns, status.st_size, status.st_ino))
        return found
