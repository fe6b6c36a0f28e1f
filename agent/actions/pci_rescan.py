"""pci.rescan: removes what is left of a lost GPU and makes the kernel look for it again, through sysfs.

Only for an NVIDIA display device that does not answer, and only when no process holds it: in `remove` the kernel waits
for the last open file.
"""

import asyncio
from collections.abc import Callable
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params
from agent.actions.gpus import GpuKit
from agent.actions.nvml_client import gpu_address
from agent.contract.errors import ActionError, Refused, TimedOut
from agent.shared.tasks import abandonable

WRITE_S = 30.0  # for the kernel to remove a device, or to scan all buses
_LOOK_S = 0.1


class PciRescan(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "pci.rescan"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.gpus)

    async def plan(self, params: Params) -> list[str]:
        """Services, remove, rescan, and the services again."""
        bdf, present = await self._checked(params)
        await self._kit.quiesce.check(devices=self._devices(bdf))
        services = await self._kit.quiesce.running()
        lines = ["pause the agent's own NVML source", *(f"stop {unit}" for unit in services)]
        lines += [f"remove what is left of {bdf} from the PCI bus"] if present else []
        lines += ["let the kernel scan the PCI buses", f"wait until {bdf} is back and answers"]
        return lines + [f"start {unit}" for unit in reversed(services)]

    async def run(self, params: Params) -> Done:
        """Does it."""
        bdf, present = await self._checked(params)
        kit = self._kit
        async with kit.quiesce.quiesced(devices=self._devices(bdf)):
            if present and kit.is_gpu(bdf):  # checked again: it may be gone by now
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

    async def recover(self, params: Params) -> None:  # noqa: ARG002 - the note of what is stopped counts
        """Scans, since the GPU may have been removed already, and starts the services."""
        try:
            await self._write("/sys/bus/pci/rescan")
        finally:
            await self._kit.quiesce.recover()

    async def _checked(self, params: Params) -> tuple[str, bool]:
        """The GPU's address, and whether something of it is left on the bus."""
        bdf = gpu_address(str(params["gpu"]))
        present = self._present(bdf)
        if present and not self._kit.is_gpu(bdf):
            raise Refused(f"the device at {bdf} is not an NVIDIA GPU: it stays")
        well = any(gpu.bdf == bdf and not gpu.lost for gpu in await self._kit.gpus())
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
        """Its device file; empty when it is not known which it is: then holders of any device count."""
        text = self._kit.host.read(f"/proc/driver/nvidia/gpus/{bdf}.0/information")
        for line in text.splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "Device Minor" and value.strip().isdigit():
                return (f"/dev/nvidia{value.strip()}",)
        return ()

    async def _write(self, path: str) -> None:
        """Writes "1" to a file of sysfs, which may hang in the kernel for ever and must not hold up the agent's end."""
        file = self._kit.host.path(path)
        try:
            async with asyncio.timeout(WRITE_S):
                await abandonable(lambda: file.write_text("1"), f"write {path}")
        except TimeoutError:
            raise TimedOut(f"the kernel did not return from writing {path} within {WRITE_S:g} s") from None
        except OSError as error:
            raise ActionError(f"{path} cannot be written: {error.strerror or error}") from error
