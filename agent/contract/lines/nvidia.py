"""Lines of the NVIDIA modules besides XIDs: a GPU that does not initialise or is gone, a client of another version, peermem.

Formats: NVIDIA's open kernel modules, kernel-open/nvidia/nv.c and nv-pci.c, kernel-open/nvidia-peermem/nvidia-peermem.c,
src/nvidia/src/kernel/gpu/nvlink (kernel_nvlinkcorelibtraining.c and its variants), gpu/rc/kernel_rc_watchdog.c; Linux,
drivers/base/dd.c, drivers/pci/pci.c and the module loader (kernel/module/main.c). Lines that name a GPU that was not started
come before those that count them.
"""

import re
from typing import ClassVar

from agent.contract.components import NODE
from agent.contract.lines.base import device, unsent
from agent.contract.messages import Severity, UnsentEvent
from agent.contract.xid import unbroken

_BDF = r"([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
_INIT = re.compile(
    rf"\s*NVRM: (?:GPU {_BDF}: )?((?:RmInitAdapter failed!|rm_init_adapter(?:\([0-9]{{1,3}}\))? failed).{{0,200}})",
    re.DOTALL,
)
_PROBED = re.compile(
    rf"\s*nvidia(?:: probe of {_BDF}| {_BDF}: probe with driver nvidia) (failed with error -[0-9]{{1,4}})"
)
_NO_MEMORY = re.compile(
    rf"\s*(?:NVRM: This PCI I/O region .{{1,80}} is invalid:\s{{1,30}})?NVRM: (BAR[0-9] is [0-9]{{1,9}}M @ 0x0 \(PCI:{_BDF}\))"
)
_SUM = re.compile(
    r"\s*NVRM: (The NVIDIA probe routine failed for ([0-9]{1,3}) device\(s\)|None of the NVIDIA devices were initialized)"
)
_GONE = re.compile(
    rf"\s*nvidia {_BDF}: ((?:Unable to|can't) change power state .{{1,60}}inaccessible"
    r"|not ready [0-9]{1,9}ms after .{1,40}; giving up)"
)
_REMOVED = re.compile(
    rf"\s*NVRM: (Attempting to remove (?:minor )?device (?:{_BDF}|[0-9]{{1,3}}) with non-zero usage count)"
)
_LOCKED = re.compile(
    r"\s*NVRM: (?:GPU[0-9]{1,3} )?krcWatchdog\w{0,60}: (?:RC watchdog: )?(GPU is probably locked.{0,100})",
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
_MOST = 64  # GPUs of one machine that are remembered


class NvidiaArea:
    """gpu.init_failed, gpu.off_bus, gpu.locked, gpu.version_mismatch, gpu.peermem, gpu.nvlink_discovery."""

    markers: ClassVar[tuple[str, ...]] = (
        "RmInitAdapter failed",
        "rm_init_adapter",
        *(
            "nvidia: probe of ",
            "probe with driver nvidia ",
            "NVRM: BAR",
            "NVRM: The NVIDIA probe",
            "NVRM: None of ",
        ),
        *(" change power state ", "; giving up", "NVRM: Attempting to remove ", "GPU is probably locked"),
        "API mismatch",
        "nvidia-peermem",
        "nvidia_peermem",
        "PostRxDet",
    )
    kinds: ClassVar[tuple[str, ...]] = (
        *("gpu.init_failed", "gpu.off_bus", "gpu.locked", "gpu.version_mismatch", "gpu.peermem"),
        "gpu.nvlink_discovery",
    )
    distinguishing: ClassVar[tuple[str, ...]] = ("what",)

    def __init__(self) -> None:
        # Of which GPUs was told that they did not start since the driver was loaded: their addresses, or the node.
        self._failed: set[str] = set()

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        return self._start(text) or _gone(text) or _others(text)

    def _start(self, text: str) -> UnsentEvent | None:
        """Of GPUs that the driver cannot start."""
        if match := _INIT.match(text):
            address, message = match[1], match[2].strip()
        elif match := _PROBED.match(text):
            address, message = self._tried(match[1] or match[2]), match[3]
        elif match := _NO_MEMORY.match(text):
            address, message = self._tried(match[2]), match[1]
        elif match := _SUM.match(text):
            address, message = None, match[1]
            all_told = len(self._failed) >= int(match[2]) if match[2] else bool(self._failed)
            # None is left: what comes next is of another attempt.
            self._failed = {NODE} if match[2] else set()
            if all_told:
                return None
        else:
            return None
        where = device("nvidia", address) if address else NODE
        return unsent("gpu.init_failed", where, Severity.FATAL, {"message": message}, text)

    def _tried(self, address: str) -> str:
        if len(self._failed) < _MOST:
            self._failed.add(address.lower())
        return address


def _gone(text: str) -> UnsentEvent | None:
    """Of GPUs that no longer answer: on PCI, to the driver, or to its watchdog."""
    if match := _GONE.match(text):
        return unsent("gpu.off_bus", device("nvidia", match[1]), Severity.FATAL, {"message": match[2]}, text)
    if match := _REMOVED.match(text):
        where = device("nvidia", match[2]) if match[2] else NODE
        return unsent("gpu.off_bus", where, Severity.FATAL, {"message": match[1]}, text)
    if match := _LOCKED.match(text):
        return unsent("gpu.locked", NODE, Severity.ERROR, {"message": match[1].strip()}, text)
    return None


def _others(text: str) -> UnsentEvent | None:
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
