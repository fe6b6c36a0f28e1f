"""Has rules built and proved in a process of its own, so that events do not wait for it: all of it is Python, and takes a second.

The process may fail: it cannot be started, dies, or hangs. Then it is done in a thread of the brain, as slow as that is.
"""

import asyncio
import logging
import sys
from collections.abc import Sequence

from brain.adapters import pack_build
from brain.adapters.pack_build import Build, Wanted

LIMIT_S = 60.0  # the shipped rules take one second
# As this process was started: a package's brain believes no variable of its environment, and never the present folder.
_FLAGS = ("-I" if sys.flags.isolated else "-P", *(["-B"] if sys.flags.dont_write_bytecode else []))
_COMMAND = (sys.executable, *_FLAGS, "-m", pack_build.__name__)
_log = logging.getLogger(__name__)


class _Failed(Exception):
    """There is no answer; the text says why."""


class PackProcess:
    """Starts one process for each build."""

    def __init__(self, command: Sequence[str] = _COMMAND, limit_s: float = LIMIT_S) -> None:
        """`command` answers as brain.adapters.pack_build does; it is killed when it has not after `limit_s`."""
        self._command = command
        self._limit_s = limit_s

    async def build(self, wanted: Wanted) -> Build:
        """Returns what the files hold. Cancelled, it leaves no process behind."""
        try:
            return await self._asked(wanted)
        except _Failed as error:
            _log.warning("the rules are proved within the brain, and events are slow meanwhile: %s", error)
            return await asyncio.to_thread(pack_build.build, wanted)

    async def _asked(self, wanted: Wanted) -> Build:
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=pipe, stdout=pipe, stderr=pipe
            )
        except OSError as error:
            raise _Failed(f"their own process cannot be started: {error}") from error
        try:
            async with asyncio.timeout(self._limit_s):
                answer, complaints = await process.communicate(pack_build.question(wanted))
        except TimeoutError:
            raise _Failed(f"their own process has not answered within {self._limit_s:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            last = complaints.decode(errors="replace").strip().rpartition("\n")[2][:300]
            raise _Failed(f"their own process has ended with status {process.returncode} {last}".rstrip())
        try:
            return await asyncio.to_thread(pack_build.answered, answer)
        except ValueError as error:
            raise _Failed(f"their own process has given no answer: {str(error)[:300]}") from error
