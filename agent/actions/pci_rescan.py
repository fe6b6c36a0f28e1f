"""pci.rescan: removes what is left of a lost GPU and lets the kernel look for it again, by sysfs.

Only for an NVIDIA display device that does not answer, and only when nobody holds it: the kernel waits in `remove`
for the last open file.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import ClassVar

from agent.actions.base import Done, Params
from agent.actions.gpus import GpuKit
from agent.actions.nvml import wanted_gpu
from agent.contract.errors import ActionError, Refused, TimedOut

WRITE_S = 30.0  # for the kernel to take a device away, or to look at all buses
_LOOK_S = 0.1


class PciRescan:
    """See the module's docstring."""

    name: ClassVar[str] = "pci.rescan"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit

    async def plan(self, params: Params) -> list[str]:
        """Services, remove, rescan, the way back."""
        bdf, present = await self._checked(params)
        await self._kit.quiet.check(devices=self._devices(bdf))
        services = await self._kit.quiet.running()
        lines = ["pause the agent's own NVML source", *(f"stop {unit}" for unit in services)]
        lines += [f"remove what is left of {bdf} from the PCI bus"] if present else []
        lines += ["let the kernel scan the PCI buses", f"wait until {bdf} is back and answers"]
        return lines + [f"start {unit}" for unit in reversed(services)]

    async def run(self, params: Params) -> Done:
        """Does it."""
        bdf, present = await self._checked(params)
        kit = self._kit
        async with kit.quiet.have(devices=self._devices(bdf)):
            if present and kit.is_gpu(bdf):  # asked again: it may have gone by itself meanwhile
                await self._write(f"/sys/bus/pci/devices/{bdf}.0/remove")
                await self._until(
                    lambda: not self._present(bdf), f"GPU {bdf} was not removed from the PCI bus"
                )
            await self._write("/sys/bus/pci/rescan")
            await self._until(
                lambda: kit.is_gpu(bdf) and not kit.off_bus(bdf),
                f"GPU {bdf} did not come back to the PCI bus",
            )
            await kit.until_answers(frozenset((bdf,)))
        return Done(text=f"GPU {bdf} is back on the PCI bus and answers")

    async def recover(self, params: Params) -> None:  # noqa: ARG002 - the note says all
        """The agent died while it ran: starts the services, and scans, as it may have been between the two."""
        try:
            await self._write("/sys/bus/pci/rescan")
        finally:
            await self._kit.quiet.recover()

    async def _checked(self, params: Params) -> tuple[str, bool]:
        """Its address, and whether something of it is left on the bus."""
        bdf = wanted_gpu(str(params["gpu"]))
        present = self._present(bdf)
        if present and not self._kit.is_gpu(bdf):
            raise Refused(f"the device at {bdf} is not an NVIDIA GPU: it stays")
        well = any(card.bdf == bdf and not card.lost for card in await self._kit.cards())
        if present and well and not self._kit.off_bus(bdf):
            raise Refused(f"GPU {bdf} answers: there is nothing to look for")
        return bdf, present

    def _present(self, bdf: str) -> bool:
        return self._kit.host.path(f"/sys/bus/pci/devices/{bdf}.0").exists()

    async def _until(self, holds: Callable[[], bool], otherwise: str) -> None:
        end_s = self._kit.host.mono_s() + self._kit.settle_s
        while not holds():
            if self._kit.host.mono_s() > end_s:
                raise ActionError(otherwise)
            await asyncio.sleep(_LOOK_S)

    def _devices(self, bdf: str) -> tuple[str, ...]:
        """Its device file; empty when nobody knows which it is: then any counts."""
        text = self._kit.host.read(f"/proc/driver/nvidia/gpus/{bdf}.0/information")
        for line in text.splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "Device Minor" and value.strip().isdigit():
                return (f"/dev/nvidia{value.strip()}",)
        return ()

    async def _write(self, path: str) -> None:
        """Writes "1" there. In a thread of its own: it may hang in the kernel for ever, and must not hold up our end."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[str] = loop.create_future()

        def tell(trouble: str) -> None:
            if not done.done():
                done.set_result(trouble)

        def work() -> None:
            try:
                self._kit.host.path(path).write_text("1")
                trouble = ""
            except OSError as error:
                trouble = error.strerror or str(error)
            loop.call_soon_threadsafe(tell, trouble)

        threading.Thread(target=work, name=f"write {path}", daemon=True).start()
        try:
            async with asyncio.timeout(WRITE_S):
                trouble = await done
        except TimeoutError:
            raise TimedOut(f"the kernel did not come back from writing {path} within {WRITE_S:g} s") from None
        if trouble:
            raise ActionError(f"{path} cannot be written: {trouble}")
