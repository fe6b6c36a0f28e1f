"""What the actions on GPUs and their driver share, made once from the agent's configuration."""

import asyncio
from dataclasses import dataclass

from agent.actions.modules import Modules
from agent.actions.nvml import Card, Nvml
from agent.actions.quiet import Quiet
from agent.actions.units import SystemdUnits, Units
from agent.config import AgentConfig
from agent.contract.errors import ActionError, Refused, Unreachable
from agent.host import Host
from agent.nvml_pause import NvmlPause

NVIDIA = "0x10de"
SETTLE_S = 60.0  # for a GPU to answer again, and for the fabric to be trained
_LOOK_S = 0.5
_FABRIC_COMPLETED = 3
_DISPLAY, _BRIDGE = "0x03", "0x0680"  # PCI classes of GPUs and of NVSwitches


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuKit:
    """The tools of one machine."""

    host: Host
    config: AgentConfig
    nvml: Nvml
    units: Units
    modules: Modules
    quiet: Quiet
    settle_s: float = SETTLE_S

    async def cards(self) -> list[Card]:
        """All GPUs; none where NVML is absent or silent: who asks does not depend on it."""
        try:
            return await self.nvml.look()
        except (Refused, Unreachable):
            return []

    async def until_answers(self, wanted: frozenset[str]) -> list[Card]:
        """The GPUs as NVML shows them once all `wanted` addresses answer; ActionError when they do not in time."""
        trouble = ""
        end_s = self.host.mono_s() + self.settle_s
        while True:
            try:
                cards = await self.nvml.look()
                well = {one.bdf for one in cards if not one.lost}
                if wanted <= well:
                    return cards
                lost = {one.bdf: one.lost for one in cards}
                trouble = ", ".join(f"{bdf} {lost.get(bdf, 'not shown')}" for bdf in sorted(wanted - well))
            except (Refused, Unreachable) as error:
                trouble = str(error)
            if self.host.mono_s() > end_s:
                raise ActionError(f"NVML does not show all GPUs as well afterwards: {trouble}")
            await asyncio.sleep(_LOOK_S)

    async def until_fabric(self) -> int:
        """How many GPUs are in an NVLink fabric, once all of those are; ActionError when they are not in time, or when NVML
        cannot say: who asks has done something already.
        """
        end_s = self.host.mono_s() + self.settle_s
        while True:
            trouble, cards = "", list[Card]()
            try:
                cards = [one for one in await self.nvml.look() if one.fabric_state]
            except (Refused, Unreachable) as error:
                trouble = str(error)
            late = [one for one in cards if one.fabric_state != _FABRIC_COMPLETED]
            failed = [one for one in cards if one not in late and one.fabric_status]
            if failed:
                texts = ", ".join(f"{one.bdf} (NVML code {one.fabric_status})" for one in failed)
                raise ActionError(f"GPUs could not register with the fabric: {texts}")
            if not late and not trouble:
                return len(cards)
            if self.host.mono_s() > end_s:
                trouble = trouble or ", ".join(one.bdf for one in late)
                raise ActionError(f"the fabric state is not completed: {trouble}")
            await asyncio.sleep(_LOOK_S)

    def nvswitches(self) -> int:
        """NVSwitches on the PCI bus."""
        return sum(1 for name in self.host.listdir("/sys/bus/pci/devices") if self._is(name, _BRIDGE))

    def is_gpu(self, bdf: str) -> bool:
        """Is function 0 at this address an NVIDIA display device?"""
        return self._is(f"{bdf}.0", _DISPLAY)

    def off_bus(self, bdf: str) -> bool:
        """Is it gone, or does its configuration space read as all ones: has it fallen off the bus?"""
        base = f"/sys/bus/pci/devices/{bdf}.0"
        if not self.host.path(base).exists():
            return True
        try:
            with self.host.path(f"{base}/config").open("rb") as file:
                return file.read(4) == b"\xff\xff\xff\xff"
        except OSError:
            return False  # nobody knows; NVML will say

    def _is(self, name: str, pci_class: str) -> bool:
        base = f"/sys/bus/pci/devices/{name}"
        return self.host.read(f"{base}/vendor") == NVIDIA and self.host.read(f"{base}/class").startswith(
            pci_class
        )


def gpu_kit(host: Host, config: AgentConfig, pause: NvmlPause) -> GpuKit:
    """The kit of a live machine."""
    units = SystemdUnits(config.dbus_address)
    modules = Modules(host, modprobe=config.modprobe, rmmod=config.rmmod)
    quiet = Quiet(
        host,
        units=units,
        services=config.gpu_services,
        modules=modules,
        load_order=config.driver_load,
        pause=pause,
        note=config.data_dir / "gpu_driver_note.json",
    )
    return GpuKit(host=host, config=config, nvml=Nvml(), units=units, modules=modules, quiet=quiet)
