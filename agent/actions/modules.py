"""Kernel modules: what is loaded, who uses it, load and unload."""

from collections.abc import Collection
from dataclasses import dataclass

from agent.actions import tool
from agent.actions.base import say
from agent.contract.errors import ActionError, Refused
from agent.host import Host

_LOAD_S, _UNLOAD_S = 60.0, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """One line of /proc/modules."""

    uses: int  # reference count; -1: it cannot be unloaded
    by: tuple[str, ...]  # the modules among the users; the others are open files and devices


class Modules:
    """The machine's modules, through the tools `modprobe` and `rmmod` (absolute paths)."""

    def __init__(self, host: Host, *, modprobe: str, rmmod: str) -> None:
        self._host = host
        self._modprobe = modprobe
        self._rmmod = rmmod

    def loaded(self) -> dict[str, Loaded]:
        """By name, with underscores."""
        found = {}
        for line in self._host.read("/proc/modules").splitlines():
            name, _, uses, by = line.split()[:4]
            users = tuple(user for user in by.split(",") if user and user != "-")
            found[name] = Loaded(uses=int(uses) if uses.lstrip("-").isdigit() else -1, by=users)
        return found

    def present(self, name: str) -> bool:
        """Loaded, or built into the kernel."""
        return name in self.loaded() or self._host.path(f"/sys/module/{name}").exists()

    def blocked(self, names: Collection[str]) -> str:
        """Why these cannot be unloaded together; empty when they can."""
        loaded = self.loaded()
        for name in names:
            if (module := loaded.get(name)) is None:
                continue
            if others := [user for user in module.by if user not in names]:
                return f"{name} is used by {', '.join(others)}"
            if module.uses < 0 or module.uses > len(module.by):
                return f"{name} is in use ({module.uses - len(module.by)} open files or devices)"
        return ""

    async def load(self, name: str) -> None:
        """ActionError when it is not there afterwards; Refused when there is no modprobe."""
        say(f"loading {name}")
        ran = await tool.run([self._modprobe, name], deadline_s=_LOAD_S)
        if ran.status != 0 or not self.present(name):
            raise ActionError(f"{name} could not be loaded: {ran.says}")

    async def unload(self, name: str) -> None:
        """ActionError when it is still there."""
        say(f"unloading {name}")
        ran = await tool.run([self._rmmod, name], deadline_s=_UNLOAD_S)
        if ran.status != 0 or name in self.loaded():
            raise ActionError(f"{name} could not be unloaded: {ran.says}")


def plain(name: str) -> str:
    """A module's name as the kernel writes it; Refused when it is none."""
    if not name.replace("_", "").replace("-", "").isalnum() or name.startswith("-") or not name.isascii():
        raise Refused(f"{name!r} is not the name of a kernel module")
    return name.replace("-", "_")
