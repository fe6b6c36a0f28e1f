"""The kernel modules of a network card's driver, unloaded and loaded together."""

from collections.abc import Mapping

from agent.actions.modules import Modules
from agent.contract.errors import ActionError
from agent.host import Host

# Driver → prefix of the names of all its modules: only these may be unloaded, e.g. mlx5_ib and mlx5_vdpa.
RELOADED: Mapping[str, str] = {"mlx5_core": "mlx5_"}


class DriverModules:
    """`reloaded`: see RELOADED."""

    def __init__(self, host: Host, modules: Modules, reloaded: Mapping[str, str] = RELOADED) -> None:
        self._host = host
        self._modules = modules
        self._reloaded = reloaded

    def loaded(self, driver: str) -> list[str]:
        """The driver's modules in the order in which they are loaded; ActionError when it is not a driver that may be
        reloaded, or when another module uses it.
        """
        prefix = self._reloaded.get(driver)
        if prefix is None or driver not in self._modules.loaded():
            raise ActionError(f"the driver {driver or '(none)'} is not one that is reloaded")
        order = [driver]
        for module in order:
            for user in self._host.listdir(f"/sys/module/{module}/holders"):
                if not user.startswith(prefix):
                    raise ActionError(
                        f"{module} is used by the module {user}, which is not part of the driver"
                    )
                # One that uses two of them comes after both.
                if user in order:
                    order.remove(user)
                order.append(user)
        return order

    async def unload(self, modules: list[str]) -> None:
        """Unloads them in reverse order; ActionError when the kernel refuses."""
        for module in reversed(modules):
            await self._modules.unload(module)

    async def load(self, modules: list[str]) -> None:
        """Loads those that are missing; ActionError when one could not be loaded."""
        loaded, problems = self._modules.loaded(), []
        for module in modules:
            if module not in loaded:
                try:
                    await self._modules.load(module)
                except ActionError as error:
                    problems.append(str(error))
        if problems:
            raise ActionError("; ".join(problems))
