"""Lines of the NVIDIA modules besides XIDs: a GPU that does not initialise, a client of another version, peermem.

Formats: NVIDIA's open kernel modules, kernel-open/nvidia/nv.c, kernel-open/nvidia-peermem/nvidia-peermem.c,
src/nvidia/src/kernel/gpu/nvlink (kernel_nvlinkcorelibtraining.c and its variants), and the module loader
(Linux, kernel/module/main.c).
"""

import re
from typing import ClassVar

from agent.contract.components import NODE
from agent.contract.lines.base import device, unsent
from agent.contract.messages import Severity, UnsentEvent
from agent.contract.xid import unbroken

_INIT = re.compile(
    r"\s*NVRM: GPU ([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]): "
    r"(RmInitAdapter failed!|rm_init_adapter failed)(.{0,200})",
    re.DOTALL,
)
_MISMATCH = re.compile(  # only the first of its lines may be left (`dmesg | grep mismatch`)
    r"NVRM: API mismatch: the client\b(?: '.{1,64}' \(pid [0-9]{1,10}\))?(?: has the version ([0-9.-]{3,20})"
    r"(?:, but this kernel module has the version ([0-9.-]{3,20}))?)?"
)
_PEERMEM = re.compile(r"\s*nvidia[-_]peermem \w{1,60}:[0-9]{1,6} (?:ERROR|error) (.{1,300})", re.DOTALL)
_SYMBOL = re.compile(
    r"\s*nvidia[-_]peermem: (Unknown symbol \w{1,80}|disagrees about version of symbol \w{1,80})"
)
_DISCOVERY = re.compile(
    r"\s*NVRM: (?:GPU[0-9]{1,3} )?(knvlink(?:Discover|Update)PostRxDet\w{1,40}?)(?:_[A-Z0-9_]{1,20}|_IMPL)?: "
    r"(.{1,200}?failed.{0,100}|Failed .{1,200})",
    re.DOTALL,
)


class NvidiaArea:
    """gpu.init_failed, gpu.version_mismatch, gpu.peermem, gpu.nvlink_discovery."""

    markers: ClassVar[tuple[str, ...]] = (
        "RmInitAdapter failed",
        "rm_init_adapter failed",
        "API mismatch",
        "nvidia-peermem",
        "nvidia_peermem",
        "PostRxDet",
    )
    kinds: ClassVar[tuple[str, ...]] = (
        *("gpu.init_failed", "gpu.version_mismatch", "gpu.peermem", "gpu.nvlink_discovery"),
    )
    distinguishing: ClassVar[tuple[str, ...]] = ("what",)

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _INIT.match(text):
            data = {"message": f"{match[2]}{match[3]}".strip()}
            return unsent("gpu.init_failed", device("nvidia", match[1]), Severity.FATAL, data, text)
        if match := _MISMATCH.match(unbroken(text)):
            data = {name: (match[at] or "unknown").rstrip(".") for at, name in ((1, "client"), (2, "module"))}
            return unsent("gpu.version_mismatch", NODE, Severity.ERROR, data, text)
        if match := _PEERMEM.match(text):
            what = "invalid_context" if "invalid context" in match[1] else "error"
            return unsent(
                "gpu.peermem", NODE, Severity.WARNING, {"what": what, "message": match[1].strip()}, text
            )
        if match := _DISCOVERY.match(text):
            data = {"function": match[1], "message": match[2].strip()}
            return unsent("gpu.nvlink_discovery", NODE, Severity.ERROR, data, text)
        if match := _SYMBOL.match(text):
            return unsent("gpu.peermem", NODE, Severity.ERROR, {"what": "symbols", "message": match[1]}, text)
        return None
