"""What a command prints is written when it ends, or somebody is told that it is not."""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator

_OF_OUTPUT = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@contextlib.contextmanager
def standard_output(program: str) -> Iterator[None]:
    """Ends the program with status 1, and a line that says why, when standard output takes no more (a full disk).

    Without a word where its reader has gone: `... | head` is no error. The rest of the output is dropped then.
    """
    if sys.stdout is None:  # closed by whoever started it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(
            errors="backslashreplace"
        )  # as standard error: a letter that the locale's encoding lacks
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None or error.errno not in _OF_OUTPUT:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:
            sys.stderr.write(f"{program}: the output cannot be written: {error.strerror}\n")
        raise SystemExit(1) from None
