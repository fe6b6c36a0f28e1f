"""What the actions on GPUs and their driver share."""

import asyncio
from dataclasses import dataclass

from agent.actions.modules import Modules
from agent.actions.nvml_client import GpuState, NvmlClient
from agent.actions.quiesce import Quiesce
from agent.actions.units import SystemdUnits, Units
from agent.config import AgentConfig
from agent.contract.errors import ActionError, Refused, Unreachable
from agent.host import Host
from agent.nvml import bus
from agent.nvml.pause import NvmlPause
from agent.shared.power_caps import FILE, PowerCaps

SETTLE_S = 60.0  # for a GPU to answer again, and for the fabric to be trained
_LOOK_S = 0.5
_FABRIC_COMPLETED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuKit:
    """The tools of one machine."""

    host: Host
    config: AgentConfig
    nvml: NvmlClient
    units: Units
    modules: Modules
    quiesce: Quiesce
    power_caps: PowerCaps
    settle_s: float = SETTLE_S

    async def gpus(self) -> list[GpuState]:
        """All GPUs; none where NVML is absent or silent, for callers that can go on without it."""
        try:
            return await self.nvml.gpus()
        except (Refused, Unreachable):
            return []

    async def until_answers(self, wanted: frozenset[str]) -> list[GpuState]:
        """The GPUs as NVML shows them once all `wanted` addresses answer; ActionError when they do not in time."""
        trouble = ""
        end_s = self.host.mono_s() + self.settle_s
        while True:
            try:
                gpus = await self.nvml.gpus()
                well = {one.bdf for one in gpus if not one.lost}
                if wanted <= well:
                    return gpus
                lost = {one.bdf: one.lost for one in gpus}
                trouble = ", ".join(f"{bdf} {lost.get(bdf, 'not shown')}" for bdf in sorted(wanted - well))
            except (Refused, Unreachable) as error:
                trouble = str(error)
            if self.host.mono_s() > end_s:
                raise ActionError(f"GPUs that answered before do not answer NVML now: {trouble}")
            await asyncio.sleep(_LOOK_S)

    async def until_fabric(self) -> int:
        """How many GPUs are in an NVLink fabric, once all of those are; ActionError when they are not in time, or when NVML
        does not answer (not Refused: the caller has done something already).
        """
        end_s = self.host.mono_s() + self.settle_s
        while True:
            trouble, gpus = "", list[GpuState]()
            try:
                gpus = [one for one in await self.nvml.gpus() if one.fabric_state]
            except (Refused, Unreachable) as error:
                trouble = str(error)
            late = [one for one in gpus if one.fabric_state != _FABRIC_COMPLETED]
            failed = [one for one in gpus if one not in late and one.fabric_status]
            if failed:
                texts = ", ".join(f"{one.bdf} (NVML code {one.fabric_status})" for one in failed)
                raise ActionError(f"GPUs could not register with the fabric: {texts}")
            if not late and not trouble:
                return len(gpus)
            if self.host.mono_s() > end_s:
                trouble = trouble or ", ".join(one.bdf for one in late)
                raise ActionError(f"the fabric state is not completed: {trouble}")
            await asyncio.sleep(_LOOK_S)

    def nvswitches(self) -> int:
        """NVSwitches on the PCI bus."""
        return sum(1 for name in self.host.listdir(bus.PCI) if bus.is_nvswitch(self.host, name))

    def is_gpu(self, bdf: str) -> bool:
        """Is function 0 at this address an NVIDIA display device?"""
        return bus.is_gpu(self.host, f"{bdf}.0")

    def off_bus(self, bdf: str) -> bool:
        """Has it fallen off the bus: is it gone, or does its configuration space read as all ones?"""
        base = f"{bus.PCI}/{bdf}.0"
        if not self.host.path(base).exists():
            return True
        try:
            with self.host.path(f"{base}/config").open("rb") as file:
                return file.read(4) == b"\xff\xff\xff\xff"
        except OSError:
            return False  # unknown: NVML will tell


def gpu_kit(host: Host, config: AgentConfig, modules: Modules, pause: NvmlPause) -> GpuKit:
    """The kit of a live machine."""
    units = SystemdUnits(config.dbus_address)
    quiesce = Quiesce(
        host,
        units=units,
        services=config.gpu_services,
        modules=modules,
        load_order=config.driver_load,
        pause=pause,
        note=config.data_dir / "gpu_driver_note.json",
    )
    return GpuKit(
        host=host,
        config=config,
        nvml=NvmlClient(),
        units=units,
        modules=modules,
        quiesce=quiesce,
        power_caps=PowerCaps(config.data_dir / FILE),
    )
