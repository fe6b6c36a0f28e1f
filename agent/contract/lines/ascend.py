"""Lines of Huawei's driver for Ascend NPUs: an NPU whose heartbeat has stopped, or parts of it that are broken.

Formats: the driver's kernel source (driver package of the Ascend HDK): drv_log.h (`[ascend] [module] [function line] `, older
ones `[ERROR] [module] ...`), devdrv_manager's devdrv_pm.c and devdrv_manager.c, tsdrv's heartbeat. A line names the NPU by its
device number; the collector that knows the machine's numbers makes its address of it, else it is told of the node.
"""

import re
from typing import ClassVar

from agent.contract.components import NODE
from agent.contract.lines.base import Optional, unsent
from agent.contract.messages import Severity, UnsentEvent

_LINE = re.compile(
    r"\s*\[(?:ascend|ERROR)\] \[[A-Za-z0-9_ ]{1,32}\] \[[A-Za-z0-9_]{1,80} [0-9]{1,6}\] (?:<[^>\n]{1,64}> ?)?(.{1,400})",
    re.DOTALL,
)
_HEARTBEAT = re.compile(
    r"(device ([0-9]{1,4}) heart beat exception is detected, device heart beat broken"
    r"|device\(([0-9]{1,4})\) heart beat out of control"
    r"|\(Device=([0-9]{1,4}) heart beat is lost, stop send h2d message"
    r"|\[devid-([0-9]{1,4})\]\[tsid-[0-9]{1,3}\] heart beat exception is detected, process ts down exception)"
)
_BROKEN = re.compile(
    r"(receive message ai (core|cpu): [0-9]{1,4} (?:heart beat )?exception\. dev_id\(([0-9]{1,4})\)"
    r"|device\(([0-9]{1,4})\) ts (sysdma|syspcie) is broken)"
)


class AscendArea:
    """gpu.hung and gpu.hardware_error, of Ascend NPUs."""

    markers: ClassVar[tuple[str, ...]] = ("heart beat ", "receive message ai c", " ts sys")
    kinds: ClassVar[tuple[str, ...]] = ("gpu.hung", "gpu.hardware_error")
    distinguishing: ClassVar[tuple[str, ...]] = ("what", "device", "block")

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if not (line := _LINE.match(text)):
            return None
        if match := _HEARTBEAT.match(line[1]):
            device = next(digits for digits in match.groups()[1:] if digits)
            data: Optional = {
                "what": "heartbeat",
                "recovered": False,
                "device": int(device),
                "message": match[1].lstrip("("),
            }
            return unsent("gpu.hung", NODE, Severity.FATAL, data, text)
        if match := _BROKEN.match(line[1]):
            block = {"core": "aicore", "cpu": "aicpu"}.get(match[2] or "", match[5])
            data = {
                "what": "uncorrected",
                "block": block,
                "device": int(match[3] or match[4]),
                "message": match[1],
            }
            return unsent("gpu.hardware_error", NODE, Severity.ERROR, data, text)
        return None
