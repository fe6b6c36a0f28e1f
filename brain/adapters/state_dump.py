"""The state as bytes, made beside the brain: a copy of the process writes down what it has, while this one goes on.

To encode the state of 20,000 nodes takes 70 ms and more, in which nothing else happens in a process of Python. To copy that
process takes 6 ms: the kernel copies its table of pages, and a page when one of the two writes to it (fork(2)). The copy does
nothing but encode, write into a file in memory and end, without a word to anybody: what else it has inherited (connections,
locks, threads that do not run there) is not touched. It ends with the brain. Decision 87.
"""

import ctypes
import os
import select
import signal
from typing import NoReturn

from brain.adapters.snapshot import dump
from brain.core.state import State

PATIENCE_S = 60.0  # a copy that has not ended after so long is ended
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)  # looked up here: in the copy somebody else may have been within the loader


class StateDump:
    """What `dump` returns of the state as it is now. Call `body` once, and not in the loop: it waits for the copy."""

    def __init__(self, state: State) -> None:
        self._body = b""
        self._file = os.memfd_create("gpuward-state", os.MFD_CLOEXEC)
        brain = os.getpid()
        try:
            self._copy = os.fork()
        except OSError:  # no room for one more process: the brain does it itself
            self._copy = 0
            os.close(self._file)
            self._body = dump(state)
            return
        if self._copy == 0:
            _write_and_end(self._file, state, brain)

    def body(self) -> bytes:
        """OSError: the copy was ended before it had written all."""
        if not self._copy:
            return self._body
        try:
            status = _ended(self._copy)
            if status != 0:
                raise OSError(f"the process that writes the state down ended with status {status}")
            return os.pread(self._file, os.fstat(self._file).st_size, 0)
        finally:
            os.close(self._file)


def _write_and_end(file: int, state: State, brain: int) -> NoReturn:
    status = 1
    try:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == brain:  # else it has died meanwhile
            left = memoryview(dump(state))
            while left:
                left = left[os.write(file, left) :]
            status = 0
    finally:
        os._exit(status)  # nothing of what the brain does at its end


def _ended(copy: int) -> int:
    """Waits for the copy; its exit status, negative: the signal that ended it."""
    handle = os.pidfd_open(copy)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(PATIENCE_S * 1000):
            os.kill(copy, signal.SIGKILL)
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
