"""Processes that crashed inside a GPU or communication library (Linux, arch/x86/mm/fault.c and kernel/traps.c).

Any program may crash for reasons of its own; a crash inside NCCL, CUDA or a verbs library points to the hardware.
"""

import re
from typing import ClassVar

from agent.contract.components import NODE
from agent.contract.lines.base import number, unsent
from agent.contract.messages import Severity, UnsentEvent

_SEGFAULT = re.compile(
    r"\s*(.{1,15})\[([0-9]{1,10})\]: segfault at [0-9a-f]{1,16} .{0,120}? in ([\w.+-]{1,100})\["
)
_TRAP = re.compile(
    r"\s*traps: (.{1,15})\[([0-9]{1,10})\] (general protection(?: fault)?|trap [a-z ]{1,30}?) ip:.{0,120}? in ([\w.+-]{1,100})\["
)
_LIBRARIES = (
    *(
        "libnccl",
        "libnccl-net",
        "libcuda",
        "libcudart",
        "libcublas",
        "libcudnn",
        "libnvidia",
        "libtorch_cuda",
    ),
    *(
        "libc10_cuda",
        "libibverbs",
        "libmlx5",
        "librdmacm",
        "libucp",
        "libuct",
        "libucs",
        "libsharp",
        "libnvshmem",
    ),
)


class CrashArea:
    """job.crash."""

    markers: ClassVar[tuple[str, ...]] = ("]: segfault at ", "traps: ")
    kinds: ClassVar[tuple[str, ...]] = ("job.crash",)
    distinguishing: ClassVar[tuple[str, ...]] = ("what", "library")

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _SEGFAULT.match(text):
            process, pid, library, what = match[1], match[2], match[3], "segfault"
        elif match := _TRAP.match(text):
            process, pid, library, what = match[1], match[2], match[4], match[3]
        else:
            return None
        if not library.startswith(_LIBRARIES):
            return None
        data = {"what": what, "process": process, "pid": number(pid), "library": library}
        return unsent("job.crash", NODE, Severity.WARNING, data, text)
