"""Child processes of `gpuward up`: each has its own log, is stopped in order, and never outlives its parent."""

import asyncio
import ctypes
import signal
from collections.abc import Sequence
from pathlib import Path

STOP_WITHIN_S = 10.0
_PR_SET_PDEATHSIG = 1
# Loaded here, as hardly anything is allowed in the child between fork and exec.
_LIBC = ctypes.CDLL(None, use_errno=True)


class ChildProcess:
    """One process, in a session of its own, so that Ctrl-C in the terminal reaches only its parent."""

    def __init__(self, name: str, argv: Sequence[str], log: Path, holds: Sequence[int] = ()) -> None:
        """`holds`: files that stay open in it, as a lock."""
        self._holds = tuple(holds)
        self.name = name
        self.log = log
        self._argv = list(argv)
        self._process: asyncio.subprocess.Process | None = None
        self._log_start = 0

    @property
    def pid(self) -> int:
        """Process id; 0 before the start."""
        return self._process.pid if self._process else 0

    @property
    def returncode(self) -> int | None:
        """Its exit status, negative for a signal; None: it runs, or was not started."""
        return self._process.returncode if self._process else None

    async def start(self) -> None:
        """Starts it. It gets SIGTERM when its parent dies, whatever the cause."""
        with self.log.open("ab") as sink:
            self._log_start = sink.tell()
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                pass_fds=self._holds,
                preexec_fn=_die_with_parent,
            )

    async def wait(self) -> int:
        """Waits until it has ended; its exit status, negative for a signal."""
        return await self._process.wait() if self._process else 0

    async def stop(self) -> None:
        """Sends SIGTERM and waits; sends SIGKILL when that takes too long. Does nothing when it does not run."""
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_WITHIN_S)
        except TimeoutError:
            self.kill()
            await self._process.wait()

    def kill(self) -> None:
        """Sends SIGKILL, and does not wait."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    def last_lines(self, count: int = 15) -> list[str]:
        """The last lines of its log; only what it has written since its start."""
        with self.log.open("rb") as source:
            source.seek(self._log_start)
            return source.read().decode(errors="replace").splitlines()[-count:]

    def describe_end(self) -> str:
        """How it ended, for people."""
        code = self.returncode
        if code is None:
            return f"{self.name} runs"
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        return f"{self.name} (pid {self.pid}) {how}"


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
