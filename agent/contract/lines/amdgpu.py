"""Lines of AMD's driver: resets, hangs, RAS errors, pages that went bad, heat, links between GPUs, a GPU that does not start.

Formats: Linux, drivers/gpu/drm/amd: amdgpu/amdgpu_device.c, amdgpu_job.c, amdgpu_ras.c, amdgpu_umc.c, amdgpu_ras_eeprom.c,
amdgpu_xgmi.c and amdgpu_kms.c, amdkfd/kfd_device_queue_manager.c and kfd_int_process_v9.c, pm/swsmu/amdgpu_smu.c, smu_cmn.c and
smu13/smu_v13_0.c; drivers/base/dd.c. A number in braces stands before what belongs to one RAS event. Corrected errors are
counted by the source amdgpu and not read here; the sums ("in total") are the same errors once more.
"""

import re
from typing import ClassVar

from agent.contract.components import NODE
from agent.contract.lines.base import Optional, device, number, unsent
from agent.contract.messages import Severity, UnsentEvent

_BDF = r"([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
_LINE = re.compile(rf"\s*amdgpu {_BDF}: (?:amdgpu: )?(?:\{{[0-9]{{1,20}}\}})?(.{{1,600}})", re.DOTALL)
_PROBED = re.compile(
    rf"\s*amdgpu(?:: probe of {_BDF}| {_BDF}: probe with driver amdgpu) (failed with error -[0-9]{{1,4}})"
)
_BLOCK = r"([A-Za-z0-9_.]{1,32})"
_PLACE = r"(?:socket: [0-9]{1,4}, die: [0-9]{1,4},? )?"
_ERRORS = re.compile(
    rf"{_PLACE}([0-9]{{1,18}}) (?:new )?(uncorrectable|deferred) hardware errors detected in {_BLOCK} block"
)
_FATAL = re.compile(r"(uncorrectable hardware error ?\(ERREVENT_ATHUB_INTERRUPT\) detected!)")
_CONSUMED = re.compile(
    rf"(RAS poison consumption, .{{1,120}}|GPU reset for {_BLOCK} RAS poison consumption is issued!)"
)
_CREATED = re.compile(r"(Poison is created)")
_BEGUN = re.compile(r"(GPU (?:reset|jobs stop) begin!)")
_DONE = re.compile(r"(GPU reset ?\([0-9]{1,9}\) succeeded!)")
_NOT_DONE = re.compile(
    r"(GPU reset ?\([0-9]{1,9}\) failed|GPU reset end with ret = -?[1-9][0-9]{0,4}|GPU Recovery Failed: -?[0-9]{1,5}"
    r"|GPU mode[0-9] reset failed|(?:ASIC reset failed with error|GPU pre asic reset failed with err), -?[0-9]{1,5}\b.{0,80})"
)
_RING = re.compile(r"(ring ([A-Za-z0-9_.]{1,40}) timeout(, but soft recovered)?.{0,80})", re.DOTALL)
_QUEUES = re.compile(
    r"(qcm fence wait loop timeout expired|The cp might be in an unrecoverable state.{0,80}"
    r"|MES might be in unrecoverable state.{0,40}|(?:XCC [0-9]{1,3}: )?Queue preemption failed for queue.{0,60})"
)
_FIRMWARE = re.compile(r"(SMU: I'm not done with your previous command.{0,80})")
_LOST = re.compile(r"(device lost from bus!)")
_OVER = re.compile(
    r"(Saved bad pages ([0-9]{1,9}) reaches threshold value ([0-9]{1,9})|RAS records: ?([0-9]{1,9}) exceeds? threshold: ?"
    r"([0-9]{1,9}).{0,100})"
)
_NEAR = re.compile(r"(RAS records: ?([0-9]{1,9}) exceeds 90% of threshold: ?([0-9]{1,9}))")
_HOT = re.compile(
    r"(?:ERROR: )?(GPU over temperature range ?\((SW) CTF\) detected!|GPU (HW) Critical Temperature Fault ?\(aka CTF\) detected!)"
)
_LINK = re.compile(r"((?:XGMI|WAFL)[0-9A-Z]{0,8} PCS ([A-Za-z]{1,40})) detected")
_UNTRAINED = re.compile(
    r"(socket: [0-9]{1,4}, aid: [0-9]{1,4}, fw_status: 0x[0-9a-f]{1,8}, (?:xgmi|wafl) link training failed)"
)
# What the firmware found when the GPU was started (amdgpu_ras_boot_time_error_reporting).
_STARTED = re.compile(
    r"(socket: [0-9]{1,4}, aid: [0-9]{1,4},(?: hbm: [0-9]{1,4},)? fw_status: 0x[0-9a-f]{1,8}, (?:memory training failed"
    r"|firmware load failed at boot time|hbm memory test failed|hbm bist test failed|data abort exception))"
    r"|(Fatal error during GPU init)"
)


class AmdgpuArea:
    """gpu.driver_reset, gpu.hung, gpu.hardware_error, gpu.bad_pages, gpu.overheated and gpu.link_errors; also gpu.off_bus and
    gpu.init_failed.
    """

    markers: ClassVar[tuple[str, ...]] = ("amdgpu ", "amdgpu: probe of ")
    kinds: ClassVar[tuple[str, ...]] = (
        *("gpu.driver_reset", "gpu.hung", "gpu.hardware_error", "gpu.bad_pages", "gpu.overheated"),
        *("gpu.link_errors", "gpu.off_bus", "gpu.init_failed"),
    )
    distinguishing: ClassVar[tuple[str, ...]] = ("what", "device", "block", "state", "counter", "exceeded")

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _PROBED.match(text):
            where = device("amdgpu", match[1] or match[2])
            return unsent("gpu.init_failed", where, Severity.FATAL, {"message": match[3]}, text)
        if not (match := _LINE.match(text)):
            return None
        where, said = device("amdgpu", match[1]), match[2]
        if where == NODE:
            return None
        return _reset(where, said, text) or _ras(where, said, text) or _others(where, said, text)


def _reset(where: str, said: str, text: str) -> UnsentEvent | None:
    """What the driver does about a GPU by itself, and why."""
    for pattern, state, severity in (
        (_BEGUN, "begun", Severity.ERROR),
        (_DONE, "succeeded", Severity.WARNING),
        (_NOT_DONE, "failed", Severity.FATAL),
    ):
        if match := pattern.match(said):
            data: Optional = {"state": state, "message": match[1].strip()}
            return unsent("gpu.driver_reset", where, severity, data, text)
    if match := _RING.match(said):
        recovered = bool(match[3])
        severity = Severity.WARNING if recovered else Severity.ERROR
        data = {"what": "ring", "ring": match[2], "recovered": recovered, "message": match[1].strip()}
        return unsent("gpu.hung", where, severity, data, text)
    for pattern, what in ((_QUEUES, "queues"), (_FIRMWARE, "firmware")):
        if match := pattern.match(said):
            data = {"what": what, "recovered": False, "message": match[1].strip()}
            return unsent("gpu.hung", where, Severity.ERROR, data, text)
    if match := _LOST.match(said):
        return unsent("gpu.off_bus", where, Severity.FATAL, {"message": match[1]}, text)
    return None


def _ras(where: str, said: str, text: str) -> UnsentEvent | None:
    """Errors of the hardware."""
    if match := _ERRORS.match(said):
        errors, word, block = int(match[1]), match[2], match[3].lower()
        if not errors:
            return None
        what = "uncorrected" if word == "uncorrectable" else "deferred"
        if block == "xgmi_wafl":
            data: Optional = {"link_type": "xgmi", "counter": what, "delta": errors, "message": match[0]}
            return unsent("gpu.link_errors", where, Severity.ERROR, data, text)
        severity = Severity.ERROR if what == "uncorrected" else Severity.WARNING
        data = {"what": what, "block": block, "errors": errors, "message": match[0]}
        return unsent("gpu.hardware_error", where, severity, data, text)
    for pattern, what, severity in (
        (_FATAL, "fatal", Severity.FATAL),
        (_CONSUMED, "consumed", Severity.ERROR),
        (_CREATED, "deferred", Severity.WARNING),
    ):
        if match := pattern.match(said):
            return unsent("gpu.hardware_error", where, severity, {"what": what, "message": match[1]}, text)
    return None


def _others(where: str, said: str, text: str) -> UnsentEvent | None:
    """Pages, heat, links, the start."""
    if match := _NEAR.match(said):
        data: Optional = {
            "pages": int(match[2]),
            "threshold": int(match[3]),
            "exceeded": False,
            "message": match[1],
        }
        return unsent("gpu.bad_pages", where, Severity.WARNING, data, text)
    if match := _OVER.match(said):
        pages, threshold = number(match[2] or match[4]), number(match[3] or match[5])
        data = {"pages": pages, "threshold": threshold, "exceeded": True, "message": match[1].strip()}
        return unsent("gpu.bad_pages", where, Severity.FATAL, data, text)
    if match := _HOT.match(said):
        what = "software" if match[2] else "hardware"
        return unsent("gpu.overheated", where, Severity.FATAL, {"what": what, "message": match[1]}, text)
    if match := _LINK.match(said):
        data = {"link_type": "xgmi", "counter": match[2], "message": match[1]}
        return unsent("gpu.link_errors", where, Severity.WARNING, data, text)
    if match := _UNTRAINED.match(said):
        data = {"link_type": "xgmi", "counter": "training_failed", "message": match[1]}
        return unsent("gpu.link_errors", where, Severity.ERROR, data, text)
    if match := _STARTED.match(said):
        return unsent("gpu.init_failed", where, Severity.FATAL, {"message": match[1] or match[2]}, text)
    return None
