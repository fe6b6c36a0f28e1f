"""The kernel modules of a network card's driver, unloaded and loaded anew."""

from collections.abc import Mapping

from agent.actions import tool
from agent.contract.errors import ActionError
from agent.host import Host

# Driver → what the names of all its modules begin with: only these are ours to unload, e.g. mlx5_ib and mlx5_vdpa.
RELOADED: Mapping[str, str] = {"mlx5_core": "mlx5_"}
_UNLOAD_S = 60.0
_LOAD_S = 60.0  # eight cards take some 20 s


class DriverModules:
    """`rmmod`, `modprobe`: absolute paths of the tools. `reloaded`: see RELOADED."""

    def __init__(self, host: Host, *, rmmod: str, modprobe: str, reloaded: Mapping[str, str]) -> None:
        self._host = host
        self._rmmod = rmmod
        self._modprobe = modprobe
        self._reloaded = reloaded

    def loaded(self, driver: str) -> list[str]:
        """The driver's modules in the order in which they are loaded; ActionError when it is not one that is reloaded
        here, or when another module holds it.
        """
        family = self._reloaded.get(driver)
        if family is None or not self._there(driver):
            raise ActionError(f"the driver {driver or '(none)'} is not one that is reloaded")
        order = [driver]
        for module in order:
            for holder in self._host.listdir(f"/sys/module/{module}/holders"):
                if not holder.startswith(family):
                    raise ActionError(f"{module} is held by the module {holder}, which is not part of it")
                # One that holds two of them comes after both.
                if holder in order:
                    order.remove(holder)
                order.append(holder)
        return order

    async def unload(self, modules: list[str]) -> None:
        """Unloads them in reverse order; ActionError when the kernel refuses."""
        ran = await tool.run([self._rmmod, *reversed(modules)], deadline_s=_UNLOAD_S)
        if ran.status != 0:
            raise ActionError(f"rmmod: {ran.says}")

    async def load(self, modules: list[str]) -> None:
        """Loads those that are not there; ActionError when one could not be loaded."""
        trouble = []
        for module in modules:
            if not self._there(module):
                ran = await tool.run([self._modprobe, module], deadline_s=_LOAD_S)
                if ran.status != 0:
                    trouble.append(f"{module}: {ran.says}")
        if trouble:
            raise ActionError(f"not loaded again: {'; '.join(trouble)}")

    def _there(self, module: str) -> bool:
        return bool(self._host.read(f"/sys/module/{module}/refcnt"))
