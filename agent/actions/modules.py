"""Kernel modules: which are loaded and who uses them; loads and unloads them."""

from collections.abc import Collection
from dataclasses import dataclass

from agent.actions.base import report_progress
from agent.contract.errors import ActionError, Refused
from agent.host import Host
from agent.shared import tool

_LOAD_S = 60.0  # eight mlx5 cards take some 20 s
_UNLOAD_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModule:
    """One line of /proc/modules."""

    # Reference count; -1: it cannot be unloaded.
    uses: int
    # The modules among the users; the others are open files and devices.
    users: tuple[str, ...]


class Modules:
    """The machine's modules, through the tools `modprobe` and `rmmod` (absolute paths)."""

    def __init__(self, host: Host, *, modprobe: str, rmmod: str) -> None:
        self._host = host
        self._modprobe = modprobe
        self._rmmod = rmmod

    def loaded(self) -> dict[str, LoadedModule]:
        """By name, with underscores."""
        found = {}
        for line in self._host.read("/proc/modules").splitlines():
            name, _, uses, by = line.split()[:4]
            users = tuple(user for user in by.split(",") if user and user != "-")
            found[name] = LoadedModule(uses=int(uses) if uses.lstrip("-").isdigit() else -1, users=users)
        return found

    def present(self, name: str) -> bool:
        """Is it loaded, or built into the kernel?"""
        return name in self.loaded() or self._host.path(f"/sys/module/{name}").exists()

    def blocked(self, names: Collection[str]) -> str:
        """Why these cannot be unloaded together; empty when they can."""
        loaded = self.loaded()
        for name in names:
            if (module := loaded.get(name)) is None:
                continue
            if others := [user for user in module.users if user not in names]:
                return f"{name} is used by {', '.join(others)}"
            if module.uses < 0 or module.uses > len(module.users):
                return f"{name} is in use ({module.uses - len(module.users)} open files or devices)"
        return ""

    async def load(self, name: str) -> None:
        """ActionError when it is not there afterwards; Refused when there is no modprobe."""
        report_progress(f"loading {name}")
        ran = await tool.run([self._modprobe, name], deadline_s=_LOAD_S)
        if ran.status != 0 or not self.present(name):
            raise ActionError(f"{name} could not be loaded: {ran.last_line}")

    async def unload(self, name: str) -> None:
        """ActionError when it is still there; Refused when there is no rmmod."""
        report_progress(f"unloading {name}")
        ran = await tool.run([self._rmmod, name], deadline_s=_UNLOAD_S)
        if ran.status != 0 or name in self.loaded():
            raise ActionError(f"{name} could not be unloaded: {ran.last_line}")


def module_name(text: str) -> str:
    """A module's name as the kernel writes it; Refused when it cannot be one."""
    if not text.replace("_", "").replace("-", "").isalnum() or text.startswith("-") or not text.isascii():
        raise Refused(f"{text!r} is not the name of a kernel module")
    return text.replace("-", "_")
