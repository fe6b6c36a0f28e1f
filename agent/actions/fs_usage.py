"""fs.usage: finds the largest directories of one watched mount; reads only, and for a bounded time."""

import os
import sys
from pathlib import Path
from typing import ClassVar, Self

import orjson

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params, number, report_progress
from agent.contract.errors import ActionError, Refused, TimedOut
from agent.contract.messages import MAX_TEXT
from agent.filesystems.mount_table import watched
from agent.host import Host
from agent.shared import tool

LIMIT_S = 90.0  # then it reports what it has counted so far
GRACE_S = 10.0  # after that the file system is taken to hang
MAX_DEPTH = 4
_CHILD = Path(__file__).resolve().parents[1] / "filesystems" / "usage_child.py"
_MAX_NAME = 48  # characters of a path in the result


class FsUsage(NodeAction):
    """See the module's docstring. A child process counts, with the lowest priority: a file system that hangs takes the
    child with it, not the agent.
    """

    name: ClassVar[str] = "fs.usage"

    def __init__(self, host: Host, expected: tuple[str, ...], *, limit_s: float = LIMIT_S) -> None:
        """`expected`: mount points that are watched whatever their type. `limit_s`: for the counting."""
        self._host = host
        self._expected = expected
        self._limit_s = limit_s

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.host, setup.config.mounts)

    async def plan(self, params: Params) -> list[str]:
        """One line."""
        mount, depth = self._checked(params)
        return [f"count what lies below {mount}, {depth} levels deep, for at most {self._limit_s:g} s"]

    async def run(self, params: Params) -> Done:
        """Counts, and names the largest directories."""
        mount, depth = self._checked(params)
        report_progress(f"counting what lies below {mount}")
        argv = [sys.executable, "-I", "-S", str(_CHILD), mount, str(depth), str(self._limit_s)]
        try:
            ran = await tool.run(argv, deadline_s=self._limit_s + GRACE_S)
        except TimedOut as error:
            raise ActionError(f"{mount} hangs: its directories could not be read") from error
        if ran.status != 0:
            raise ActionError(f"{mount} cannot be read: {ran.last_line}")
        return Done(text=_text(mount, orjson.loads(ran.out), self._limit_s))

    async def recover(self, params: Params) -> None:
        """Nothing to repair: it only reads."""

    def _checked(self, params: Params) -> tuple[str, int]:
        mount = str(params["mount"])
        depth = int(number(params, "depth", 2, 1, MAX_DEPTH))
        if not self._host.live:
            raise Refused("this is a recorded machine")
        have = [one.path for one in watched(self._host, self._expected)]
        if mount not in have:
            raise Refused(f"{mount} is not a watched mount of this node (have: {', '.join(have) or 'none'})")
        return mount, depth


def _text(mount: str, found: dict[str, object], limit_s: float) -> str:
    """The largest first, as many as an event's text holds. A directory's size includes those below it."""
    files, denied, total, largest = (found[key] for key in ("files", "denied", "bytes", "largest"))
    text = f"{mount}: {_size(total)} in {files} files"
    if denied:
        text += f", {denied} could not be read"
    if not found["whole"]:
        text += f"; stopped after {limit_s:g} s, so far"
    text += "; largest: " if largest else "; no directories"
    for number_, (size, path) in enumerate(largest if isinstance(largest, list) else ()):
        name = os.path.relpath(path, mount)
        if len(name) > _MAX_NAME:
            name = f"{name[: _MAX_NAME // 2]}…{name[-_MAX_NAME // 2 + 1 :]}"
        part = f"{', ' if number_ else ''}{name} {_size(size)}"
        if len(text) + len(part) > MAX_TEXT:
            break
        text += part
    return text


def _size(count: object) -> str:
    value, unit = float(str(count)), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024 or unit == "PiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if value >= 10 or unit == "B" else f"{value:.1f} {unit}"
