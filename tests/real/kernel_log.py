"""The kernel log is one for all tests of a machine: lines of this process have a facility of their own, and the agents that
it starts believe no other one (`HEARD` in their configuration). The test that overruns a log does so in a kernel of its
own (tests/real/uml/kmsg_guest.py).
"""

import os

FACILITY = (
    24 + os.getpid() % 200
)  # 0 is the kernel's own, up to 23 have names; the record has eight bits for it
HEARD = f"kmsg_facilities = [{FACILITY}]"


def write_kernel_line(text: str) -> None:
    """One record of level warning; a fresh descriptor for each line passes the kernel's rate limit."""
    with open("/dev/kmsg", "wb", buffering=0) as kmsg:
        kmsg.write(f"<{FACILITY << 3 | 4}>{text}\n".encode())
