"""PCI Express errors: Advanced Error Reporting and Downstream Port Containment.

Formats: Linux, drivers/pci/pcie/aer.c (6.6 changed the words from Corrected/Uncorrected to Correctable/Uncorrectable),
dpc.c. A corrected error is announced by the root port and then reported by the device itself: only the second line is a
fact, otherwise the error would count twice.
"""

import re
from typing import ClassVar

from agent.contract.lines.base import device, unsent
from agent.contract.messages import Severity, UnsentEvent

_BDF = r"([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
_DEVICE = re.compile(
    rf"\s*([\w-]{{1,40}}) {_BDF}: (?:AER: )?(?:PCIe Bus Error|aer_status|PCIE Bus Error): "
    r"severity=([A-Za-z ()-]{1,40}), type=([A-Za-z /-]{1,40}), \(?([A-Za-z ]{0,40})\)?"
)
_ANNOUNCED = re.compile(
    rf"\s*[\w-]{{1,40}} {_BDF}: AER: (?:Multiple )?(Uncorrect(?:ed|able) \([A-Za-z-]{{1,12}}\)) "
    rf"error (?:message )?received(?: from|:) {_BDF}"
)
_FAILED = re.compile(rf"\s*([\w-]{{1,40}}) {_BDF}: (?:AER: )?(?:device|subordinate device) recovery failed")
_DPC = re.compile(rf"\s*([\w-]{{1,40}}) {_BDF}: DPC: containment event, status:(0x[0-9a-f]{{1,8}})")
_CLASSES = (
    ("non-fatal", "nonfatal", Severity.ERROR),
    ("fatal", "fatal", Severity.FATAL),
    ("correct", "corrected", Severity.WARNING),
)


class PcieArea:
    """pcie.error."""

    markers: ClassVar[tuple[str, ...]] = ("PCIe Bus Error: ", "AER: ", " recovery failed", "DPC: containment")
    kinds: ClassVar[tuple[str, ...]] = ("pcie.error",)
    distinguishing: ClassVar[tuple[str, ...]] = ("class",)

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _DEVICE.match(text):
            severity = _class(match[3])
            if severity is None:
                return None
            word, rank = severity
            data = {
                "class": word,
                "layer": match[4].strip(),
                "role": match[5].strip(),
                "address": match[2].lower(),
            }
            return unsent("pcie.error", device(match[1], match[2]), rank, data, text)
        if match := _ANNOUNCED.match(text):
            word, rank = _class(match[2]) or ("fatal", Severity.FATAL)
            data = {"class": word, "address": match[3].lower(), "port": match[1].lower()}
            return unsent("pcie.error", device("", match[3]), rank, data, text)
        if match := _FAILED.match(text):
            data = {"class": "recovery_failed", "address": match[2].lower()}
            return unsent("pcie.error", device(match[1], match[2]), Severity.FATAL, data, text)
        if match := _DPC.match(text):
            data = {"class": "contained", "address": match[2].lower()}
            return unsent("pcie.error", device(match[1], match[2]), Severity.FATAL, data, text)
        return None


def _class(severity: str) -> tuple[str, Severity] | None:
    lower = severity.lower()
    if lower.startswith("uncorrect") and "(" not in lower:
        return "fatal", Severity.FATAL
    if lower.startswith("uncorrect"):
        lower = lower.partition("(")[2]
    return next(((word, rank) for mark, word, rank in _CLASSES if mark in lower), None)
