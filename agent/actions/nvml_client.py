"""NVML for actions: a short-lived child process per question (agent/nvml/ask.py), so that a hung driver costs a child."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.contract import components
from agent.contract.errors import ActionError, ContractError, Refused, TimedOut, Unreachable
from agent.shared import tool

AMPERE = 7  # NVML_DEVICE_ARCH_AMPERE
_CHILD = Path(__file__).resolve().parents[1] / "nvml" / "ask.py"
_REFUSALS = {2: "not a valid value", 3: "not supported by this card", 4: "the agent has no permission"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuState:
    """One GPU as NVML shows it now. None: this driver or card does not report the value."""

    # NVML's index.
    index: int
    # `0000:3b:00`; empty when NVML did not tell which GPU it is.
    bdf: str
    # The PCI address as NVML writes it.
    bus: str
    uuid: str
    # lost, reset_required, not_found, unknown_error (it answers less than half of what it is asked); empty: it answers.
    lost: str
    arch: int | None
    limit_mw: int | None
    default_mw: int | None
    least_mw: int | None
    most_mw: int | None
    persistence: bool | None
    # Processes that use it.
    pids: tuple[int, ...]
    # 0 not supported, 1 not started, 2 in progress, 3 completed.
    fabric_state: int | None
    # NVML return code of the registration with the fabric, valid when completed.
    fabric_status: int | None
    # Recovery action: 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset.
    recovery: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NvLink:
    """One NVLink of a GPU."""

    number: int
    # A link that sleeps to save power is active.
    active: bool
    # 0: the driver does not report it.
    mb_per_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLinks:
    """The links of one GPU as NVML shows them now. None: this driver or card does not report the value."""

    # `0000:3b:00`; empty when NVML did not tell which GPU it is.
    bdf: str
    # As in GpuState.
    lost: str
    # PCIe lanes, and the most that card and slot can have together.
    width: int | None
    width_max: int | None
    # PCIe generation, and the highest that card and system can have together.
    generation: int | None
    generation_max: int | None
    # Performance state, 0 (most) to 15: below 0 the PCIe link may run slower to save power.
    performance: int | None
    nvlinks: tuple[NvLink, ...]


class NvmlClient:
    """Reads and sets. `env` is added to the child's environment (tests: a library path)."""

    def __init__(self, *, deadline_s: float = 20.0, env: Mapping[str, str] | None = None) -> None:
        self._deadline_s = deadline_s
        self._env = dict(env or {})

    async def gpus(self) -> list[GpuState]:
        """All GPUs. Refused where there is no NVML; Unreachable when the driver does not answer."""
        try:
            answer = await self._ask("look")
        except TimedOut as error:
            raise Unreachable(f"the NVIDIA driver does not answer: {error}") from error
        return [_gpu(raw) for raw in answer["gpus"]]

    async def links(self) -> list[GpuLinks]:
        """The links of all GPUs; errors as of `gpus`."""
        try:
            answer = await self._ask("links")
        except TimedOut as error:
            raise Unreachable(f"the NVIDIA driver does not answer: {error}") from error
        return [_links(raw) for raw in answer["gpus"]]

    async def gpu(self, bdf: str) -> GpuState:
        """The GPU at this address; Refused when it is not shown or does not answer."""
        gpus = await self.gpus()
        found = next((one for one in gpus if one.bdf == bdf), None)
        if found is None:
            shown = ", ".join(one.bdf or f"index {one.index} ({one.lost})" for one in gpus) or "none"
            raise Refused(f"NVML does not show GPU {bdf} (it shows: {shown})")
        if found.lost:
            raise Refused(f"GPU {bdf} does not answer: NVML calls it {found.lost}")
        return found

    async def set_power_limit(self, gpu: GpuState, limit_mw: int) -> None:
        """Refused when NVML does not allow it; TimedOut when the driver does not answer."""
        await self._ask("power_limit", gpu.bus, str(limit_mw))

    async def set_persistence(self, gpu: GpuState, on: bool) -> None:
        """As `set_power_limit`."""
        await self._ask("persistence", gpu.bus, str(int(on)))

    async def _ask(self, *args: str) -> dict[str, Any]:
        argv = [sys.executable, "-I", str(_CHILD), *args]
        # Our own code, so it gets our environment, as the source's child does: LD_LIBRARY_PATH may name the driver's folder.
        ran = await tool.run(argv, deadline_s=self._deadline_s, env=os.environ | self._env)
        try:
            answer = json.loads(ran.out)
        except ValueError:
            raise ActionError(f"the NVML child failed: {ran.last_line}") from None
        if "absent" in answer:
            raise Refused(f"there is no NVML here: {answer['absent']}")
        if "error" in answer:
            why = f"NVML says: {answer['why']}"
            if reason := _REFUSALS.get(answer["error"]):
                raise Refused(f"{why} ({reason})")
            raise ActionError(why)
        return dict(answer)


def gpu_address(component: str) -> str:
    """The PCI address of `gpu/<bdf>`, with or without a MIG part; Refused for anything else."""
    try:
        if components.type_of(components.check(component)) != "gpu":
            raise Refused(f"{component!r} is not a GPU: want gpu/<PCI address>")
        return components.bdf(components.name_of(component).partition("/")[0])
    except ContractError as error:
        raise Refused(str(error)) from error


def _bdf(raw: Mapping[str, Any]) -> str:
    try:
        return components.bdf(raw["bus"])
    except ContractError:
        return ""


def _links(raw: Mapping[str, Any]) -> GpuLinks:
    return GpuLinks(
        bdf=_bdf(raw),
        lost=raw["lost"],
        width=raw["width"],
        width_max=raw["width_max"],
        generation=raw["generation"],
        generation_max=raw["generation_max"],
        performance=raw["performance"],
        nvlinks=tuple(
            NvLink(number=number, active=state != 0, mb_per_s=speed)
            for number, state, speed in raw["nvlinks"]
        ),
    )


def _gpu(raw: Mapping[str, Any]) -> GpuState:
    return GpuState(
        index=raw["index"],
        bdf=_bdf(raw),
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
