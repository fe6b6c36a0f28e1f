"""Watches the files of rules and runbooks: a changed pack is built, tried on its own examples, and then put into force.

A pack that cannot be used is refused with its errors; the one in force stays.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.contract.errors import GpuwardError
from brain.adapters import pack as packs
from brain.config import BrainConfig
from brain.core.pack.spec import Pack

POLL_S = 2.0
Problems = Callable[[Pack], Sequence[str]]  # what is wrong, one line each


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What the files hold at one moment."""

    # None: the files cannot be used
    pack: Pack | None = None
    errors: Sequence[str] = ()
    # Old names, which are still read; one line each
    warnings: Sequence[str] = ()
    # ("rules", name) -> `<file>:<line>`; symptoms and runbooks too
    sources: Mapping[tuple[str, str], str] = field(default_factory=dict)


class PackWatch:
    """Checks the files every POLL_S, and immediately on request. Files that have not changed are not read again for it."""

    def __init__(self, config: BrainConfig, problems: Problems) -> None:
        self._config = config
        self._problems = problems
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
        return built.sources if built and built.pack and built.pack.version == version else {}

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
            stamp = (self._forced, await asyncio.to_thread(self._files))
            built = self._built
            changed = built is None or stamp != self._stamp
            if built is None or changed:
                # In a thread: reading YAML and running examples takes long, and events must not wait for it.
                built = await asyncio.to_thread(self.build)
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

    def build(self) -> Build:
        """Returns the pack of the files as they are now, or what is wrong with them."""
        try:
            sources = packs.scan(self._config.rules_dir, self._config.runbooks_dir)
            pack = packs.assemble(sources, self._config.site_settings(), self._config.places())
            errors = list(self._problems(pack))
        except GpuwardError as error:  # a pack that breaks the engine in its examples is refused as well
            return Build(errors=str(error).splitlines() or [type(error).__name__])
        except (OSError, ValueError, RecursionError) as error:  # whatever a file holds, the brain goes on
            text = " ".join(str(error).split())[:300]
            return Build(errors=[f"the rules cannot be read: {type(error).__name__}: {text}"])
        if errors:
            return Build(errors=errors)
        return Build(
            pack=pack,
            warnings=[str(warning) for warning in sources.warnings],
            sources={
                key: f"{document.file}:{document.line(base)}"
                for key, (document, base) in sources.origins.items()
            },
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
