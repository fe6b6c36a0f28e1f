"""gpu.power_restore: gives GPUs back the power limits that gpu.power_limit has lowered, and reads them back."""

import asyncio
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params
from agent.actions.gpus import GpuKit
from agent.actions.nvml_client import gpu_address
from agent.contract.components import NODE
from agent.contract.errors import ActionError
from agent.shared.power_caps import SAME_MW, PowerCap


class GpuPowerRestore(NodeAction):
    """See the module's docstring. A limit that somebody has changed since is left as it is."""

    name: ClassVar[str] = "gpu.power_restore"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.gpus)

    async def plan(self, params: Params) -> list[str]:
        """One line for each GPU."""
        caps = await self._caps(params)
        lines = [
            f"set the power limit of GPU {cap.bdf} back from {cap.cap_mw / 1000:g} W to {cap.before_mw / 1000:g} W, "
            "unless somebody has changed it"
            for cap in caps
        ]
        return lines or ["nothing: no power limit is lowered by us"]

    async def run(self, params: Params) -> Done:
        """Restores one after the other; ActionError at the first that cannot be."""
        said = [await self._restore(cap) for cap in await self._caps(params)]
        return Done(text="; ".join(said) or "no power limit was lowered by us")

    async def recover(self, params: Params) -> None:
        """Nothing to repair: what is not restored is still remembered."""

    async def _caps(self, params: Params) -> list[PowerCap]:
        component = str(params.get("gpu", NODE))
        bdf = "" if component == NODE else gpu_address(component)
        caps = await asyncio.to_thread(self._kit.power_caps.read)
        return [one for one in caps if one.boot == self._kit.host.boot_id() and bdf in ("", one.bdf)]

    async def _restore(self, cap: PowerCap) -> str:
        nvml = self._kit.nvml
        gpu = await nvml.gpu(cap.bdf)
        text = f"the power limit of GPU {cap.bdf} is {cap.before_mw / 1000:g} W again"
        if gpu.uuid != cap.uuid or gpu.limit_mw is None or abs(gpu.limit_mw - cap.cap_mw) > SAME_MW:
            text = f"the power limit of GPU {cap.bdf} was changed by somebody else since"
        else:
            await nvml.set_power_limit(gpu, cap.before_mw)
            now = await nvml.gpu(cap.bdf)
            if now.limit_mw is None or abs(now.limit_mw - cap.before_mw) > SAME_MW:
                raise ActionError(f"the power limit of GPU {cap.bdf} could not be restored")
        await asyncio.to_thread(self._kit.power_caps.forget, cap.bdf)
        return text
