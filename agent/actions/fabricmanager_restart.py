"""fabricmanager.restart: restarts NVIDIA's fabric manager and waits until every GPU's fabric state is completed.

CUDA jobs on the node's NVSwitches end with it (NVIDIA's fabric manager guide, ABORT_CUDA_JOBS_ON_FM_EXIT).
"""

from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params
from agent.actions.gpus import GpuKit
from agent.contract.errors import ActionError, Refused
from agent.shared.tasks import to_the_end


class FabricManagerRestart(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "fabricmanager.restart"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit
        self._unit = kit.config.fabric_manager_unit

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.gpus)

    async def plan(self, params: Params) -> list[str]:  # noqa: ARG002 - it has none
        """Stop, start, wait."""
        runs = await self._runs()
        stop = [f"stop {self._unit}"] if runs else []
        return [*stop, f"start {self._unit}", "wait until the fabric state of every GPU is completed"]

    async def run(self, params: Params) -> Done:  # noqa: ARG002 - it has none
        """Does it. However it ends, the unit is started."""
        runs = await self._runs()
        try:
            if runs:
                await self._kit.units.stop(self._unit)
        finally:
            await to_the_end(self._kit.units.start(self._unit))
        count = await self._kit.until_fabric()
        if not await self._kit.units.active(self._unit):
            raise ActionError(f"{self._unit} did not stay active")
        fabric = f"{count} GPUs are in the fabric" if count else "no GPU reports its fabric state"
        return Done(text=f"{self._unit} restarted; {fabric}")

    async def recover(self, params: Params) -> None:  # noqa: ARG002 - it has none
        """The unit may have been stopped: starts it."""
        await self._kit.units.start(self._unit)

    async def _runs(self) -> bool:
        """Does the unit run? Refused on a node that needs none."""
        if not self._kit.nvswitches():
            raise Refused("this node has no NVSwitch: no fabric manager is needed")
        return await self._kit.units.active(self._unit)
