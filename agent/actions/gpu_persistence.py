"""gpu.persistence: switches persistence mode on, for one GPU or all, and reads it back.

NVML hands the request to nvidia-persistenced where that runs, so that the daemon and the driver agree.
"""

from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params
from agent.actions.gpus import GpuKit
from agent.actions.nvml_client import GpuState, gpu_address
from agent.contract.errors import ActionError, Refused


class GpuPersistence(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "gpu.persistence"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.gpus)

    async def plan(self, params: Params) -> list[str]:
        """One line for each GPU where it is off."""
        return [f"switch persistence mode on for GPU {gpu.bdf}" for gpu in await self._off(params)] or [
            "nothing: persistence mode is on"
        ]

    async def run(self, params: Params) -> Done:
        """Switches it on where it is off."""
        off = await self._off(params)
        for gpu in off:
            await self._kit.nvml.set_persistence(gpu, True)
        still = {gpu.bdf for gpu in await self._off(params)}
        if failed := [gpu.bdf for gpu in off if gpu.bdf in still]:
            raise ActionError(f"persistence mode is still off for GPU {', '.join(failed)}")
        names = ", ".join(gpu.bdf for gpu in off)
        return Done(text=f"persistence mode on for GPU {names}" if off else "persistence mode was on already")

    async def recover(self, params: Params) -> None:
        """Nothing to repair: it was set or it was not."""

    async def _off(self, params: Params) -> list[GpuState]:
        if "gpu" in params:
            gpus = [await self._kit.nvml.gpu(gpu_address(str(params["gpu"])))]
        else:
            gpus = [gpu for gpu in await self._kit.nvml.gpus() if not gpu.lost and gpu.bdf]
        if not gpus:
            raise Refused("NVML shows no GPU that answers")
        if unknown := [gpu.bdf for gpu in gpus if gpu.persistence is None]:
            raise Refused(f"GPU {', '.join(unknown)} does not support persistence mode")
        return [gpu for gpu in gpus if not gpu.persistence]
