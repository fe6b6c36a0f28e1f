"""gpu.persistence: persistence mode on, for one GPU or all, and reads it back.

NVML hands it to nvidia-persistenced where that runs, so that the daemon and the driver agree.
"""

from typing import ClassVar

from agent.actions.base import Done, Params
from agent.actions.gpus import GpuKit
from agent.actions.nvml import Card, wanted_gpu
from agent.contract.errors import ActionError, Refused


class GpuPersistence:
    """See the module's docstring."""

    name: ClassVar[str] = "gpu.persistence"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit

    async def plan(self, params: Params) -> list[str]:
        """One line for each GPU where it is off."""
        return [f"switch persistence mode on for GPU {card.bdf}" for card in await self._off(params)] or [
            "nothing: persistence mode is on"
        ]

    async def run(self, params: Params) -> Done:
        """Switches it on where it is off."""
        off = await self._off(params)
        for card in off:
            await self._kit.nvml.set_persistence(card, True)
        still = {card.bdf for card in await self._off(params)}
        if failed := [card.bdf for card in off if card.bdf in still]:
            raise ActionError(f"persistence mode is still off for GPU {', '.join(failed)}")
        names = ", ".join(card.bdf for card in off)
        return Done(text=f"persistence mode on for GPU {names}" if off else "persistence mode was on already")

    async def recover(self, params: Params) -> None:
        """Nothing: it was set or it was not."""

    async def _off(self, params: Params) -> list[Card]:
        if "gpu" in params:
            cards = [await self._kit.nvml.card(wanted_gpu(str(params["gpu"])))]
        else:
            cards = [card for card in await self._kit.nvml.look() if not card.lost and card.bdf]
        if not cards:
            raise Refused("NVML shows no GPU that answers")
        if unknown := [card.bdf for card in cards if card.persistence is None]:
            raise Refused(f"GPU {', '.join(unknown)} does not know persistence mode")
        return [card for card in cards if not card.persistence]
