"""The kernel log is one for all tests of a machine: lines of this process have a facility of their own, and the agents that
it starts believe no other one (`HEARD` in their configuration).
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

FACILITY = (
    24 + os.getpid() % 200
)  # 0 is the kernel's own, up to 23 have names; the record has eight bits for it
HEARD = f"kmsg_facilities = [{FACILITY}]"


def write_kernel_line(text: str) -> None:
    """One record of level warning; a fresh descriptor for each line passes the kernel's rate limit."""
    with open("/dev/kmsg", "wb", buffering=0) as kmsg:
        kmsg.write(f"<{FACILITY << 3 | 4}>{text}\n".encode())


@contextlib.contextmanager
def ring(*, alone: bool = False) -> Iterator[None]:
    """While it lasts no other test of this machine overruns the kernel's log (alone: none reads from it what must come)."""
    with (Path(tempfile.gettempdir()) / "gpuward-kernel-ring.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
