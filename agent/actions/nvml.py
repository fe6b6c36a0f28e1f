"""NVML for actions: one short-lived child per question (agent/nvml_ask.py), so that a hung driver costs a child."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.actions import tool
from agent.contract import components
from agent.contract.errors import ActionError, ContractError, Refused, TimedOut, Unreachable

AMPERE = 7  # NVML_DEVICE_ARCH_AMPERE
_CHILD = Path(__file__).resolve().parents[1] / "nvml_ask.py"
_REFUSALS = {2: "not a valid value", 3: "not supported by this card", 4: "the agent has no permission"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One GPU as NVML shows it. None: this driver or card does not say it."""

    index: int
    bdf: str  # `0000:3b:00`; empty when NVML did not say which GPU it is
    bus: str  # as NVML writes it
    uuid: str
    lost: str  # lost, reset_required, not_found; empty: it answers
    arch: int | None
    limit_mw: int | None
    default_mw: int | None
    least_mw: int | None
    most_mw: int | None
    persistence: bool | None
    pids: tuple[int, ...]
    fabric_state: int | None  # 0 not supported, 1 not started, 2 in progress, 3 completed
    fabric_status: int | None  # NVML return code of the registration, valid when completed
    recovery: int | None  # recovery action: 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset


class Nvml:
    """Asks and orders. `env` is added to the child's environment (tests: a library path)."""

    def __init__(self, *, deadline_s: float = 20.0, env: Mapping[str, str] | None = None) -> None:
        self._deadline_s = deadline_s
        self._env = dict(env or {})

    async def look(self) -> list[Card]:
        """All GPUs. Refused where there is no NVML; Unreachable when the driver does not answer."""
        try:
            said = await self._ask("look")
        except TimedOut as error:
            raise Unreachable(f"the NVIDIA driver does not answer: {error}") from error
        return [_card(raw) for raw in said["gpus"]]

    async def card(self, bdf: str) -> Card:
        """The one with this address, which answers; Refused when it does not."""
        cards = await self.look()
        found = next((one for one in cards if one.bdf == bdf), None)
        if found is None:
            shown = ", ".join(one.bdf or f"index {one.index} ({one.lost})" for one in cards) or "none"
            raise Refused(f"NVML does not show GPU {bdf} (it shows: {shown})")
        if found.lost:
            raise Refused(f"GPU {bdf} does not answer: NVML calls it {found.lost}")
        return found

    async def set_power_limit(self, card: Card, limit_mw: int) -> None:
        """Refused when NVML says that it cannot be; TimedOut when it does not answer."""
        await self._ask("power_limit", card.bus, str(limit_mw))

    async def set_persistence(self, card: Card, on: bool) -> None:
        """As `set_power_limit`."""
        await self._ask("persistence", card.bus, str(int(on)))

    async def _ask(self, *words: str) -> dict[str, Any]:
        argv = [sys.executable, "-I", str(_CHILD), *words]
        # Our own code, and no tool: it has our environment, as the source's child has. LD_LIBRARY_PATH may name the driver's.
        ran = await tool.run(argv, deadline_s=self._deadline_s, env=os.environ | self._env)
        try:
            said = json.loads(ran.out)
        except ValueError:
            raise ActionError(f"the NVML child failed: {ran.says}") from None
        if "absent" in said:
            raise Refused(f"there is no NVML here: {said['absent']}")
        if "error" in said:
            why = f"NVML says: {said['why']}"
            if reason := _REFUSALS.get(said["error"]):
                raise Refused(f"{why} ({reason})")
            raise ActionError(why)
        return dict(said)


def wanted_gpu(component: str) -> str:
    """The PCI address of `gpu/<bdf>`, with or without a MIG part; Refused for anything else."""
    try:
        if components.type_of(components.check(component)) != "gpu":
            raise Refused(f"{component!r} is not a GPU: want gpu/<PCI address>")
        return components.bdf(components.name_of(component).partition("/")[0])
    except ContractError as error:
        raise Refused(str(error)) from error


def _card(raw: Mapping[str, Any]) -> Card:
    try:
        bdf = components.bdf(raw["bus"])
    except ContractError:
        bdf = ""
    return Card(
        index=raw["index"],
        bdf=bdf,
        bus=raw["bus"],
        uuid=raw["uuid"],
        lost=raw["lost"],
        arch=raw["arch"],
        limit_mw=raw["limit"],
        default_mw=raw["default"],
        least_mw=raw["least"],
        most_mw=raw["most"],
        persistence=None if raw["persistence"] is None else bool(raw["persistence"]),
        pids=tuple(raw["pids"]),
        fabric_state=raw["fabric"][0] if raw["fabric"] else None,
        fabric_status=raw["fabric"][1] if raw["fabric"] else None,
        recovery=raw["recovery"],
    )
