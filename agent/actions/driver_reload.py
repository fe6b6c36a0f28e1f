"""driver.reload: unloads and loads the GPU driver's modules in the order of the agent's configuration.

The order of NVIDIA's gpu-driver-container: services stop, reference counts are checked, modules are unloaded from the one
that no other uses down to the base, loaded the other way round, services start. However it ends, what was loaded is
loaded again.
"""

from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params
from agent.actions.gpus import GpuKit
from agent.contract.counted import counted
from agent.contract.errors import ActionError, Refused


class DriverReload(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "driver.reload"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.gpus)

    async def plan(self, params: Params) -> list[str]:  # noqa: ARG002 - it has none
        """Services, modules, and the services again."""
        going, coming = self._orders()
        await self._kit.quiesce.check(named=await self._pids())
        services = await self._kit.quiesce.running()
        lines = ["pause the agent's own NVML source", *(f"stop {unit}" for unit in services)]
        lines += [f"unload {name}" for name in going] + [f"load {name}" for name in coming]
        return lines + [f"start {unit}" for unit in reversed(services)]

    async def run(self, params: Params) -> Done:  # noqa: ARG002 - it has none
        """Does it."""
        going, coming = self._orders()
        kit = self._kit
        before = await kit.gpus()
        pids = [pid for gpu in before for pid in gpu.pids]
        async with kit.quiesce.quiesced(named=pids, unloading=going):
            if why := kit.modules.blocked(going):
                raise Refused(f"the driver cannot be unloaded: {why}")
            for name in going:
                await kit.modules.unload(name)
            skipped = await self._load(coming, going)
            well = frozenset(gpu.bdf for gpu in before if gpu.bdf and not gpu.lost)
            if well:  # GPUs that were lost may come back; those that were well must
                await kit.until_answers(well)
        fabric = ""
        if well and (count := await kit.until_fabric()):
            fabric = f", {counted(count, 'GPU')} in the fabric"
        missing = f"; without {', '.join(skipped)}" if skipped else ""
        loaded = ", ".join(name for name in coming if name not in skipped)
        return Done(text=f"driver reloaded: {loaded}{missing}; {counted(len(well), 'GPU')} answer{fabric}")

    async def recover(self, params: Params) -> None:  # noqa: ARG002 - it has none
        """Loads what was unloaded and starts what was stopped."""
        await self._kit.quiesce.recover()

    def _orders(self) -> tuple[list[str], list[str]]:
        """The modules to unload and to load, each in order."""
        config, loaded = self._kit.config, self._kit.modules.loaded()
        going = [name for name in config.driver_unload if name in loaded]
        if not going and not any(self._kit.modules.present(name) for name in config.driver_load):
            return [], list(config.driver_load)  # it is not loaded: then load all of it
        if not going:
            raise Refused("the driver is built into this kernel: it cannot be unloaded")
        return going, [name for name in config.driver_load if name in going]

    async def _load(self, coming: list[str], going: list[str]) -> list[str]:
        """Loads `coming`; returns those that failed and had not been loaded before either. The first must be loaded."""
        skipped = []
        for number, name in enumerate(coming):
            try:
                await self._kit.modules.load(name)
            except ActionError:
                if not number or name in going:
                    raise
                skipped.append(name)
        return skipped

    async def _pids(self) -> list[int]:
        return [pid for gpu in await self._kit.gpus() for pid in gpu.pids]
