"""Kills a step before each change of a file that it makes: kill -9, in a process of its own.

for at in count():
    ... a folder as it was ...
    if not killed(at, step):
        break   # it ended by itself: there are no more changes
    ... what must hold now, and after it was done again ...
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = ("os.rename", "os.remove", "os.link", "os.mkdir", "os.truncate")


def killed(at: int, step: Callable[[], object]) -> bool:
    """Does the step in a process that is killed before its change number `at` (from 0); False: it has fewer, and is done."""
    child = os.fork()
    if child == 0:
        _become(at, step)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the step failed: what it said is above"
    return False


def _become(at: int, step: Callable[[], object]) -> None:
    """Never returns."""
    left = at

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal left
        opened = event == "open" and isinstance(args[2], int) and args[2] & _WRITES
        if event not in _CHANGES and not opened:
            return
        if opened and str(args[0]).endswith(".lock"):
            return  # it holds nothing
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    try:
        sys.addaudithook(hook)  # it stays for the life of a process: of this one alone
        step()
    except BaseException:  # noqa: BLE001  as the interpreter does, which would go on with the test here
        os.write(2, traceback.format_exc().encode())
        os._exit(3)
    os._exit(0)
