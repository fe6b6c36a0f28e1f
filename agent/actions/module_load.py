"""module.load: one kernel module of the agent's list, and sees that it is there."""

from typing import ClassVar

from agent.actions.base import Done, Params
from agent.actions.modules import Modules, plain
from agent.contract.errors import Refused


class ModuleLoad:
    """See the module's docstring."""

    name: ClassVar[str] = "module.load"

    def __init__(self, modules: Modules, allowed: tuple[str, ...]) -> None:
        self._modules = modules
        self._allowed = {plain(name) for name in allowed}

    async def plan(self, params: Params) -> list[str]:
        """One line."""
        name = self._checked(params)
        return [f"nothing: {name} is loaded"] if self._modules.present(name) else [f"load {name}"]

    async def run(self, params: Params) -> Done:
        """Loads it, unless it is there."""
        name = self._checked(params)
        if self._modules.present(name):
            return Done(text=f"{name} was loaded already")
        await self._modules.load(name)
        return Done(text=f"{name} loaded")

    async def recover(self, params: Params) -> None:
        """Nothing: it was loaded or it was not."""

    def _checked(self, params: Params) -> str:
        name = plain(str(params["module"]))
        if name not in self._allowed:
            listed = ", ".join(sorted(self._allowed)) or "none"
            raise Refused(f"{name} is not among this node's `loadable_modules` ({listed})")
        return name
