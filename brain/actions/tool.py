"""Runs a tool of this machine for an action: argument list, clean environment, deadline, bounded output."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.contract.errors import Refused

MAX_OUTPUT = 1 << 20  # bytes of each stream that are kept; the rest is read and thrown away
_PIECE = 1 << 16
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a tool ended."""

    code: int | None  # exit status, negative for a signal; None: killed at its deadline
    out: str
    err: str

    @property
    def ok(self) -> bool:
        """Did it end by itself, with success?"""
        return self.code == 0


async def run(argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None) -> Ran:
    """Runs `argv` (`argv[0]`: an absolute path) in a process group of its own, which ends with the wait for it.

    Refused when the tool is not there or may not be run: nothing was done.
    """
    tool = Path(argv[0])
    if not tool.is_absolute():
        raise Refused(f"{tool}: the path of a tool must be absolute")
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            env={"PATH": _PATH, "LC_ALL": "C", "HOME": "/", **(env or {})},
            cwd="/",
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise Refused(f"{tool} cannot be run on the brain's machine: {error}") from error
    out, err = bytearray(), bytearray()
    code: int | None = None
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(_read(process.stdout, out), _read(process.stderr, err))
                code = await process.wait()
    finally:
        await _end(process)
    return Ran(code=code, out=out.decode(errors="replace"), err=err.decode(errors="replace"))


async def _read(stream: asyncio.StreamReader | None, into: bytearray) -> None:
    while stream is not None and (piece := await stream.read(_PIECE)):
        into += piece[: MAX_OUTPUT - len(into)]


async def _end(process: Process) -> None:
    """Kills the whole group: a tool's children must not outlive it, whatever it left behind."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
