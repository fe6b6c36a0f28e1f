"""Runs a tool: an argument list with an absolute path, a deadline, bounded output, a clean environment.

The tool leads a process group of its own, which does not outlive the wait for it. On time-out and on cancellation the
group gets SIGTERM, so that e.g. `dcgmi` can call its diagnostics off, and then SIGKILL; a process that the kernel does not
let die is left behind, and whoever asks again and again can tell (`Late.left`).
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.contract.errors import Refused, TimedOut
from agent.shared.tasks import to_the_end

MAX_OUTPUT_BYTES = 1024 * 1024
_CLEAN = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "LANG": "C", "HOME": "/"}
GRACE_S = 2.0  # from SIGTERM to SIGKILL
_DEATH_S = 5.0  # after SIGKILL
_BUFFER_BYTES = 65536
_Started = tuple[asyncio.subprocess.Process, asyncio.SubprocessTransport]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a tool ended."""

    # Exit status; negative: the signal that ended it; None: it was killed at its deadline.
    status: int | None
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """The last line that it printed, of stderr if there is one; for people."""
        for text in (self.err, self.out):
            if lines := [line.strip() for line in text.splitlines() if line.strip()]:
                return lines[-1][:300]
        return f"exit status {self.status}"


class Late(TimedOut):
    """It has not ended in time and was killed. `ran`: what it had printed until then; `left`: the process, while it does not
    die (its `returncode` is None until then).
    """

    def __init__(self, why: str, ran: Completed, left: asyncio.subprocess.Process | None = None) -> None:
        super().__init__(why)
        self.ran = ran
        self.left = left


async def run(
    argv: Sequence[str],
    *,
    deadline_s: float,
    env: Mapping[str, str] | None = None,
    max_bytes: int = MAX_OUTPUT_BYTES,
    grace_s: float = GRACE_S,
) -> Completed:
    """Runs `argv` to its end. Refused when it cannot be started (nothing was done), Late when it has not ended in time.
    Output above `max_bytes` is discarded. `grace_s`: from SIGTERM to SIGKILL. A tool that ends and leaves its output to a
    daemon has ended: what it had printed by the deadline is what it said.
    """
    if not argv[0].startswith("/"):
        raise Refused(f"{argv[0]!r} is not an absolute path: set it in the configuration")
    starting = asyncio.ensure_future(_start(argv, _CLEAN | dict(env or {})))
    try:
        process, transport = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # asyncio would kill only the leader, and wait until the last process of the group has closed its output.
        await to_the_end(_kill_once_started(starting, grace_s))
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
        status = process.returncode  # None is reported below, with what it had printed until then
    finally:
        await to_the_end(end(process, grace_s))
        transport.close()  # else our ends of its output stay open for as long as anybody has the other ones
    ran = Completed(status=status, out=out.decode(errors="replace"), err=err.decode(errors="replace"))
    if status is None:
        raise Late(
            f"{argv[0]} did not end within {deadline_s:g} s",
            ran,
            left=process if process.returncode is None else None,
        )
    return ran


async def _start(argv: Sequence[str], env: Mapping[str, str]) -> _Started:
    """As asyncio.create_subprocess_exec, which keeps the transport to itself."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: asyncio.subprocess.SubprocessStreamProtocol(limit=_BUFFER_BYTES, loop=loop),
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
        cwd="/",
        start_new_session=True,
    )
    return asyncio.subprocess.Process(transport, protocol, loop), transport


async def _drain(stream: asyncio.StreamReader, into: bytearray, max_bytes: int) -> None:
    """The stream's first `max_bytes`; the rest is read and discarded, so that the tool does not block."""
    while data := await stream.read(_BUFFER_BYTES):
        into += data[: max_bytes - len(into)]


async def _kill_once_started(starting: asyncio.Future[_Started], grace_s: float) -> None:
    with contextlib.suppress(OSError, ValueError):
        process, transport = await starting
        await end(process, grace_s)
        transport.close()


async def end(process: asyncio.subprocess.Process, grace_s: float) -> None:
    """Ends a process that leads its group, and the group: SIGTERM, and SIGKILL after `grace_s`. Not by the process's own methods:
    they reap one that ends at this moment before asyncio does, which then makes up its status (255).
    """
    for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _DEATH_S)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        if process.returncode is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await process.wait()
