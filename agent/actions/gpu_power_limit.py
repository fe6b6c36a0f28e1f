"""gpu.power_limit: sets the power limit of one GPU, or of all, within what the card allows, and reads it back.

The limit before is remembered on disk; gpu.power_restore gives it back.
"""

import asyncio
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params, number
from agent.actions.gpus import GpuKit
from agent.actions.nvml_client import GpuState, gpu_address
from agent.contract.components import NODE
from agent.contract.errors import ActionError, Refused, Unreachable
from agent.shared.power_caps import SAME_MW, PowerCap

LEAST_PERCENT, MOST_PERCENT = 40.0, 100.0


class GpuPowerLimit(NodeAction):
    """See the module's docstring. The limit lasts until the driver is reloaded or the GPU reset."""

    name: ClassVar[str] = "gpu.power_limit"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.gpus)

    async def plan(self, params: Params) -> list[str]:
        """One line for each GPU."""
        return [
            f"set the power limit of GPU {gpu.bdf} to {_w(limit_mw)} (now {_w(gpu.limit_mw)})"
            for gpu, limit_mw in await self._checked(params)
        ]

    async def run(self, params: Params) -> Done:
        """Sets it, of one GPU after the other; ActionError at the first that does not take it."""
        return Done(
            text="; ".join([await self._set(gpu, limit_mw) for gpu, limit_mw in await self._checked(params)])
        )

    async def _set(self, gpu: GpuState, limit_mw: int) -> str:
        await asyncio.to_thread(self._remember, gpu, limit_mw)
        await self._kit.nvml.set_power_limit(gpu, limit_mw)
        now = await self._kit.nvml.gpu(gpu.bdf)
        if now.limit_mw is None or abs(now.limit_mw - limit_mw) > 1000:  # some cards round to watts
            raise ActionError(
                f"the power limit of GPU {gpu.bdf} is {_w(now.limit_mw)}, not {_w(limit_mw)} as set"
            )
        return f"the power limit of GPU {gpu.bdf} is {_w(now.limit_mw)}, was {_w(gpu.limit_mw)}"

    def _remember(self, gpu: GpuState, limit_mw: int) -> None:
        """Notes the limit before; one that we lowered already keeps its first. Unreachable: nothing may be set."""
        caps, boot, before_mw = self._kit.power_caps, self._kit.host.boot_id(), gpu.limit_mw
        for one in caps.read():
            ours = one.bdf == gpu.bdf and one.uuid == gpu.uuid and one.boot == boot
            if ours and before_mw is not None and abs(one.cap_mw - before_mw) <= SAME_MW:
                before_mw = one.before_mw
        if before_mw is None or before_mw <= limit_mw:
            return  # it is not lowered
        cap = PowerCap(bdf=gpu.bdf, uuid=gpu.uuid, cap_mw=limit_mw, before_mw=before_mw, boot=boot)
        try:
            caps.remember(cap)
        except OSError as error:
            raise Unreachable(
                f"nothing was done: the limit before cannot be noted: {error.strerror}"
            ) from error

    async def recover(self, params: Params) -> None:
        """Nothing to repair: it was set or it was not."""

    async def _checked(self, params: Params) -> list[tuple[GpuState, int]]:
        """Each GPU and its new limit in mW. Refused, and nothing is set, if one of them does not take it."""
        percent = number(params, "percent", MOST_PERCENT, LEAST_PERCENT, MOST_PERCENT)
        component, nvml = str(params["gpu"]), self._kit.nvml
        if component == NODE:
            gpus = [gpu for gpu in await nvml.gpus() if not gpu.lost]
        else:
            gpus = [await nvml.gpu(gpu_address(component))]
        if not gpus:
            raise Refused("NVML shows no GPU that answers")
        return [(gpu, _limit_mw(gpu, percent)) for gpu in gpus]


def _limit_mw(gpu: GpuState, percent: float) -> int:
    if gpu.default_mw is None or gpu.least_mw is None or gpu.most_mw is None:
        raise Refused(f"GPU {gpu.bdf} has no power limit that can be set")
    limit_mw = round(gpu.default_mw * percent / 100)
    if not gpu.least_mw <= limit_mw <= gpu.most_mw:
        raise Refused(
            f"{percent:g} % is {_w(limit_mw)}; GPU {gpu.bdf} allows {_w(gpu.least_mw)} to {_w(gpu.most_mw)}"
        )
    return limit_mw


def _w(milliwatts: int | None) -> str:
    return "unknown" if milliwatts is None else f"{milliwatts / 1000:g} W"
