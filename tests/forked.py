"""`gpuward` in a process that is forked from the test's: its own rights, files and end, and all modules are there already.

Where a test types a hundred commands and is not about how one starts: each would compute for half a second before it begins.
"""

import os
import sys
import traceback

from brain.cli import cell, doctor, main  # each command would load them anew

_LOADED = (cell, doctor)


def gpuward(*argv: str) -> tuple[int, str]:
    """(exit status, what it prints to both streams) of a command."""
    reads, writes = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _become(writes, argv)
    os.close(writes)
    with os.fdopen(reads, "rb") as source:
        told = source.read().decode(errors="replace")
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), told


def _become(writes: int, argv: tuple[str, ...]) -> None:
    """Never returns."""
    status = 70
    try:
        for stream in (1, 2):
            os.dup2(writes, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "r" if n == 0 else "w") for n in (0, 1, 2))
        try:
            main.run({}, argv)
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001  as the interpreter does, which would go on with the test here
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)
