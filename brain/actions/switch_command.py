"""Switch ports through a tool of the site: one argument list, run on the brain's host or by ssh on a management host.

`{switch}`, `{port}` and `{do}` in it are replaced by checked names; `do` is disable, enable or state. What it prints
for `state` must match one of the three patterns.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agent.contract import components
from agent.contract.errors import ActionError, ConfigError, Unreachable
from agent.shared.tool import Completed
from brain.actions import tools
from brain.actions.cables import CableMap
from brain.actions.switch import PortState, SwitchEnd
from brain.options import options
from brain.ufm.client import Ufm

_PLACES = ("{switch}", "{port}", "{do}")
READ_TRIES = 3  # reading costs nothing, and one lost packet must not lead to a harder remedy
RETRY_S = 1.0
_SSH_LOST = 255  # ssh itself failed, before the remote command


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions:
    """The keys of a table with `type = "command"`."""

    # Absolute path and arguments, with {switch}, {port} and {do}
    command: tuple[str, ...]
    # YAML file: which switch port is at the other end of a node's cable
    cables: Path
    # Glob of the nodes for which it is used
    nodes: str = "*"
    # true: ports between switches may be set too, although they carry the jobs of many nodes
    switch_links: bool = False
    # Timeout of one run of the command
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 20.0
    # What `state` prints for a disabled port
    disabled: str = r"(?i)\b(disabled|admin\w* down|shutdown)\b"
    # What it prints for a port with a link
    up: str = r"(?i)\b(up|linkup|active)\b"
    # What it prints for a port without one; the first match of disabled, up, down counts
    down: str = r"(?i)\b(down|polling|no link)\b"
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class CommandSwitches:
    """See the module's docstring."""

    def __init__(self, found: CommandOptions, where: str) -> None:
        """ConfigError names the key."""
        if not found.command or not found.command[0].startswith("/"):
            raise ConfigError(f"{where}.command: must begin with an absolute path")
        for place in _PLACES:
            if not any(place in word for word in found.command[1:]):
                raise ConfigError(f"{where}.command: has no {place}")
        self._options = found
        self._cables = CableMap(found.cables, f"{where}.cables")
        try:
            self._patterns = {
                PortState.DISABLED: re.compile(found.disabled),
                PortState.UP: re.compile(found.up),
                PortState.DOWN: re.compile(found.down),
            }
        except re.error as error:
            raise ConfigError(f"{where}: {error.pattern!r} is not a regular expression: {error}") from error

    @property
    def nodes(self) -> str:
        """As in Switches."""
        return self._options.nodes

    async def end(self, node: str, component: str) -> SwitchEnd:
        """As in Switches."""
        far = self._cables.end(node, components.name_of(component), switch_links=self._options.switch_links)
        return SwitchEnd(switch=far.switch, port=far.port, id=f"{far.switch} {far.port}")

    async def state(self, end: SwitchEnd) -> PortState:
        """As in Switches."""
        ran = await self._run(end, "state")
        for _ in range(READ_TRIES - 1):
            if ran.status == 0:
                break
            await asyncio.sleep(RETRY_S)
            ran = await self._run(end, "state")
        if ran.status != 0:
            raise Unreachable(f"{end}: its state could not be read: {ran.last_line}")
        for state, pattern in self._patterns.items():
            if pattern.search(ran.out):
                return state
        raise Unreachable(f"{end}: its state is none of disabled, up, down: {ran.out.strip()[:80]!r}")

    async def set(self, end: SwitchEnd, *, up: bool, why: str) -> None:  # noqa: ARG002  the tool takes no reason
        """As in Switches."""
        ran = await self._run(end, "enable" if up else "disable", tools.change)
        if ran.status == _SSH_LOST and self._options.command[0].endswith("/ssh"):
            raise Unreachable(f"{end}: {ran.last_line}")
        if ran.status != 0:
            raise ActionError(f"{end}: {ran.last_line} (exit status {ran.status})")

    async def _run(
        self, end: SwitchEnd, do: str, run: Callable[..., Awaitable[Completed]] = tools.read
    ) -> Completed:
        words = {"{switch}": end.switch, "{port}": end.port, "{do}": do}
        argv = [_filled(word, words) for word in self._options.command]
        env = {"HOME": os.environ.get("HOME", "/")}  # ssh finds its keys there
        return await run(argv, deadline_s=self._options.timeout_s, env=env)


def build(table: Mapping[str, Any], where: str, _ufms: Mapping[str, Ufm]) -> CommandSwitches:
    """Builds the backend of a table with `type = "command"`; ConfigError names the key."""
    return CommandSwitches(options(CommandOptions, table, where), where)


def _filled(word: str, words: Mapping[str, str]) -> str:
    return re.sub(r"\{(?:switch|port|do)\}", lambda match: words[match[0]], word)
