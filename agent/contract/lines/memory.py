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
    r"\s*EDAC (MC[0-9]{1,3}): ([0-9]{1,9}) (CE|UE) (?:(.{0,200}?) )?on (.{0,100}?)(?: \((.{0,200}?)(?: page:|\)|$)|$)",
    re.DOTALL,
)
_EDAC_BEFORE_3_5 = re.compile(  # by csrow and channel
    r"\s*EDAC (MC[0-9]{1,3}): (CE|UE) (?:- no information available|(?:page 0x[0-9a-f]{1,16}, [^\n]{0,120}?)?"
    r'row ([0-9]{1,4})(?:, channel ([0-9]{1,4})|, channel-a= ?[0-9]{1,4} channel-b= ?[0-9]{1,4})?,? labels? "([^"\n]{0,100})")'
)
_UNNAMED = ("", ":", "unknown label", "unknown memory", "any memory", "not specified")
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
# What the report is about stands below its severity; a PCI Express device is not this area's (lines/pcie.py).
_APEI_SECTION = re.compile(
    r"\s*(?:\{[0-9]{1,9}\})?\[Hardware Error\]: +section[_ ]type: (?!PCIe error)(.{1,100})"
)
# With SMCA and before: which flags there are differs, that CE or UE is the second does not.
_AMD_BANK = re.compile(
    r"\s*\[Hardware Error\]: CPU:([0-9]{1,5})\s.{0,40}?MC([0-9]{1,3})_STATUS\[[^|\]]{1,8}\|([^|\]]{1,4})\|([^\]]{0,120})\]"
)
_USER_ACCESS = re.compile(
    r"\s*(?:mce: )?Uncorrected hardware memory error in user-access at ([0-9a-f]{1,16})\b"
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

    markers: ClassVar[tuple[str, ...]] = (
        *("EDAC MC", "[Hardware Error]: ", "Memory failure: ", "in user-access at "),
    )
    kinds: ClassVar[tuple[str, ...]] = ("memory.ecc", "cpu.machine_check")
    distinguishing: ClassVar[tuple[str, ...]] = ("class", "dimm")

    def __init__(self) -> None:
        # AMD's headline was reported: the line of the bank that follows it is the same error.
        self._headline = False
        # That a machine check was logged was reported: AMD's headline that follows at once tells of the same one.
        self._logged = False
        # Severity of a report of the firmware (APEI) of which only that is known yet.
        self._firmware = ""

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        after_headline, self._headline = self._headline, False
        after_logged, self._logged = self._logged, _MCE_LOGGED.match(text) is not None
        if match := _EDAC.match(text):
            module = match[5].strip()
            if module in _UNNAMED:
                module = (match[6] or "").replace(":", " ").strip()
            return _edac(match[1], match[3], int(match[2]), module, match[4], text)
        if match := _EDAC_BEFORE_3_5.match(text):
            row, channel, label = match[3], match[4], match[5]
            place = f"csrow {row}" + (f" channel {channel}" if channel else "") if row else ""
            return _edac(match[1], match[2], 1, place if not label or label in _UNNAMED else label, "", text)
        if match := _USER_ACCESS.match(text):
            page = f"0x{int(match[1], 16) >> 12:x}"
            data: Optional = {"class": "uncorrected", "errors": 1, "page": page, "message": text.strip()}
            return unsent("memory.ecc", NODE, Severity.ERROR, data, text)
        if match := _AMD_BANK.match(text):
            return None if after_headline else _bank(match, text)
        if match := _AMD.match(text):
            self._headline = True
            if after_logged and match[1].startswith("Corrected"):
                return None  # what is worse is said as well
        if match := _POISON.match(text):
            data = {"class": "uncorrected", "errors": 1, "page": match[1], "message": match[2].strip()}
            return unsent("memory.ecc", NODE, Severity.ERROR, data, text)
        if match := _APEI.match(text):
            self._firmware = match[1]
            return None
        if match := _APEI_SECTION.match(text):
            word, self._firmware = self._firmware, ""
            return _firmware(word, match[1].strip(), text) if word in _RANKS else None
        return _check(text)


def _firmware(word: str, section: str, text: str) -> UnsentEvent:
    data: Optional = {"class": word, "message": f"firmware (APEI): {section}"}
    return unsent("cpu.machine_check", NODE, _RANKS[word], data, text)


def _edac(
    controller: str, kind: str, errors: int, module: str, message: str | None, text: str
) -> UnsentEvent:
    corrected = kind == "CE"
    data: Optional = {
        "class": "corrected" if corrected else "uncorrected",
        "errors": errors,
        "controller": controller,
        "dimm": module or "unknown",
        "message": (message or "").strip(),
    }
    return unsent("memory.ecc", NODE, Severity.WARNING if corrected else Severity.FATAL, data, text)


def _bank(match: re.Match[str], text: str) -> UnsentEvent:
    word = "deferred" if "Deferred" in match[4].split("|") else "corrected"
    word = "uncorrected" if match[3] == "UE" else word
    data: Optional = {"class": word, "cpu": int(match[1]), "bank": int(match[2])}
    return unsent("cpu.machine_check", NODE, _RANKS[word], data, text)


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
    return None
