"""gpu.reset: one GPU, or all where the topology wants it; nobody may hold a GPU, and what held one comes back.

Topology (NVIDIA's fabric manager guide, NVSentinel's 019/020): with NVSwitches an A100 can only be reset together with
all the others; Hopper and later, and Ampere with direct NVLinks, singly. Before Ampere it is not supported.
"""

from dataclasses import dataclass
from typing import ClassVar

from agent.actions import tool
from agent.actions.base import Done, Params, say
from agent.actions.gpus import GpuKit
from agent.actions.nvml import AMPERE, Card, wanted_gpu
from agent.contract.components import NODE
from agent.contract.errors import ActionError, Refused

RESET_S = 120.0
_DRM = "nvidia_drm"  # holds every GPU by itself
# Exit statuses of nvidia-smi (its manual): not available on the device, no permission, not implemented.
_SMI_NO = (3, 4, 13)
_SMI_OFF_BUS = 15
_WANTS_RESET = (1, 4)  # recovery actions: reset; drain and reset


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    cards: tuple[Card, ...]  # those that are reset
    every: bool  # all of the machine
    why: str
    pids: tuple[int, ...]


class GpuReset:
    """See the module's docstring."""

    name: ClassVar[str] = "gpu.reset"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit

    async def plan(self, params: Params) -> list[str]:
        """The services, the module, the reset, the way back."""
        job = await self._checked(params)
        await self._kit.quiet.check(named=job.pids)
        services = await self._kit.quiet.running()
        which = f"all {len(job.cards)} GPUs" if job.every else f"GPU {job.cards[0].bdf}"
        lines = ["pause the agent's own NVML source", *(f"stop {unit}" for unit in services)]
        if _DRM in self._kit.modules.loaded():
            lines.append(f"unload {_DRM}, and load it afterwards")
        lines += [f"reset {which} ({job.why})", f"wait until NVML shows {which} as well"]
        return lines + [f"start {unit}" for unit in reversed(services)]

    async def run(self, params: Params) -> Done:
        """Does it."""
        job = await self._checked(params)
        kit = self._kit
        async with kit.quiet.have(named=job.pids, unloading=(_DRM,)) as note:
            if _DRM in kit.modules.loaded():
                if why := kit.modules.blocked([_DRM]):
                    raise Refused(why)
                await kit.modules.unload(_DRM)
            await self._reset(job)
            cards = await kit.until_answers(frozenset(card.bdf for card in job.cards))
        wanting = [
            one.bdf
            for one in cards
            if one.recovery in _WANTS_RESET and one.bdf in {card.bdf for card in job.cards}
        ]
        if wanting:
            raise ActionError(f"reset, and the driver still wants a reset of {', '.join(wanting)}")
        fabric = ""
        if kit.config.fabric_manager_unit in note.services and (count := await kit.until_fabric()):
            fabric = f", {count} GPUs in the fabric"
        which = f"all {len(job.cards)} GPUs" if job.every else f"GPU {job.cards[0].bdf}"
        services = f", {len(note.services)} services stopped and started" if note.services else ""
        return Done(text=f"{which} reset and well again{services}{fabric}")

    async def recover(self, params: Params) -> None:  # noqa: ARG002 - the note says all
        """The agent died while it ran: loads and starts what was taken away."""
        await self._kit.quiet.recover()

    async def _checked(self, params: Params) -> _Job:
        cards = await self._kit.nvml.look()
        if not cards:
            raise Refused("NVML shows no GPU")
        pids = tuple(pid for card in cards for pid in card.pids)
        component = str(params.get("gpu", NODE))
        together = self._kit.nvswitches() > 0 and any(card.arch == AMPERE for card in cards)
        if component == NODE:
            chosen, why = tuple(cards), "asked for"
        else:
            bdf = wanted_gpu(component)
            own = tuple(card for card in cards if card.bdf == bdf)
            if not own:
                lost = "it has fallen off the bus" if self._kit.off_bus(bdf) else "NVML does not show it"
                raise Refused(f"GPU {bdf} cannot be reset: {lost}; it needs a power cycle of the node")
            chosen, why = (tuple(cards), "A100 with NVSwitch: only together") if together else (own, "alone")
        for card in chosen:
            name = card.bdf or f"index {card.index}"
            if not card.bdf or card.lost in ("lost", "not_found") or self._kit.off_bus(card.bdf):
                raise Refused(
                    f"GPU {name} has fallen off the bus: it needs a power cycle of the node, not a reset"
                )
            if card.arch is None or card.arch < AMPERE:
                raise Refused(f"GPU {name} is older than Ampere: it cannot be reset")
        return _Job(cards=chosen, every=component == NODE or together, why=why, pids=pids)

    async def _reset(self, job: _Job) -> None:
        chosen = [] if job.every else ["-i", job.cards[0].uuid or job.cards[0].bus]
        argv = [self._kit.config.nvidia_smi, "--gpu-reset", *chosen]
        say(f"resetting {'all GPUs' if job.every else job.cards[0].bdf}")
        ran = await tool.run(argv, deadline_s=RESET_S)
        if ran.status in _SMI_NO:
            raise Refused(f"nvidia-smi refuses the reset: {ran.says}")
        if ran.status == _SMI_OFF_BUS:
            raise ActionError(f"the GPU has fallen off the bus: it needs a power cycle ({ran.says})")
        if ran.status != 0:
            raise ActionError(f"the reset failed: {ran.says}")
