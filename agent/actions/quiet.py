"""Takes the driver's own users away for a while: our NVML child, and the services that hold the GPUs.

    check who holds a device -> pause NVML -> write down what is about to stop -> stop services -> check again
    -> (the action) -> load the modules that went -> start the services, in reverse -> forget the note

The way back is walked whatever happens, cancellation included. An agent that dies in between leaves the note, and
`recover` walks it after the restart; what could not be given back stays on the note for the next time. The order is
that of OCI's gpu_reset.sh and of NVSentinel; a reboot makes the note void, since systemd starts what is enabled.
Tools of a dead agent die with it: its unit kills its whole control group.
"""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import AsyncIterator, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.actions.holders import Holder, holders
from agent.actions.modules import Modules
from agent.actions.units import Units
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from agent.host import Host
from agent.nvml_pause import NvmlPause
from agent.tasks import to_the_end

_CLOSE_S = 5.0  # for the devices of a stopped service to be closed
_LOOK_S = 0.1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is to be given back: units in the order in which they were stopped, modules in the order of loading."""

    services: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


class Quiet:
    """One per node: who asks while another has it is told to come again."""

    def __init__(
        self,
        host: Host,
        *,
        units: Units,
        services: tuple[str, ...],
        modules: Modules,
        load_order: tuple[str, ...],
        pause: NvmlPause,
        note: Path,
    ) -> None:
        """`services`: units in the order of stopping; `load_order`: modules; `note`: the file of what is stopped."""
        self._host = host
        self._units = units
        self._services = services
        self._modules = modules
        self._load_order = load_order
        self._pause = pause
        self._path = note
        self._taken = asyncio.Lock()

    async def running(self) -> list[str]:
        """The services that would be stopped, in that order."""
        return [unit for unit in self._services if await self._units.active(unit)]

    async def check(self, *, named: Collection[int] = (), devices: Collection[str] = ()) -> None:
        """Refused when a process holds a GPU that is not of a service that is stopped. `named`: pids that NVML names;
        `devices`: only holders of these (default: of any).
        """
        await self._nobody(frozenset(self._services), named, devices)

    @contextlib.asynccontextmanager
    async def have(
        self, *, named: Collection[int] = (), devices: Collection[str] = (), unloading: Collection[str] = ()
    ) -> AsyncIterator[Note]:
        """Inside, nobody holds the GPUs. `unloading`: modules that the caller may unload; those that were there are
        loaded again at the end. Errors as in agent.actions.base.
        """
        if self._taken.locked():
            raise Unreachable("another action works on this node's GPU driver: nothing was done")
        async with self._taken, self._pause.asked():
            await self.check(named=named, devices=devices)
            note = await self._begin(unloading)
            trouble: ActionError | None = None
            try:
                for unit in note.services:
                    if await self._units.active(unit):
                        await self._units.stop(unit)
                await self._closed(devices)
                yield note
            except ActionError as error:
                trouble = error
            finally:
                problems = await to_the_end(self._give_back(note))
            if problems:
                text = "; ".join([*([str(trouble)] if trouble else []), *problems])
                raise (TimedOut if isinstance(trouble, TimedOut) else ActionError)(text)
            if trouble:
                raise trouble

    async def recover(self) -> None:
        """After the agent's death: gives back what its note says; ActionError when that fails."""
        async with self._taken:
            note = self._read()
            if note != Note() and (problems := await to_the_end(self._give_back(note))):
                raise ActionError("; ".join(problems))

    async def _begin(self, unloading: Collection[str]) -> Note:
        """Writes down what will be stopped, with what an earlier time could not give back."""
        left = self._read()
        running = await self.running()
        loaded = self._modules.loaded()
        going = {name for name in unloading if name in loaded} | set(left.modules)
        services = [unit for unit in self._services if unit in running or unit in left.services]
        services += [unit for unit in left.services if unit not in self._services]
        note = Note(
            services=tuple(services), modules=tuple(name for name in self._load_order if name in going)
        )
        try:
            await asyncio.to_thread(self._write, note)
        except OSError as error:
            raise Refused(
                f"{self._path} cannot be written ({error}): what is stopped could be forgotten"
            ) from error
        return note

    async def _give_back(self, note: Note) -> list[str]:
        """What could not be given back; it stays on the note."""
        problems: list[str] = []
        for name in note.modules:
            if not self._modules.present(name):
                with _collected(problems):
                    await self._modules.load(name)
        for unit in reversed(note.services):
            with _collected(problems, f"{unit} was stopped and could not be started again: "):
                await self._units.start(unit)
        if problems:
            _log.error("after the work on the GPU driver: %s", "; ".join(problems))
        else:
            self._path.unlink(missing_ok=True)
        return problems

    async def _closed(self, devices: Collection[str]) -> None:
        """The services are gone: now nobody may hold anything."""
        end_s = self._host.mono_s() + _CLOSE_S
        while True:
            try:
                return await self._nobody(frozenset(), (), devices)
            except Refused:
                if self._host.mono_s() > end_s:
                    raise
            await asyncio.sleep(_LOOK_S)

    async def _nobody(
        self, services: frozenset[str], named: Collection[int], devices: Collection[str]
    ) -> None:
        found = await asyncio.to_thread(holders, self._host, named)
        strangers = [one for one in found if _counts(one, services, devices)]
        if strangers:
            texts = ", ".join(one.text for one in strangers[:10])
            more = f" and {len(strangers) - 10} more" if len(strangers) > 10 else ""
            raise Refused(f"in use by {texts}{more}")

    def _read(self) -> Note:
        """The note of this boot; an unreadable one is none."""
        try:
            said = json.loads(self._path.read_text())
            if said["boot"] == self._host.boot_id():
                return Note(services=tuple(said["services"]), modules=tuple(said["modules"]))
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return Note()

    def _write(self, note: Note) -> None:
        """On disk when this returns."""
        text = json.dumps({"boot": self._host.boot_id(), "services": note.services, "modules": note.modules})
        fresh = self._path.with_name(self._path.name + ".new")
        with fresh.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _counts(one: Holder, services: frozenset[str], devices: Collection[str]) -> bool:
    if one.owner.unit in services:
        return False
    return not devices or not one.devices or any(device in devices for device in one.devices)


@contextlib.contextmanager
def _collected(problems: list[str], prefix: str = "") -> Iterator[None]:
    try:
        yield
    except ActionError as error:
        problems.append(f"{prefix}{error}")
