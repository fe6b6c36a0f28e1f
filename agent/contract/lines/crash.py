"""Processes that crashed inside a GPU or communication library (Linux, arch/x86/mm/fault.c and kernel/traps.c).

Any program may crash by itself; one that dies within NCCL, CUDA or a verbs library is a sign.
"""

import re
from typing import ClassVar

from agent.contract.components import NODE
from agent.contract.lines.base import draft, number
from agent.contract.messages import Draft, Severity

_SEGFAULT = re.compile(
    r"\s*(.{1,64})\[([0-9]{1,10})\]: segfault at [0-9a-f]{1,16} .{0,120}? in ([\w.+-]{1,100})\["
)
_TRAP = re.compile(
    r"\s*traps: (.{1,64})\[([0-9]{1,10})\] (general protection(?: fault)?|trap [a-z ]{1,30}?) ip:.{0,120}? in ([\w.+-]{1,100})\["
)
_OURS = (
    "libnccl",
    "libnccl-net",
    "libcuda",
    "libcudart",
    "libcublas",
    "libcudnn",
    "libnvidia",
    "libtorch_cuda",
)
_OURS_TOO = (
    "libibverbs",
    "libmlx5",
    "librdmacm",
    "libucp",
    "libuct",
    "libucs",
    "libsharp",
    "libnvshmem",
    "libc10_cuda",
)


class CrashArea:
    """job.crash."""

    marks: ClassVar[tuple[str, ...]] = ("]: segfault at ", "traps: ")
    kinds: ClassVar[tuple[str, ...]] = ("job.crash",)

    def read(self, text: str) -> Draft | None:
        """See Area."""
        if match := _SEGFAULT.match(text):
            process, pid, library, what = match[1], match[2], match[3], "segfault"
        elif match := _TRAP.match(text):
            process, pid, library, what = match[1], match[2], match[4], match[3]
        else:
            return None
        if not library.startswith(_OURS + _OURS_TOO):
            return None
        data = {"what": what, "process": process, "pid": number(pid), "library": library}
        return draft("job.crash", NODE, Severity.WARNING, data, text)
