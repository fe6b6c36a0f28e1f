"""Disks: errors of the block layer, SCSI, ATA, NVMe, software RAID and multipath.

Formats: Linux, block/blk-core.c and blk_types errors, fs/buffer.c, drivers/scsi, drivers/ata/libata, drivers/nvme/host
(multipath.c), drivers/md (raid*.c, md-linear.c, dm-mpath.c); multipathd, libmultipath/structs_vec.c.
"""

import re
from typing import ClassVar

from agent.contract.lines.base import component, number, unsent
from agent.contract.messages import Severity, UnsentEvent

_BLOCK = re.compile(
    r"\s*(?:blk_update_request: |print_req_error: |end_request: )?(I/O|critical medium|critical target|critical space allocation"
    r"|critical nexus|timeout|recoverable transport|protection|device resource|device offline) error, "
    r"dev ([\w!-]{1,40}), sector ([0-9]{1,20})(?: op 0x[0-9a-f]{1,3}:\((\w{1,20})\))?"
)
_BUFFER = re.compile(r"\s*(?:Buffer I/O error on dev(?:ice)? ([\w!-]{1,40}), logical block)")
_SENSE = re.compile(
    r"\s*sd [0-9:]{5,30}: \[(sd[a-z]{1,4})\] (?:tag#[0-9]{1,6} )?Sense Key : (Medium Error|Hardware Error)"
)
_OFFLINE = re.compile(
    r"\s*sd ([0-9:]{5,30}): (?:\[(sd[a-z]{1,4})\] )?(?:rejecting I/O to offline device|Device offlined)"
)
_ATA = re.compile(
    r"\s*(ata[0-9]{1,3}(?:\.[0-9]{1,2})?): (?:(?P<tried>failed command: .{1,60}|exception Emask .{1,80})"
    r"|(?:disabled|disable device)(?!\s?\w))"
)
_NVME = re.compile(
    r"\s*nvme (nvme[0-9]{1,4}): (?:(?P<timeout>I/O (?:tag )?[0-9]{1,6}.{0,80}? timeout\b)"
    r"|(?P<down>controller is down; will reset)|(?P<lost>Removing after probe failure|Device not ready"
    r"|Disabling device after reset failure|Identify Controller failed))"
)
_NVME_IO = re.compile(
    r"\s*(nvme[0-9]{1,4}(?:c[0-9]{1,4})?n[0-9]{1,4}): .{1,120}?, .{1,60}? \(sct (0x[0-9a-f]{1,2}) / sc 0x[0-9a-f]{1,2}\)"
)
# Kernels differ in the colon before the array: md/raid1:md0, md/raid0md0.
_RAID = re.compile(
    r"\s*md/(?:raid[0-9]{0,2}|linear|multipath):?(md\w{1,20}): "
    r"(?:Disk failure on ([\w!-]{1,40})(?:, disabling device| detected, failing array)|Cannot continue operation"
    r"|not enough operational (?:devices|mirrors)|failed to run raid set|cannot start dirty degraded array)"
)
_RAID_STARTED = re.compile(
    r"\s*md/raid[0-9]{0,2}:(md\w{1,20}): (?:raid level [0-9]{1,2} )?active with ([0-9]{1,4}) out of ([0-9]{1,4})"
    r" (?:mirrors|devices)"
)
_RAID_READ = re.compile(
    r"\s*md/raid[0-9]{0,2}:(md\w{1,20}): (?:(?P<disk>[\w!-]{1,40}): unrecoverable I/O read error for block (?P<at>[0-9]{1,20})"
    r"|read error not correctable \(sector (?P<sector>[0-9]{1,20}) on (?P<member>[\w!-]{1,40})\))"
)
_RAID_MEMBER = re.compile(r"\s*md: (md\w{1,20}): \w{1,20} array has a missing/failed member")
_DM_PATH = re.compile(
    r"\s*device-mapper: multipath: (?:[0-9]{1,4}:([0-9]{1,7}): )?Failing path ([0-9]{1,4}:[0-9]{1,7})\b"
)
_DM_QUEUE = re.compile(
    r"\s*device-mapper: multipath: (?:(?:[0-9]{1,4}:([0-9]{1,7})|([\w.-]{1,60})): )?queue_if_no_path timeout"
    r"(?: on [0-9]{1,4}:([0-9]{1,7}))?, failing queued I/?O"
)
_DM_PATHS = re.compile(r"\s*([\w.-]{1,60}): remaining active paths: 0(?![0-9])")  # multipathd
_NVME_PATHS = re.compile(
    r"\s*(?:block|nvme) (nvme[0-9]{1,4}n[0-9]{1,4}): "
    r"(?:(no usable path|no path available)|no available path|no path) - (?:requeu?ing|failing) I/O"
)
_BEYOND = re.compile(
    r"\s{0,30}(?:(?:[^'`\n]{1,15}: )?attempt to access beyond end of device\s{1,30})?"
    r"([\w!-]{1,40}): rw=[0-9]{1,8}, (?:want|sector)=([0-9]{1,20}),"
    r"(?: nr_sectors = [0-9]{1,9},?)? limit=[0-9]{1,20}"
)
_IGNORED = ("fd", "sr")  # empty floppy and CD drives of virtual machines and BMCs

ERROR, WARNING, FATAL = Severity.ERROR, Severity.WARNING, Severity.FATAL
_BLOCK_WHAT = {"critical medium": "medium_error", "timeout": "timeout", "device offline": "offline"}


class DiskArea:
    """disk.error."""

    markers: ClassVar[tuple[str, ...]] = (
        " error, dev ",
        "Buffer I/O error",
        "Sense Key : ",
        "offline",
        "failed command: ",
        "exception Emask",
        *(": disabled", ": disable device"),
        "nvme nvme",
        " (sct 0x",
        "Disk failure on ",
        *(
            "Cannot continue operation",
            "not enough operational ",
            "failed to run raid set",
            "dirty degraded array",
        ),
        *("active with ", "unrecoverable I/O read error", "read error not correctable"),
        "missing/failed member",
        "Failing path ",
        "queue_if_no_path timeout",
        "active paths: 0",
        " path - ",
        "no path available - ",
        ": rw=",
    )
    kinds: ClassVar[tuple[str, ...]] = ("disk.error",)
    distinguishing: ClassVar[tuple[str, ...]] = ("what",)

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _BLOCK.match(text):
            what = _BLOCK_WHAT.get(match[1], "io_error")
            severity = FATAL if what == "offline" else ERROR
            return _error(
                match[2], what, severity, text, sector=number(match[3]), operation=(match[4] or "").lower()
            )
        if match := _BUFFER.match(text):
            return _error(match[1], "io_error", ERROR, text)
        if match := _SENSE.match(text):
            return _error(
                match[1], "medium_error" if match[2] == "Medium Error" else "hardware_error", ERROR, text
            )
        if match := _OFFLINE.match(text):
            return _error(match[2] or match[1], "offline", FATAL, text)
        if match := _BEYOND.match(text):
            return _error(match[1], "beyond_end", ERROR, text, sector=number(match[2]))
        return _raid(text) or _path(text) or _nvme(text)


def _raid(text: str) -> UnsentEvent | None:
    """Software RAID: an array that lost a disk, does not start, or starts without all of its disks."""
    if match := _RAID.match(text):
        return _error(match[2] or match[1], "raid_failure", FATAL, text, array=match[1])
    if match := _RAID_MEMBER.match(text):
        return _error(match[1], "raid_failure", FATAL, text, array=match[1])
    if match := _RAID_READ.match(text):
        sector = number(match["at"] or match["sector"])
        return _error(
            match["disk"] or match["member"], "medium_error", ERROR, text, sector=sector, array=match[1]
        )
    if (match := _RAID_STARTED.match(text)) and int(match[2]) < int(match[3]):
        return _error(match[1], "raid_degraded", ERROR, text, array=match[1])
    return None


def _path(text: str) -> UnsentEvent | None:
    if match := _DM_PATH.match(text):
        disk = f"dm-{match[1]}" if match[1] else match[2]
        return _error(disk, "path_failed", WARNING, text, path=match[2])
    if match := _DM_QUEUE.match(text):
        dm = match[1] or match[3]
        return _error(f"dm-{dm}" if dm else match[2] or "unknown", "no_path", FATAL, text)
    if match := _DM_PATHS.match(text):
        return _error(match[1], "no_path", FATAL, text)
    if match := _NVME_PATHS.match(text):
        # Without a usable path requests wait for one that connects again; without any they fail.
        return _error(match[1], *(("path_failed", ERROR) if match[2] else ("no_path", FATAL)), text)
    return None


def _nvme(text: str) -> UnsentEvent | None:
    if match := _NVME.match(text):
        what = "timeout" if match["timeout"] else "controller_down" if match["down"] else "controller_lost"
        return _error(match[1], what, FATAL if what == "controller_lost" else ERROR, text)
    if match := _NVME_IO.match(text):
        # Status code type 2 is the medium and its data (NVM Express base specification, "Status Code").
        what = "medium_error" if match[2] in ("0x2", "0x02") else "io_error"
        return _error(match[1], what, ERROR, text)
    if match := _ATA.match(text):
        # It is disabled when all attempts have failed.
        return _error(match[1], *(("ata_error", WARNING) if match["tried"] else ("offline", FATAL)), text)
    return None


def _error(
    disk: str,
    what: str,
    severity: Severity,
    text: str,
    *,
    sector: int | None = None,
    operation: str = "",
    array: str = "",
    path: str = "",
) -> UnsentEvent | None:
    if disk.startswith(_IGNORED):
        return None
    data = {"what": what, "sector": sector, "operation": operation, "array": array, "path": path}
    return unsent("disk.error", component("disk", disk), severity, data, text)
