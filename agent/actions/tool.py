"""Runs a tool: an argument list with an absolute path, a deadline, bounded output, a clean environment.

The tool is the leader of a process group of its own. On time-out and on cancellation the group is asked to end, so
that `dcgmi` can call its diagnostics off, and then killed; one that the kernel does not let die is left behind.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.contract.errors import Refused, TimedOut

MAX_OUTPUT_BYTES = 1024 * 1024
_CLEAN = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "LANG": "C", "HOME": "/"}
_GRACE_S = 2.0  # from SIGTERM to SIGKILL
_DEATH_S = 5.0  # after SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A tool that ended."""

    status: int  # exit status; negative: the signal that ended it
    out: str
    err: str

    @property
    def says(self) -> str:
        """Its last line, for people; of stderr when there is one."""
        for text in (self.err, self.out):
            if lines := [line.strip() for line in text.splitlines() if line.strip()]:
                return lines[-1][:300]
        return f"exit status {self.status}"


async def run(
    argv: Sequence[str],
    *,
    deadline_s: float,
    env: Mapping[str, str] | None = None,
    max_bytes: int = MAX_OUTPUT_BYTES,
) -> Ran:
    """Runs `argv` to its end. Refused when it cannot be started (nothing was done), TimedOut when it has not ended in
    time and was killed. Output above `max_bytes` is thrown away.
    """
    if not argv[0].startswith("/"):
        raise Refused(f"{argv[0]!r} is not an absolute path: set it in the agent's configuration")
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_CLEAN | dict(env or {}),
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise Refused(f"{argv[0]} cannot be started: {error.strerror or error}") from error
    assert process.stdout is not None  # noqa: S101  # PIPE above
    assert process.stderr is not None  # noqa: S101  # PIPE above
    ended = False
    try:
        async with asyncio.timeout(deadline_s):
            out, err = await asyncio.gather(
                _drained(process.stdout, max_bytes), _drained(process.stderr, max_bytes)
            )
            status = await process.wait()
            ended = True
    except TimeoutError:
        raise TimedOut(f"{argv[0]} did not end within {deadline_s:g} s") from None
    finally:
        if not ended:
            await _kill(process)
    return Ran(status=status, out=out, err=err)


async def _drained(stream: asyncio.StreamReader, max_bytes: int) -> str:
    """The stream's first `max_bytes`; the rest is read and forgotten, so that the tool does not block."""
    kept = bytearray()
    while data := await stream.read(65536):
        kept += data[: max_bytes - len(kept)]
    return kept.decode(errors="replace")


async def _kill(process: asyncio.subprocess.Process) -> None:
    for number, wait_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _DEATH_S)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        if process.returncode is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await process.wait()
