"""module.load: loads one kernel module of the agent's list and checks that it is there."""

from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params
from agent.actions.modules import Modules, module_name
from agent.contract.errors import Refused


class ModuleLoad(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "module.load"

    def __init__(self, modules: Modules, allowed: tuple[str, ...]) -> None:
        self._modules = modules
        self._allowed = {module_name(name) for name in allowed}

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.modules, setup.config.loadable_modules)

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
        """Nothing to repair: it was loaded or it was not."""

    def _checked(self, params: Params) -> str:
        name = module_name(str(params["module"]))
        if name not in self._allowed:
            listed = ", ".join(sorted(self._allowed)) or "none"
            raise Refused(f"{name} is not among this node's `loadable_modules` ({listed})")
        return name
