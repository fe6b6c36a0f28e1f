"""gpu.power_limit: sets a GPU's power limit within what the card allows, and reads it back."""

from typing import ClassVar

from agent.actions.base import Done, Params, number
from agent.actions.gpus import GpuKit
from agent.actions.nvml import Card, wanted_gpu
from agent.contract.errors import ActionError, Refused

LEAST_PERCENT, MOST_PERCENT = 40.0, 100.0


class GpuPowerLimit:
    """See the module's docstring. The limit lasts until the driver is loaded anew, or the GPU reset."""

    name: ClassVar[str] = "gpu.power_limit"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit

    async def plan(self, params: Params) -> list[str]:
        """One line."""
        card, limit_mw = await self._checked(params)
        return [f"set the power limit of GPU {card.bdf} to {_w(limit_mw)} (now {_w(card.limit_mw)})"]

    async def run(self, params: Params) -> Done:
        """Sets it."""
        card, limit_mw = await self._checked(params)
        await self._kit.nvml.set_power_limit(card, limit_mw)
        now = await self._kit.nvml.card(card.bdf)
        if now.limit_mw is None or abs(now.limit_mw - limit_mw) > 1000:  # some cards round to watts
            raise ActionError(
                f"the power limit of GPU {card.bdf} is {_w(now.limit_mw)}, not {_w(limit_mw)} as set"
            )
        return Done(text=f"the power limit of GPU {card.bdf} is {_w(now.limit_mw)}, was {_w(card.limit_mw)}")

    async def recover(self, params: Params) -> None:
        """Nothing: it was set or it was not."""

    async def _checked(self, params: Params) -> tuple[Card, int]:
        percent = number(params, "percent", MOST_PERCENT, LEAST_PERCENT, MOST_PERCENT)
        card = await self._kit.nvml.card(wanted_gpu(str(params["gpu"])))
        if card.default_mw is None or card.least_mw is None or card.most_mw is None:
            raise Refused(f"GPU {card.bdf} has no power limit that can be set")
        limit_mw = round(card.default_mw * percent / 100)
        if not card.least_mw <= limit_mw <= card.most_mw:
            raise Refused(
                f"{percent:g} % is {_w(limit_mw)}; GPU {card.bdf} allows {_w(card.least_mw)} to {_w(card.most_mw)}"
            )
        return card, limit_mw


def _w(milliwatts: int | None) -> str:
    return "unknown" if milliwatts is None else f"{milliwatts / 1000:g} W"
