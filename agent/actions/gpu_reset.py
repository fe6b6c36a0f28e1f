"""gpu.reset: resets one GPU, or all where the topology requires it; no process may hold a GPU, and the services that were
stopped for it are started again.

Topology (NVIDIA's fabric manager guide, NVSentinel's 019/020): with NVSwitches an A100 can only be reset together with
all the others; Hopper and later, and Ampere with direct NVLinks, singly. Before Ampere a reset is not supported.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params, report_progress
from agent.actions.gpus import GpuKit
from agent.actions.nvml_client import AMPERE, GpuState, gpu_address
from agent.contract.components import NODE
from agent.contract.counted import counted
from agent.contract.errors import ActionError, Refused
from agent.shared import tool

RESET_S = 120.0
_DRM = "nvidia_drm"  # holds every GPU by itself
# Exit statuses of nvidia-smi (its manual): not available on the device, no permission, not implemented.
_SMI_NO = (3, 4, 13)
_SMI_OFF_BUS = 15
_WANTS_RESET = (1, 4)  # recovery actions: reset; drain and reset


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reset:
    # The GPUs that are reset, and whether these are all of the machine.
    gpus: tuple[GpuState, ...]
    every: bool
    # Why these.
    why: str
    # Processes that use any GPU.
    pids: tuple[int, ...]

    @property
    def text(self) -> str:
        return f"all {len(self.gpus)} GPUs" if self.every else f"GPU {self.gpus[0].bdf}"


class GpuReset(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "gpu.reset"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.gpus)

    async def plan(self, params: Params) -> list[str]:
        """The services, the module, the reset, and the services again."""
        reset = await self._checked(params)
        await self._kit.quiesce.check(named=reset.pids)
        services = await self._kit.quiesce.running()
        lines = ["pause the agent's own NVML source", *(f"stop {unit}" for unit in services)]
        if _DRM in self._kit.modules.loaded():
            lines.append(f"unload {_DRM}, and load it afterwards")
        lines += [f"reset {reset.text} ({reset.why})", f"wait until NVML shows {reset.text} as well"]
        return lines + [f"start {unit}" for unit in reversed(services)]

    async def run(self, params: Params) -> Done:
        """Does it."""
        reset = await self._checked(params)
        kit = self._kit
        async with kit.quiesce.quiesced(named=reset.pids, unloading=(_DRM,)) as stopped:
            if _DRM in kit.modules.loaded():
                if why := kit.modules.blocked([_DRM]):
                    raise Refused(why)
                await kit.modules.unload(_DRM)
            await self._reset(reset)
            gpus = await kit.until_answers(frozenset(gpu.bdf for gpu in reset.gpus))
        wanting = [
            one.bdf
            for one in gpus
            if one.recovery in _WANTS_RESET and one.bdf in {gpu.bdf for gpu in reset.gpus}
        ]
        if wanting:
            raise ActionError(f"reset, and the driver still wants a reset of {', '.join(wanting)}")
        fabric = ""
        if kit.config.fabric_manager_unit in stopped.services and (count := await kit.until_fabric()):
            fabric = f", {counted(count, 'GPU')} in the fabric"
        services = f", {len(stopped.services)} services stopped and started" if stopped.services else ""
        return Done(text=f"{reset.text} reset and well again{services}{fabric}")

    async def recover(self, params: Params) -> None:  # noqa: ARG002 - the note of what is stopped counts
        """Loads and starts what was stopped for it."""
        await self._kit.quiesce.recover()

    async def _checked(self, params: Params) -> _Reset:
        gpus = await self._kit.nvml.gpus()
        if not gpus:
            raise Refused("NVML shows no GPU")
        pids = tuple(pid for gpu in gpus for pid in gpu.pids)
        component = str(params.get("gpu", NODE))
        together = self._kit.nvswitches() > 0 and any(gpu.arch == AMPERE for gpu in gpus)
        if component == NODE:
            chosen, why = tuple(gpus), "asked for"
        else:
            bdf = gpu_address(component)
            own = tuple(gpu for gpu in gpus if gpu.bdf == bdf)
            if not own:
                lost = "it has fallen off the bus" if self._kit.off_bus(bdf) else "NVML does not show it"
                raise Refused(f"GPU {bdf} cannot be reset: {lost}; it needs a power cycle of the node")
            chosen, why = (tuple(gpus), "A100 with NVSwitch: only together") if together else (own, "alone")
        for gpu in chosen:
            name = gpu.bdf or f"index {gpu.index}"
            if not gpu.bdf or gpu.lost in ("lost", "not_found") or self._kit.off_bus(gpu.bdf):
                raise Refused(
                    f"GPU {name} has fallen off the bus: it needs a power cycle of the node, not a reset"
                )
            if gpu.arch is None or gpu.arch < AMPERE:
                raise Refused(f"GPU {name} is older than Ampere: it cannot be reset")
        return _Reset(gpus=chosen, every=component == NODE or together, why=why, pids=pids)

    async def _reset(self, reset: _Reset) -> None:
        chosen = [] if reset.every else ["-i", reset.gpus[0].uuid or reset.gpus[0].bus]
        argv = [self._kit.config.nvidia_smi, "--gpu-reset", *chosen]
        report_progress(f"resetting {'all GPUs' if reset.every else reset.gpus[0].bdf}")
        ran = await tool.run(argv, deadline_s=RESET_S)
        if ran.status in _SMI_NO:
            raise Refused(f"nvidia-smi refuses the reset: {ran.last_line}")
        if ran.status == _SMI_OFF_BUS:
            raise ActionError(f"the GPU has fallen off the bus: it needs a power cycle ({ran.last_line})")
        if ran.status != 0:
            raise ActionError(f"the reset failed: {ran.last_line}")
