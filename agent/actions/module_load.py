"""module.load: loads kernel modules of the agent's list and checks that they are there."""

from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params
from agent.actions.modules import Modules, module_name
from agent.contract.errors import ActionError, Refused


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
        """One line for each."""
        names, refused = self._asked_for(params)
        lines = [
            f"nothing: {name} is loaded" if self._modules.present(name) else f"load {name}" for name in names
        ]
        return [*lines, *refused]

    async def run(self, params: Params) -> Done:
        """Loads those that are not there. One that cannot be loaded, or may not be, keeps none of the others out."""
        names, failed = self._asked_for(params)
        done = []
        for name in names:
            if self._modules.present(name):
                done.append(f"{name} was loaded already")
                continue
            try:
                await self._modules.load(name)
            except ActionError as error:
                failed.append(str(error))
            else:
                done.append(f"{name} loaded")
        if failed:
            raise ActionError("; ".join([*failed, *done]))
        return Done(text="; ".join(done))

    async def recover(self, params: Params) -> None:
        """Nothing to repair: each was loaded or it was not."""

    def _asked_for(self, params: Params) -> tuple[list[str], list[str]]:
        """The modules that may be loaded, and why the others may not; Refused: none may."""
        names = list(dict.fromkeys(module_name(name) for name in str(params["module"]).split()))
        listed = ", ".join(sorted(self._allowed)) or "none"
        refused = [
            f"{name} is not among this node's `loadable_modules` ({listed})"
            for name in names
            if name not in self._allowed
        ]
        if len(refused) == len(names):
            raise Refused("; ".join(refused) or "no module is named")
        return [name for name in names if name in self._allowed], refused
