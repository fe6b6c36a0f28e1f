"""The meaning of an XID: applies the catalogue to a parsed line.

`XidReader` is the only way from a record of the NVIDIA driver to events; `agent.contract.lines.KernelReader` adds the
records of all others.
"""

import re
from collections.abc import Mapping

from agent.contract.messages import MAX_EVIDENCE, Scalar, Severity, UnsentEvent, clip
from agent.contract.nvlink5_table import ROWS
from agent.contract.xid import Nvlink5, OffBus, Xid, parse, parse_off_bus
from agent.contract.xid_details import details, nvlink_ignored
from agent.contract.xid_table import XIDS

# The driver's recovery actions: nvmlDeviceGpuRecoveryAction_t of nvml.h, in XID 154 and in NVML's field 230. A value that
# is not here is of a newer driver: unknown.
RECOVERY: Mapping[int, tuple[str, Severity]] = {
    0: ("none", Severity.INFO),
    1: ("reset", Severity.FATAL),
    2: ("reboot", Severity.FATAL),
    3: ("drain_p2p", Severity.WARNING),
    4: ("drain_and_reset", Severity.ERROR),
    5: ("recover_imex_domain", Severity.ERROR),
    6: ("bus_reset", Severity.FATAL),
    7: ("system_reboot", Severity.FATAL),
}
UNKNOWN_RECOVERY = ("unknown", Severity.UNKNOWN)
_V2_SINCE = 575  # since this driver NVLink5 reports have another bit layout
_DRIVER = re.compile(
    r"NVRM: loading NVIDIA UNIX .{0,80}?Kernel Module.{0,40}?\s([0-9]{3,4}\.[0-9]{1,4}(?:\.[0-9]{1,4})?)\b"
)


class XidReader:
    """Reads a kernel log record by record, and remembers the driver's version."""

    def __init__(self, *, driver: str = "") -> None:
        """`driver`: its version, e.g. `580.82`; empty: read from the line that it prints when it is loaded."""
        self._driver = driver
        self._fixed = bool(driver)

    def read(self, text: str) -> list[UnsentEvent]:
        """The facts in one record; empty for an ordinary one. Ages are 0."""
        if "NVRM: " not in text:
            return []
        if xid := parse(text):
            return [xid_event(xid, driver=self._driver, evidence=text)]
        if off_bus := parse_off_bus(text):
            return [off_bus_event(off_bus, evidence=text)]
        if not self._fixed and (match := _DRIVER.search(text[:300])):
            self._driver = match[1]
        return []


def xid_event(xid: Xid, *, driver: str = "", evidence: str = "") -> UnsentEvent:
    """The event for an XID, by the catalogue; a code that is not in it is `unknown` and has no action."""
    name, action, level = XIDS.get(xid.code, ("unknown", "", Severity.UNKNOWN.value))
    severity = Severity(level)
    data: dict[str, Scalar] = {"code": xid.code, "name": name, "action": action, "message": clip(xid.message)}
    optional: dict[str, Scalar | None] = {
        "pid": xid.pid,
        "process": clip(xid.process) or None,
        "recovery_action": xid.recovery_action,
        "link": xid.link,
        "caused_by": xid.caused_by,
    }
    if xid.recovery_action is not None:
        optional["recovery"], severity = RECOVERY.get(xid.recovery_action, UNKNOWN_RECOVERY)
    if xid.nvlink5 is not None:
        severity = Severity.FATAL if xid.nvlink5.fatal else Severity.WARNING
        optional["unit"] = clip(xid.nvlink5.unit)
        found, unproven = nvlink5_action(xid.code, xid.nvlink5, driver=driver)
        if found:
            data["action"] = found
            optional["unproven"] = True if unproven else None
    if xid.code == 74 and nvlink_ignored(xid.message):
        data["action"], severity = "IGNORE", Severity.INFO
    data |= details(xid.code, xid.message)
    if data.get("repair_at") == 1:
        data["persists"] = True
    data |= {key: value for key, value in optional.items() if value is not None}
    return UnsentEvent(
        kind="gpu.xid",
        component=xid.component,
        severity=severity,
        data=data,
        evidence=clip(evidence, MAX_EVIDENCE),
    )


def off_bus_event(off_bus: OffBus, *, evidence: str = "") -> UnsentEvent:
    """The event for an off-bus line without an XID."""
    return UnsentEvent(
        kind="gpu.off_bus",
        component=off_bus.component,
        severity=Severity.FATAL,
        data={"message": clip(off_bus.message)},
        evidence=clip(evidence, MAX_EVIDENCE),
    )


def nvlink5_action(code: int, report: Nvlink5, *, driver: str = "") -> tuple[str, bool]:
    """The action for an NVLink5 report by its bits, and whether that is unproven; ("", False) when the table has none.

    Unproven: decoded by the bit layout of drivers since 575, of which no real line has been seen yet. Without a driver
    version the old layout is tried first.
    """
    major = int(match[0]) if (match := re.match(r"[0-9]{1,4}", driver)) else None
    for newer in (False, True) if major is None else (major >= _V2_SINCE,):
        for (
            xid,
            units,
            v1,
            v2,
            statuses,
            action,
        ) in ROWS:  # of two masks for one error the narrower comes first
            care, value = v2 if newer else v1
            if (
                xid == code
                and report.unit in units
                and report.intr_info & care == value
                and (not statuses or report.error_status in statuses)
            ):
                return action, newer
    return "", False
