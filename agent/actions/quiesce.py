"""Quiesces the GPUs for a while: takes the driver's own users away, which are our NVML child and the services that hold
the GPUs.

    check who holds a device -> pause NVML -> write down what is about to stop -> stop services -> check again
    -> (the action) -> load the modules that went -> start the services, in reverse -> forget the note

Everything is started again however the action ends, cancellation included. An agent that dies in between leaves the note,
and `recover` starts what it names after the restart; what could not be started stays on the note for the next time. The
order is that of OCI's gpu_reset.sh and of NVSentinel. A reboot makes the note void, since systemd starts what is enabled.
Tools of a dead agent die with it: systemd kills its unit's whole control group.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.actions.device_holders import Holder, holders
from agent.actions.modules import Modules
from agent.actions.units import Units
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from agent.host import Host
from agent.nvml.pause import NvmlPause
from agent.shared import files
from agent.shared.tasks import to_the_end

_CLOSE_S = 5.0  # for a stopped service to close its devices
_LOOK_S = 0.1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What must run again afterwards."""

    # Units in the order in which they were stopped.
    services: tuple[str, ...] = ()
    # Modules in the order of loading.
    modules: tuple[str, ...] = ()


class Quiesce:
    """One per node: a second action is refused while one has the GPUs."""

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
        self._note = note
        self._in_use = asyncio.Lock()

    async def running(self) -> list[str]:
        """The services that would be stopped, in that order."""
        return [unit for unit in self._services if await self._units.active(unit)]

    async def check(self, *, named: Collection[int] = (), devices: Collection[str] = ()) -> None:
        """Refused when a GPU is held by a process of something that is not stopped here. `named`: pids that NVML names;
        `devices`: only holders of these count (default: of any).
        """
        await self._refuse_holders(frozenset(self._services), named, devices)

    @contextlib.asynccontextmanager
    async def quiesced(
        self, *, named: Collection[int] = (), devices: Collection[str] = (), unloading: Collection[str] = ()
    ) -> AsyncIterator[Stopped]:
        """Inside the block no process holds the GPUs. `unloading`: modules that the caller may unload; those that were
        loaded are loaded again at the end. Errors as of Action.
        """
        if self._in_use.locked():
            raise Unreachable("another action works on this node's GPU driver: nothing was done")
        async with self._in_use, self._pause.paused():
            await self.check(named=named, devices=devices)
            stopped = await self._begin(unloading)
            trouble: ActionError | None = None
            try:
                for unit in stopped.services:
                    if await self._units.active(unit):
                        await self._units.stop(unit)
                await self._until_closed(devices)
                yield stopped
            except ActionError as error:
                trouble = error
            finally:
                problems = await to_the_end(self._start_again(stopped))
            if problems:
                text = "; ".join([*([str(trouble)] if trouble else []), *problems])
                raise (TimedOut if isinstance(trouble, TimedOut) else ActionError)(text)
            if trouble:
                raise trouble

    async def recover(self) -> None:
        """After the agent's death: starts what its note names; ActionError when that fails."""
        async with self._in_use:
            stopped = self._read()
            if stopped != Stopped() and (problems := await to_the_end(self._start_again(stopped))):
                raise ActionError("; ".join(problems))

    async def _begin(self, unloading: Collection[str]) -> Stopped:
        """Writes down what will be stopped, with what could not be started again an earlier time."""
        left = self._read()
        running = await self.running()
        loaded = self._modules.loaded()
        going = {name for name in unloading if name in loaded} | set(left.modules)
        services = [unit for unit in self._services if unit in running or unit in left.services]
        services += [unit for unit in left.services if unit not in self._services]
        stopped = Stopped(
            services=tuple(services), modules=tuple(name for name in self._load_order if name in going)
        )
        try:
            await asyncio.to_thread(self._write, stopped)
        except OSError as error:
            raise Refused(
                f"{self._note} cannot be written ({error}): what is stopped could be forgotten"
            ) from error
        return stopped

    async def _start_again(self, stopped: Stopped) -> list[str]:
        """What could not be loaded or started; it stays on the note."""
        problems: list[str] = []
        for name in stopped.modules:
            if not self._modules.present(name):
                with _collected(problems):
                    await self._modules.load(name)
        for unit in reversed(stopped.services):
            with _collected(problems, f"{unit} was stopped and could not be started again: "):
                await self._units.start(unit)
        if problems:
            _log.error("after the work on the GPU driver: %s", "; ".join(problems))
        else:
            self._note.unlink(missing_ok=True)
        return problems

    async def _until_closed(self, devices: Collection[str]) -> None:
        """Waits until the stopped services have closed the devices: now no process may hold one."""
        end_s = self._host.mono_s() + _CLOSE_S
        while True:
            try:
                return await self._refuse_holders(frozenset(), (), devices)
            except Refused:
                if self._host.mono_s() > end_s:
                    raise
            await asyncio.sleep(_LOOK_S)

    async def _refuse_holders(
        self, services: frozenset[str], named: Collection[int], devices: Collection[str]
    ) -> None:
        """Refused when a process outside of `services` holds a device."""
        found = await asyncio.to_thread(holders, self._host, named)
        strangers = [one for one in found if _counts(one, services, devices)]
        if strangers:
            texts = ", ".join(one.text for one in strangers[:10])
            more = f" and {len(strangers) - 10} more" if len(strangers) > 10 else ""
            raise Refused(f"in use by {texts}{more}")

    def _read(self) -> Stopped:
        """The note of this boot; one that cannot be read counts as none."""
        found = files.read_json(self._note)
        with contextlib.suppress(KeyError, TypeError):
            if found["boot"] == self._host.boot_id():
                return Stopped(services=tuple(found["services"]), modules=tuple(found["modules"]))
        return Stopped()

    def _write(self, stopped: Stopped) -> None:
        boot = self._host.boot_id()
        files.write_json(
            self._note, {"boot": boot, "services": stopped.services, "modules": stopped.modules}, sync=True
        )


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
