"""Runs a tool: an argument list with an absolute path, a deadline, bounded output, a clean environment.

The tool is the leader of a process group of its own, which does not outlive the wait for it. On time-out and on
cancellation the group is asked to end and then killed; one that the kernel does not let die is left behind.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.contract.errors import Refused, TimedOut

MAX_OUTPUT_BYTES = 8 * 1024 * 1024
_CLEAN = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "LANG": "C", "HOME": "/"}
_GRACE_S = 0.5  # from SIGTERM to SIGKILL
_DEATH_S = 5.0  # after SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a tool ended."""

    status: int | None  # exit status; negative: the signal that ended it; None: killed at its deadline
    out: str
    err: str

    @property
    def says(self) -> str:
        """Its last line, for people; of stderr when there is one."""
        for text in (self.err, self.out):
            if lines := [line.strip() for line in text.splitlines() if line.strip()]:
                return lines[-1][:300]
        return f"exit status {self.status}"


class Late(TimedOut):
    """It has not ended in time and was killed; `ran` is what it had said until then."""

    def __init__(self, why: str, ran: Ran) -> None:
        super().__init__(why)
        self.ran = ran


async def run(
    argv: Sequence[str],
    *,
    deadline_s: float,
    env: Mapping[str, str] | None = None,
    max_bytes: int = MAX_OUTPUT_BYTES,
) -> Ran:
    """Runs `argv` to its end. Refused when it cannot be started (nothing was done), Late when it has not ended in
    time. Output above `max_bytes` is thrown away.
    """
    if not argv[0].startswith("/"):
        raise Refused(f"{argv[0]!r} is not an absolute path: set it in the brain's configuration")
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_CLEAN | dict(env or {}),
            cwd="/",
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # asyncio would kill the leader alone, and wait for the last of the group to close its output.
        await _to_the_end(_kill_once_started(starting))
        raise
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise Refused(f"{argv[0]} cannot be started: {why}") from error
    assert process.stdout is not None  # noqa: S101  # PIPE above
    assert process.stderr is not None  # noqa: S101  # PIPE above
    out, err = bytearray(), bytearray()
    status: int | None = None
    try:
        async with asyncio.timeout(deadline_s):
            await asyncio.gather(
                _drain(process.stdout, out, max_bytes), _drain(process.stderr, err, max_bytes)
            )
            status = await process.wait()
    except TimeoutError:
        pass  # said below, with what it had printed until then
    finally:
        await _to_the_end(_kill(process))
    ran = Ran(status=status, out=out.decode(errors="replace"), err=err.decode(errors="replace"))
    if status is None:
        raise Late(f"{argv[0]} did not end within {deadline_s:g} s", ran)
    return ran


async def _drain(stream: asyncio.StreamReader, into: bytearray, max_bytes: int) -> None:
    """The stream's first `max_bytes`; the rest is read and forgotten, so that the tool does not block."""
    while data := await stream.read(65536):
        into += data[: max_bytes - len(into)]


async def _kill_once_started(starting: "asyncio.Future[asyncio.subprocess.Process]") -> None:
    with contextlib.suppress(OSError, ValueError):
        await _kill(await starting)


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Runs `work` to its end even when the caller is cancelled (again) meanwhile; the cancellation comes after it."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    task.result()


async def _kill(process: asyncio.subprocess.Process) -> None:
    for number, wait_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _DEATH_S)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        if process.returncode is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await process.wait()
