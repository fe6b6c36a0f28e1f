"""Memory and processor errors: EDAC, machine checks, firmware reports (APEI), poisoned pages.

Formats: Linux, drivers/edac/edac_mc.c, arch/x86/kernel/cpu/mce/core.c and drivers/edac/mce_amd.c,
drivers/firmware/efi/cper.c, mm/memory-failure.c.
"""

import re
from typing import ClassVar

from agent.contract.components import NODE
from agent.contract.lines.base import Optional, unsent
from agent.contract.messages import Severity, UnsentEvent

_EDAC = re.compile(
    r"\s*EDAC (MC[0-9]{1,3}): ([0-9]{1,9}) (CE|UE) (.{0,200}?) on (.{0,100}?)(?= \(|$)", re.DOTALL
)
_MCE = re.compile(
    r"\s*(?:mce: )?\[Hardware Error\]: CPU ([0-9]{1,5}): Machine Check(?: Exception)?: [0-9a-f]{1,16} "
    r"Bank ([0-9]{1,3}): ([0-9a-f]{16})"
)
_MCE_LOGGED = re.compile(r"\s*(?:mce: )?\[Hardware Error\]: Machine check events logged")
_MCE_FATAL = re.compile(r"\s*(?:mce: )?\[Hardware Error\]: Machine check: (.{1,200})", re.DOTALL)
_AMD = re.compile(
    r"\s*\[Hardware Error\]: (Corrected error|Deferred error|Uncorrected[^.\n]{0,60}error|System Fatal error)"
)
_APEI = re.compile(
    r"\s*(?:\{[0-9]{1,9}\})?\[Hardware Error\]: event severity: (corrected|recoverable|fatal|info)"
)
_POISON = re.compile(r"\s*Memory failure: (0x[0-9a-f]{1,16}): (.{1,200})", re.DOTALL)
_RANKS = {
    "corrected": Severity.WARNING,
    "deferred": Severity.ERROR,
    "recoverable": Severity.ERROR,
    "uncorrected": Severity.FATAL,
    "fatal": Severity.FATAL,
}


class MemoryArea:
    """memory.ecc for the host's memory, cpu.machine_check for the others."""

    markers: ClassVar[tuple[str, ...]] = ("EDAC MC", "[Hardware Error]: ", "Memory failure: ")
    kinds: ClassVar[tuple[str, ...]] = ("memory.ecc", "cpu.machine_check")
    distinguishing: ClassVar[tuple[str, ...]] = ("class", "dimm")

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _EDAC.match(text):
            corrected = match[3] == "CE"
            data: Optional = {
                "class": "corrected" if corrected else "uncorrected",
                "errors": int(match[2]),
                "controller": match[1],
                "dimm": match[5].strip() or "unknown",
                "message": match[4].strip(),
            }
            severity = Severity.WARNING if corrected else Severity.FATAL
            return unsent("memory.ecc", NODE, severity, data, text)
        if match := _POISON.match(text):
            data = {"class": "uncorrected", "errors": 1, "page": match[1], "message": match[2].strip()}
            return unsent("memory.ecc", NODE, Severity.ERROR, data, text)
        return _check(text)


def _check(text: str) -> UnsentEvent | None:
    data: Optional
    if match := _MCE.match(text):
        # Bit 61 of a bank's status: uncorrected (Intel SDM volume 3, IA32_MCi_STATUS).
        word = "uncorrected" if int(match[3], 16) >> 61 & 1 else "corrected"
        data = {"class": word, "cpu": int(match[1]), "bank": int(match[2])}
        return unsent("cpu.machine_check", NODE, _RANKS[word], data, text)
    if _MCE_LOGGED.match(
        text
    ):  # the kernel prints no more where a daemon (rasdaemon, mcelog) gets the details
        return unsent("cpu.machine_check", NODE, Severity.WARNING, {"class": "logged"}, text)
    if match := _MCE_FATAL.match(text):
        return unsent(
            "cpu.machine_check", NODE, Severity.FATAL, {"class": "fatal", "message": match[1].strip()}, text
        )
    if match := _AMD.match(text):
        kind = match[1].lower()
        word = next((word for word in ("corrected", "deferred") if kind.startswith(word)), "uncorrected")
        return unsent("cpu.machine_check", NODE, _RANKS[word], {"class": word, "message": match[1]}, text)
    if (match := _APEI.match(text)) and match[1] != "info":
        return unsent(
            "cpu.machine_check",
            NODE,
            _RANKS[match[1]],
            {"class": match[1], "message": "firmware (APEI)"},
            text,
        )
    return None
