"""SXids: errors of NVSwitches.

The driver's print format (NVIDIA's open kernel modules, common_nvswitch.h):

    nvidia-nvswitch<n>: SXid (PCI:dddd:bb:dd.f): <code>, [Fatal|Non-fatal|Correctable, ][Link <nn> ]<text>[ (First)]

followed by lines with the same prefix and `Severity <n> Engine instance ...` or `Data {0x..., ...}`. Host, thermal and
other codes name no link.
"""

import re
from typing import ClassVar

from agent.contract.lines.base import component, number, unsent
from agent.contract.messages import Severity, UnsentEvent
from agent.contract.sxid_table import SXIDS

_SXID = re.compile(
    r"\s*(nvidia-nvswitch[0-9]{1,3}): SXid \((?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?\):"
    r"\s*([0-9]{1,6})(?![0-9]),?\s*(?:(?i:(Fatal|Non-fatal|Correctable))\b,?\s*)?(.*)",
    re.DOTALL,
)
_LINK = re.compile(r"\blink (?:id )?([0-9]{1,3})\b", re.IGNORECASE)
_MORE = re.compile(r"(?:Severity ([0-9]{1,2}) |Data \{)", re.IGNORECASE)
_ENGINE = re.compile(r"Engine instance ([0-9]{1,4})", re.IGNORECASE)
_WORDS = {"fatal": "fatal", "non-fatal": "non-fatal", "correctable": "correctable"}
_NUMBERS = {"0": "non-fatal", "1": "fatal", "2": "correctable"}  # the driver's NVSWITCH_ERROR_SEVERITY_*


class SxidArea:
    """nvswitch.sxid: one event per headline; its Severity and Data lines are part of it.

    If the headline was lost (the kernel overwrote it), the first line that follows replaces it.
    """

    markers: ClassVar[tuple[str, ...]] = ("SXid (",)
    kinds: ClassVar[tuple[str, ...]] = ("nvswitch.sxid",)
    distinguishing: ClassVar[tuple[str, ...]] = ("code", "link")

    def __init__(self) -> None:
        # Switch → code of its latest headline; a machine has only a few switches.
        self._headline: dict[str, int] = {}

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        match = _SXID.match(text)
        if match is None:
            return None
        code, message = int(match[3]), match[5].strip()
        switch = component("nvswitch", _address(match[2]))
        more = _MORE.match(message)
        if more is not None and self._headline.get(switch) == code:
            return None
        if len(self._headline) >= 64:
            self._headline.clear()
        self._headline[switch] = code
        said = _WORDS.get((match[4] or "").lower(), "")
        if more is not None:
            said = said or _NUMBERS.get(more[1] or "", "")
        name, action, word = SXIDS.get(code, ("unknown", "", Severity.UNKNOWN.value))
        severity = Severity(word)
        if severity is not Severity.UNKNOWN and said == "fatal":
            severity = Severity.FATAL  # the driver judges this one occurrence; the catalogue only the code
        link = _LINK.search(message)
        data = {
            "code": code,
            "name": name,
            "message": message or name,
            "said": said,
            "link": number(link[1]) if link else None,
            "engine": number(engine[1]) if (engine := _ENGINE.search(message)) else None,
            "device": match[1],
        }
        found = unsent("nvswitch.sxid", switch, severity, data, text)
        return UnsentEvent(
            kind=found.kind,
            component=found.component,
            severity=found.severity,
            data={**found.data, "action": action},
            evidence=found.evidence,
        )


def _address(text: str) -> str:
    domain, _, rest = text.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"
