"""Lines of NVIDIA's fabric manager: from its log file (`[date] [ERROR] [tid n] text`), or from journald, only the text.

Grammar: NVIDIA Fabric Manager user guide, "Logging" and "NVSwitch errors".
"""

import re
from typing import ClassVar

from agent.contract.components import NODE
from agent.contract.lines.base import component, number, unsent
from agent.contract.messages import Severity, UnsentEvent

_LINE = re.compile(
    r"\s*\[[A-Z][a-z]{2} [0-9]{1,2} [0-9]{4} [0-9:]{8}\] \[(DEBUG|INFO|WARNING|ERROR|CRITICAL)\] \[tid [0-9]{1,10}\] (.{1,600})",
    re.DOTALL,
)
_SXID = re.compile(
    r"detected NVSwitch (fatal|non-fatal) error ([0-9]{1,6})\b.{0,60}? on NVSwitch pci bus id "
    r"([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?(?: physical id ([0-9]{1,3}))?(?: port ([0-9]{1,3}))?"
)
# With or without the log's prefix: it ends right after that, and what it has printed stands in the journal, too.
_OTHER_VERSION = re.compile(
    r"\s*(?:[Ff]abric [Mm]anager )?NVIDIA GPU driver interface version ([0-9.]{1,20}) (?:don't|doesn't|does not) match with "
    r"driver version ([0-9.]{1,20})"
)
_TROUBLE = re.compile(
    r"(failed to .{1,300}|fatal error .{1,300}|degraded .{1,300}|.{0,100}version (?:.{1,80}) does(?:n't| not) match.{0,200}"
    r"|.{0,100}NVLink .{0,80}(?:training failed|not trained).{0,200})",
    re.DOTALL,
)


class FabricManagerArea:
    """fabricmanager.error. Without the prefix of the log only lines that are certainly its own are read."""

    markers: ClassVar[tuple[str, ...]] = ("] [tid ", "detected NVSwitch ", " driver interface version ")
    kinds: ClassVar[tuple[str, ...]] = ("fabricmanager.error",)
    distinguishing: ClassVar[tuple[str, ...]] = ("what", "code", "link")

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        level, message = "", text.strip()
        if match := _LINE.match(text):
            level, message = match[1], match[2].strip()
        if match := _SXID.match(message):
            fatal = match[1] == "fatal"
            domain, _, rest = match[3].lower().partition(":")
            data = {
                "what": "nvswitch_fatal" if fatal else "nvswitch_non_fatal",
                "message": message,
                "code": int(match[2]),
                "link": number(match[5]),
            }
            where = component("nvswitch", f"{int(domain, 16):04x}:{rest}")
            return unsent(
                "fabricmanager.error", where, Severity.FATAL if fatal else Severity.WARNING, data, text
            )
        if _OTHER_VERSION.match(message):
            data = {"what": "version_mismatch", "message": message}
            return unsent("fabricmanager.error", NODE, Severity.ERROR, data, text)
        if level in ("ERROR", "CRITICAL") or (level == "WARNING" and _TROUBLE.match(message)):
            severity = Severity.WARNING if level == "WARNING" else Severity.ERROR
            return unsent("fabricmanager.error", NODE, severity, {"what": "error", "message": message}, text)
        return None
