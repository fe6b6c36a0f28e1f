"""Switch ports by a tool of the site: one argument list, run on the brain's host or, by ssh, on a management host.

`{switch}`, `{port}` and `{do}` in it are replaced by checked names; `do` is disable, enable or state. What it prints
for `state` must match one of the three patterns; anything else is an answer that nobody understands.
"""

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agent.contract import components
from agent.contract.errors import ActionError, ConfigError, Unreachable
from brain.actions import tool
from brain.actions.cables import CableMap
from brain.actions.switch import State, SwitchEnd
from brain.options import options

_PLACES = ("{switch}", "{port}", "{do}")
ASKS = 3  # a question costs nothing, and one packet that is lost shall not lead to a harder remedy
AGAIN_S = 1.0
_SSH_LOST = 255  # ssh's own failure, before the remote command


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions:
    """What a table of `type = "command"` holds."""

    command: tuple[str, ...]  # absolute path and arguments, with {switch}, {port} and {do}
    cables: Path  # YAML file: which switch port is at the other end of a node's cable
    nodes: str = "*"  # glob of the nodes that it is used for
    switch_links: bool = False  # may ports between switches be set? they carry the jobs of many nodes
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 20.0  # of one run of the command
    disabled: str = (
        r"(?i)\b(disabled|admin\w* down|shutdown)\b"  # what `state` prints of a port that was taken down
    )
    up: str = r"(?i)\b(up|linkup|active)\b"  # of one with a link
    down: str = r"(?i)\b(down|polling|no link)\b"  # of one without; the first of disabled, up, down counts
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
                State.DISABLED: re.compile(found.disabled),
                State.UP: re.compile(found.up),
                State.DOWN: re.compile(found.down),
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

    async def state(self, end: SwitchEnd) -> State:
        """As in Switches."""
        ran = await self._run(end, "state")
        for _ in range(ASKS - 1):
            if ran.status == 0:
                break
            await asyncio.sleep(AGAIN_S)
            ran = await self._run(end, "state")
        if ran.status != 0:
            raise Unreachable(f"{end}: asking for its state failed: {ran.says}")
        for state, pattern in self._patterns.items():
            if pattern.search(ran.out):
                return state
        raise Unreachable(f"{end}: its state is none of disabled, up, down: {ran.out.strip()[:80]!r}")

    async def set(self, end: SwitchEnd, *, up: bool, why: str) -> None:  # noqa: ARG002  a tool has no place for it
        """As in Switches."""
        ran = await self._run(end, "enable" if up else "disable")
        if ran.status == _SSH_LOST and self._options.command[0].endswith("/ssh"):
            raise Unreachable(f"{end}: {ran.says}")
        if ran.status != 0:
            raise ActionError(f"{end}: {ran.says} (exit status {ran.status})")

    async def _run(self, end: SwitchEnd, do: str) -> tool.Ran:
        words = {"{switch}": end.switch, "{port}": end.port, "{do}": do}
        argv = [_filled(word, words) for word in self._options.command]
        env = {"HOME": os.environ.get("HOME", "/")}  # ssh finds its keys there
        return await tool.run(argv, deadline_s=self._options.timeout_s, env=env)


def command_switches(table: Mapping[str, Any], where: str) -> CommandSwitches:
    """From a table of `type = "command"`; ConfigError names the key."""
    return CommandSwitches(options(CommandOptions, table, where), where)


def _filled(word: str, words: Mapping[str, str]) -> str:
    return re.sub(r"\{(?:switch|port|do)\}", lambda match: words[match[0]], word)
