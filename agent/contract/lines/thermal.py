"""Processors that slow down because they are hot.

Formats: Linux, drivers/thermal/intel/therm_throt.c (before 5.10 arch/x86/kernel/cpu/mce/therm_throt.c; other words before 5.5).
Each processor of a package prints the package's line, at most every five minutes while it lasts.
"""

import re
from typing import ClassVar

from agent.contract.components import NODE
from agent.contract.lines.base import number, unsent
from agent.contract.messages import Severity, UnsentEvent

_THROTTLE = re.compile(
    r"\s*(?:mce: )?(?:CPU([0-9]{1,5}): )?(Core|Package) temperature"
    r"(?:(?: is)? above threshold, cpu clock(?: is)? throttled|(/speed normal))(?: \(total events = ([0-9]{1,20})\))?"
)


class ThermalArea:
    """cpu.throttle."""

    markers: ClassVar[tuple[str, ...]] = ("above threshold, cpu clock", " temperature/speed normal")
    kinds: ClassVar[tuple[str, ...]] = ("cpu.throttle",)
    distinguishing: ClassVar[tuple[str, ...]] = ("what", "active")

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        match = _THROTTLE.match(text)
        if match is None:
            return None
        active = not match[3]
        data = {
            "what": match[2].lower(),
            "active": active,
            "cpu": number(match[1]),
            "events": number(match[4]),
        }
        return unsent("cpu.throttle", NODE, Severity.WARNING if active else Severity.INFO, data, text)
