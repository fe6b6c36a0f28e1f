"""Becomes another program, after it has set limits on itself that children of the agent would not have otherwise.

Run as a file, so that it imports only the standard library:

    python -I agent/shared/limited.py /opt/nccl-tests/all_reduce_perf -g 8

No core dump (tens of GB for a program that maps GPUs), no file larger than MAX_FILE_BYTES, and it is the first that the
kernel kills when memory runs out: the agent itself is protected from that, and its children inherit it.
"""

import os
import resource
import sys
from pathlib import Path

MAX_FILE_BYTES = 1024 * 1024 * 1024
_FIRST_TO_DIE = "1000"
_NOT_STARTED = 126  # as a shell's


def main(argv: list[str]) -> None:
    """Does not return."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    most = MAX_FILE_BYTES if hard == resource.RLIM_INFINITY else min(MAX_FILE_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    try:
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_DIE)
        os.execv(argv[0], argv)  # noqa: S606  an argument list, never a shell
    except OSError as error:
        sys.stderr.write(f"{argv[0]} cannot be started: {error.strerror}\n")
        sys.exit(_NOT_STARTED)


if __name__ == "__main__":
    main(sys.argv[1:])
