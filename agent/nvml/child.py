"""Samples NVML in a process of its own that the agent can kill: a call into a sick driver may never return.

agent/nvml/start.py runs it. It imports little: of the agent only `wire`, of the standard library no json, typing, re or
enum (2 MB). Before each call it writes the call's name and start on the board, a page of memory that it shares with the
agent; that costs no system call. On stdout it writes one JSON object per line:

    {"absent": why, "code": n}         NVML cannot be opened: mostly there is no library or driver; the process ends
    {"at": s, "gpus": [GPU, ...], "skipped": [...], "look": n}
                                       one sample; see SampledGpu.sample; look: the latest one that was asked for
    {"at": s, "event": [bdf, type, data, count]}

`at` is CLOCK_MONOTONIC. A value that this driver or card does not report is null. It only reads: no allocation, no CUDA
context. An ordinary sample has what changes from second to second; each SLOW_EVERY-th also the counters, most of them
read in one call; each RARE_EVERY-th what hardly ever changes. After an event its GPU's counters are in the next sample.
While all is calm (agent/nvml/pace.py) samples without news are not written; `util` and `least` are then the highest and
the lowest utilisation since the last line.
When the agent has raised the number of its look on the board, the next sample has everything, of lost GPUs too.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
import time

import pynvml

from agent.nvml.pace import Pace
from agent.nvml.wire import BOARD, BOARD_BYTES, LOOK, SAMPLED, SAMPLED_AT, json_text

TYPE_CHECKING = False  # typing itself would cost 0.6 MB
if TYPE_CHECKING:
    from typing import Any

_LOST = {
    pynvml.NVML_ERROR_GPU_IS_LOST: "lost",
    pynvml.NVML_ERROR_RESET_REQUIRED: "reset_required",
    pynvml.NVML_ERROR_GPU_NOT_FOUND: "not_found",
}
# After these a call that is supported did not work. After any other code it is not supported, unless it worked before. A GPU
# of which nothing works for MUTE samples is lost; it is back when more of all that it is asked works than fails. One that
# never answered anything may support nothing: nothing is claimed of it.
_FAILED = (
    pynvml.NVML_ERROR_UNKNOWN,
    pynvml.NVML_ERROR_TIMEOUT,
    pynvml.NVML_ERROR_IRQ_ISSUE,
    pynvml.NVML_ERROR_OPERATING_SYSTEM,
    pynvml.NVML_ERROR_INSUFFICIENT_POWER,
)
_UNKNOWN, MUTE = "unknown_error", 3
# NVML answers these from what it has read before: they say nothing about a GPU.
_IDENTITY = {"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetPciInfo", "nvmlDeviceGetUUID", "nvmlDeviceGetSerial"}
# After these no call works any more: the driver was unloaded or replaced.
_GONE = (
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
)
_MIB = 1024 * 1024
_REOPEN_S = 30.0  # NVML sees a returned GPU only after it was opened again
_SIGKILL, _PR_SET_PDEATHSIG = 9, 1
_XID = 0x8
_CHUNK = 64  # field values in one call
_LOOK_S = 5.0  # how often a long pause is interrupted to see whether the agent wants a look
# nvmlEventType*. Clock and P-state events are left out: a busy GPU sends dozens of them per second; the reasons of a
# slowdown are sampled instead. ECC single and double, XID, power source, MIG, ECC storm, retirement and its failure,
# poison (non-fatal, fatal), GPU unavailable, recovery action.
_EVENTS = 0x1 | 0x2 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800 | 0x1000 | 0x2000 | 0x4000 | 0x8000
# NVML_FI_DEV_* → key in SampledGpu.sample["health"]; the keys are explained in agent/collectors/samples.py.
_FIELDS = {
    1: "ecc.mode", 2: "ecc.mode_pending",
    3: "ecc.volatile.corrected.total", 4: "ecc.volatile.uncorrected.total",
    5: "ecc.aggregate.corrected.total", 6: "ecc.aggregate.uncorrected.total",
    17: "ecc.volatile.uncorrected.cbu", 28: "ecc.aggregate.uncorrected.cbu",
    29: "retired.single_bit", 30: "retired.double_bit", 31: "retired.pending",
    38: "nvlink.all.crc_flit", 45: "nvlink.all.crc_data", 52: "nvlink.all.replay", 59: "nvlink.all.recovery",
    160: "nvlink.all.ecc", 82: "memory_temp", 91: "nvlink.links",
    94: "pcie.replay", 95: "pcie.replay_rollover", 173: "pcie.correctable", 174: "pcie.naks_received",
    175: "pcie.receiver", 176: "pcie.bad_tlp", 177: "pcie.naks_sent", 178: "pcie.bad_dllp",
    179: "pcie.non_fatal", 180: "pcie.fatal", 181: "pcie.unsupported_request", 182: "pcie.lcrc", 183: "pcie.lane",
    142: "remap.corrected", 143: "remap.uncorrected", 144: "remap.pending", 145: "remap.failure",
    193: "tlimit.shutdown", 194: "tlimit.slowdown", 195: "tlimit.memory_max", 196: "tlimit.gpu_max",
    230: "recovery_action",
} | {
    first + 2 * place + word: f"ecc.{counter}.{('corrected', 'uncorrected')[word]}.{name}"
    for first, counter in ((7, "volatile"), (18, "aggregate"))
    for place, name in enumerate(("l1", "l2", "dram", "register", "texture"))
    for word in (0, 1)
}  # fmt: skip
# The same, read for each link.
_LINK_FIELDS = {
    165: "state", 161: "replay", 162: "recovery", 163: "crc", 206: "malformed", 207: "overrun", 208: "receive",
    211: "integrity", 213: "recovered", 214: "recovery_failed", 219: "effective_errors", 220: "effective_ber",
    222: "symbol_ber", 295: "plr_retry",
}  # fmt: skip
# nvmlFieldValue_t: field, scope, timestamp, latency, type, return code, value. Taken apart here, since each attribute of
# pynvml's structures is read by a function of its own.
_FIELD_VALUE = struct.Struct("=IIqqII8s")
_VALUE = tuple(struct.Struct(f"={code}") for code in "dIQQqiH")  # by nvmlValueType_t


class GoneError(Exception):
    """There is no NVML here, or no longer."""

    def __init__(self, error: pynvml.NVMLError) -> None:
        super().__init__(str(error))
        self.code: int = error.value


class Nvml:
    """Calls into the library, each announced on the board."""

    def __init__(
        self,
        board: mmap.mmap,
        skips: list[tuple[int, str, float]] | None = None,
        answered: list[str] | None = None,
    ) -> None:
        """`skips`: calls that are not made for a while: NVML index, name, seconds. `answered`: addresses, as NVML writes them,
        of GPUs that have answered something.
        """
        now_s = time.monotonic()
        self.skips = {(index, name): now_s + for_s for index, name, for_s in skips or ()}
        self.board = board
        self.answered = set(answered or ())
        self.shown: set[str] = set()  # those that are found since NVML was opened
        # Calls about a GPU, see `watch`.
        self.asked: set[str] = set()
        self.worked: set[str] = set()
        self.failed: set[str] = set()
        self.lost_by: set[str] = set()

    def watch(self) -> None:
        """From now on `asked`, `worked` and `failed` have the calls about a GPU that were made and did, and `lost_by` those that
        answered that it is lost. What is not supported is in `asked` alone.
        """
        self.asked, self.worked, self.failed, self.lost_by = set(), set(), set(), set()

    def note(self, name: str, error: int) -> None:
        """That call, or a field of it, did not work."""
        if error in _LOST:
            self.lost_by.add(name)
        elif error in _FAILED:
            self.failed.add(name)

    def look(self) -> int:
        """The number of the latest look that the agent has asked for."""
        number: int = LOOK.unpack_from(self.board, BOARD.size)[0]
        return number

    def open(self) -> None:
        """nvmlInit; any error of it is a GoneError."""
        self.shown = set()
        try:
            self.call(-1, "nvmlInit", strict=True)
        except pynvml.NVMLError as error:
            raise GoneError(error) from error

    def call(self, index: int, name: str, *args: Any, allowed_s: float = 0.0, strict: bool = False) -> Any:
        """`pynvml.<name>(*args)`; None where the driver does not support it, or NVMLError when `strict`.

        NVMLError for a lost GPU, GoneError for a lost driver. `allowed_s`: how long the call may wait by design.
        """
        if self.skips and self._skipped(index, name):
            return None
        started = time.monotonic_ns() + int(allowed_s * 1e9)
        BOARD.pack_into(self.board, 0, started, index, name.encode())
        if index >= 0:
            self.asked.add(name)
        try:
            answer = getattr(pynvml, name)(*args)
            if index >= 0:
                self.worked.add(name)
            return answer
        except pynvml.NVMLError as error:
            if error.value in _GONE:
                raise GoneError(error) from error
            self.note(name, error.value)
            unknown = (
                error.value == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
            )  # an older driver's library; some GPUs say so as well
            if error.value in _LOST or (strict and not unknown):
                raise
            return None
        finally:
            BOARD.pack_into(self.board, 0, 0, -1, b"")

    def _skipped(self, index: int, name: str) -> bool:
        until_s = self.skips.get((index, name))
        if until_s is None or time.monotonic() < until_s:
            return until_s is not None
        del self.skips[index, name]  # it is tried again; if it hangs again, the agent notices
        return False


class SampledGpu:
    """One GPU with its latest sample."""

    def __init__(self, nvml: Nvml, index: int) -> None:
        self.nvml, self.index = nvml, index
        self.slow_due = False  # an event came: the next sample has the counters
        self.handle: Any = None
        # answers: of what it was asked, more worked than failed; null: nothing ever worked, and nothing failed. health: what
        # changed since the last sample, by key; null: it is not reported any more.
        self.sample: dict[str, Any] = {
            "index": index, "bdf": "", "uuid": "", "serial": "", "lost": "", "answers": None, "now": None, "util": None,
            "least": None, "mem": None, "power": None, "temp": None, "reasons": None, "procs": None, "health": {},
        }  # fmt: skip
        self._reported: dict[str, dict[str, Any]] = {}  # tier → values of its latest reading
        self._fields: dict[str, list[tuple[int, int]]] = {}  # tier → fields that this card supports
        self.sent = True  # the sample: the next one begins anew
        self._works: set[str] = set()  # calls that worked when they were made last, or fail
        self._mute = 0  # samples in a row in which nothing worked that should
        self._blamed: set[str] = set()  # calls that answered that it is lost: each must work again
        nvml.watch()
        try:
            self._open()
        except pynvml.NVMLError as error:
            self._is_lost(_LOST[error.value])

    def _open(self) -> None:
        self.handle = self.nvml.call(self.index, "nvmlDeviceGetHandleByIndex", self.index)
        if self.handle is not None:
            pci = self._ask("nvmlDeviceGetPciInfo")
            self.sample["bdf"] = _text(pci.busId) if pci is not None else ""
            self.nvml.shown.add(self.sample["bdf"])
            self.sample["uuid"] = _text(self._ask("nvmlDeviceGetUUID"))
            self.sample["serial"] = _text(self._ask("nvmlDeviceGetSerial"))  # only boards have one

    def update(self, slow: bool, rare: bool) -> None:
        """Takes a new sample, with the counters if `slow`, and with what hardly ever changes if `rare`.

        A GPU that is lost, or did not answer the last time, is asked everything.
        """
        if self.sent:
            self.sample |= {"health": {}, "now": None, "util": None, "least": None}
            self.sent = False
        lost = self.sample["lost"]
        if self.handle is None and lost not in ("", _UNKNOWN):
            return  # only opening NVML again shows it
        everything = bool(lost) or self.sample["answers"] is False
        self.nvml.watch()
        try:
            if self.handle is None:
                self._open()
            if self.handle is not None:
                self._fast()
                if slow or everything or self.slow_due:
                    self._slow(all_fields=rare or everything)
                if rare or everything:
                    self._rare()
            self.slow_due = False
        except pynvml.NVMLError as error:
            self._is_lost(_LOST[error.value])
            return
        worked = self.nvml.worked - _IDENTITY
        failed = (self.nvml.failed | (self.nvml.asked & self._works)) - self.nvml.worked
        silent = not worked and (bool(failed) or self._should_answer(rare or everything))
        self._mute = self._mute + 1 if silent else 0
        if worked or silent:  # else nothing of what it was asked is supported
            self.sample["answers"] = len(worked) > len(failed) and self._blamed <= self.nvml.worked
        if self.sample["answers"]:
            self.nvml.answered.add(self.sample["bdf"])
            # What no longer works, while most does, is not supported any more: another mode, other rights.
            self._works = self._works - self.nvml.asked | worked
        if self._mute >= MUTE:
            self._is_lost(_UNKNOWN)
        elif lost and not self.sample["answers"]:
            self._is_lost(lost)
        else:
            self.sample["lost"] = ""
            self._blamed = set()

    def _should_answer(self, everything: bool) -> bool:
        """Something must work of what it was asked: it did, in an earlier session or an earlier child."""
        if self.handle is None:  # it may be the one that is not found
            return (
                "nvmlDeviceGetHandleByIndex" in self.nvml.asked and not self.nvml.answered <= self.nvml.shown
            )
        return everything and self.sample["bdf"] in self.nvml.answered

    def _is_lost(self, why: str) -> None:
        self.sample |= dict.fromkeys(("now", "util", "least", "power", "temp", "reasons", "procs")) | {
            "lost": why,
            "answers": False,
        }
        self._blamed |= self.nvml.lost_by

    def _ask(self, name: str, *args: Any) -> Any:
        return self.nvml.call(self.index, name, self.handle, *args)

    def _either(self, first: str, second: str, *args: Any) -> Any:
        found = self._ask(first, *args)
        return self._ask(second, *args) if found is None else found

    def _fast(self) -> None:
        rates = self._ask("nvmlDeviceGetUtilizationRates")
        if rates is not None:
            before, least = self.sample["util"], self.sample["least"]
            self.sample["now"] = rates.gpu
            self.sample["util"] = rates.gpu if before is None else max(before, rates.gpu)
            self.sample["least"] = rates.gpu if least is None else min(least, rates.gpu)
        name = "nvmlDeviceGetCurrentClocks{}Reasons"  # drivers before 535 have the second name only
        self.sample["reasons"] = self._either(name.format("Event"), name.format("Throttle"))

    def _slow(self, all_fields: bool) -> None:
        power_mw = self._ask("nvmlDeviceGetPowerUsage")
        self.sample["power"] = power_mw / 1000 if power_mw is not None else None
        self.sample["temp"] = self._ask("nvmlDeviceGetTemperature", pynvml.NVML_TEMPERATURE_GPU)
        memory = self._ask("nvmlDeviceGetMemoryInfo")
        self.sample["mem"] = memory.used // _MIB if memory is not None else None
        held = None
        for kind in ("Compute", "Graphics"):  # the second kind: perhaps an X server
            if not held:  # drivers before 510 have the second version only
                name = f"nvmlDeviceGet{kind}RunningProcesses"
                more = self._either(f"{name}_v3", f"{name}_v2")
                held = held if more is None else more
        self.sample["procs"] = held and [[one.pid, (one.usedGpuMemory or 0) // _MIB] for one in held]
        found = self._values("slow", all_fields, [(field, 0) for field in _FIELDS])
        fresh = {_FIELDS[field]: value for (field, _), value in found.items()}
        fresh["margin"] = self._ask("nvmlDeviceGetMarginTemperature")
        self._sram(fresh)
        self._report("slow", fresh)

    def _rare(self) -> None:
        fresh: dict[str, Any] = {
            "power_limit": self._ask("nvmlDeviceGetEnforcedPowerLimit"),
            "power_limit_default": self._ask("nvmlDeviceGetPowerManagementDefaultLimit"),
            "persistence": self._ask("nvmlDeviceGetPersistenceMode"),
            "pcie.width": self._ask("nvmlDeviceGetCurrPcieLinkWidth"),
            "pcie.width_max": self._ask("nvmlDeviceGetMaxPcieLinkWidth"),
            "pcie.generation": self._ask("nvmlDeviceGetCurrPcieLinkGeneration"),
            "pcie.generation_max": self._ask("nvmlDeviceGetMaxPcieLinkGeneration"),
            "vbios": _text(self._ask("nvmlDeviceGetVbiosVersion")) or None,
            "driver": _text(self.nvml.call(-1, "nvmlSystemGetDriverVersion")) or None,
        }
        mig = self._ask("nvmlDeviceGetMigMode")
        fresh |= {"mig": mig[0], "mig_pending": mig[1]} if mig else {}
        for number, name in enumerate(("shutdown", "slowdown", "memory_max", "gpu_max")):
            fresh[f"threshold.{name}"] = self._ask("nvmlDeviceGetTemperatureThreshold", number)
        banks = self._ask("nvmlDeviceGetRowRemapperHistogram")
        if banks is not None:
            fresh |= {f"remap.banks_{name}": getattr(banks, name) for name, _ in banks._fields_}
        self._fabric(fresh)
        self._links(fresh)
        self._report("rare", fresh)

    def _sram(self, fresh: dict[str, Any]) -> None:
        status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
        if self._ask("nvmlDeviceGetSramEccErrorStatus", ctypes.byref(status)) is None:
            for kind, word in enumerate(("corrected", "uncorrected")):  # drivers before 550
                for counter, name in enumerate(("volatile", "aggregate")):
                    args = kind, counter, pynvml.NVML_MEMORY_LOCATION_SRAM
                    fresh[f"ecc.{name}.{word}.sram"] = self._ask("nvmlDeviceGetMemoryErrorCounter", *args)
            return
        for name in ("volatile", "aggregate"):
            fresh[f"ecc.{name}.corrected.sram"] = getattr(status, f"{name}Cor")
            parity, double = getattr(status, f"{name}UncParity"), getattr(status, f"{name}UncSecDed")
            fresh[f"ecc.{name}.uncorrected.sram"] = parity + double
        fresh["sram_threshold"] = status.bThresholdExceeded

    def _fabric(self, fresh: dict[str, Any]) -> None:
        for info in (pynvml.c_nvmlGpuFabricInfo_v3_t(), pynvml.c_nvmlGpuFabricInfo_v2_t()):
            if self._ask("nvmlDeviceGetGpuFabricInfoV", ctypes.byref(info)) is not None:
                values = (info.state, info.status, info.healthMask, getattr(info, "healthSummary", None))
                names = (f"fabric.{name}" for name in ("state", "status", "health", "summary"))
                fresh |= zip(names, values, strict=True)
                return

    def _links(self, fresh: dict[str, Any]) -> None:
        links = range(
            min(self._reported.get("slow", {}).get("nvlink.links") or 0, pynvml.NVML_NVLINK_MAX_LINKS)
        )
        wanted = [(field, link) for link in links for field in _LINK_FIELDS]
        for (field, link), value in self._values("links", all_fields=True, wanted=wanted).items():
            fresh[f"nvlink.{link}.{_LINK_FIELDS[field]}"] = value
        for link in links:
            if f"nvlink.{link}.state" not in fresh:  # drivers before 530
                fresh[f"nvlink.{link}.state"] = self._ask("nvmlDeviceGetNvLinkState", link)

    def _values(
        self, tier: str, all_fields: bool, wanted: list[tuple[int, int]]
    ) -> dict[tuple[int, int], Any]:
        """(field, scope) → value, of the fields that this card supports; the others are read again only if `all_fields`."""
        asked = wanted if all_fields or tier not in self._fields else self._fields[tier]
        found: dict[tuple[int, int], Any] = {}
        parts = [asked[start : start + _CHUNK] for start in range(0, len(asked), _CHUNK)]
        while parts:
            part = parts.pop()
            answers = self._ask("nvmlDeviceGetFieldValues", part)
            if answers is None and len(part) > 1:  # one unknown field may make the whole call fail
                parts += [part[: len(part) // 2], part[len(part) // 2 :]]
            for field, scope, _, _, kind, answer, value in _FIELD_VALUE.iter_unpack(answers or b""):
                if answer == pynvml.NVML_SUCCESS and kind < len(_VALUE):
                    found[field, scope] = _VALUE[kind].unpack_from(value)[0]
                else:
                    self.nvml.note("nvmlDeviceGetFieldValues", answer)
                    if answer in _LOST:
                        raise pynvml.NVMLError(answer)
        if asked and not found:  # the call works whatever becomes of its fields
            self.nvml.worked.discard("nvmlDeviceGetFieldValues")
        self._fields[tier] = list(found)
        return found

    def _report(self, tier: str, fresh: dict[str, Any]) -> None:
        """Puts what has changed since the tier's last reading into the sample."""
        fresh = {key: value for key, value in fresh.items() if value is not None}
        before = self._reported.get(tier, {})
        changed = {key: value for key, value in fresh.items() if before.get(key) != value}
        self.sample["health"] |= changed | {key: None for key in before if key not in fresh}
        self._reported[tier] = fresh


class NvmlSession:
    """NVML from opening to closing: all GPUs and their events."""

    def __init__(self, nvml: Nvml) -> None:
        self.nvml = nvml
        self.opened_s = time.monotonic()
        nvml.open()
        self.count = nvml.call(-1, "nvmlDeviceGetCount") or 0
        self.gpus = [SampledGpu(nvml, index) for index in range(self.count)]
        self._events = self._subscribe()

    def stale(self, *, asked: bool) -> bool:
        """Must NVML be opened again: has the number of GPUs changed, or may a lost one have returned? `asked`: for a look."""
        count = self.nvml.call(-1, "nvmlDeviceGetCount")
        lost = any(gpu.sample["lost"] or gpu.handle is None for gpu in self.gpus)
        may_return = asked or time.monotonic() - self.opened_s > _REOPEN_S
        return count not in (self.count, None) or (lost and may_return)

    def close(self) -> None:
        """Frees what NVML holds, before it is opened again."""
        if self._events is not None:
            self.nvml.call(-1, "nvmlEventSetFree", self._events)
        self.nvml.call(-1, "nvmlShutdown")

    def wait(self, until_s: float, look: int) -> None:
        """Sends events until then, or until another look than this is asked for. Of an event that repeats only the first is
        sent at once, and the number of the others at the end.
        """
        repeats: dict[tuple[str, int, int], int] = {}
        while (left_s := min(until_s - time.monotonic(), _LOOK_S)) > 0 and self.nvml.look() == look:
            slice_s = time.monotonic() + left_s
            event = None
            if self._events is not None:
                try:
                    event = self.nvml.call(
                        -1, "nvmlEventSetWait", self._events, int(left_s * 1000) + 1, allowed_s=left_s
                    )
                except pynvml.NVMLError:  # a lost GPU ends the wait at once, again and again
                    event = None
            if event is not None:
                gpu = self._by_address.get(_address(event.device))
                if gpu is not None:
                    gpu.slow_due = True
                what = (gpu.sample["bdf"] if gpu else "", event.eventType, event.eventData)
                if what not in repeats:
                    send(event=[*what, 1])
                repeats[what] = repeats.get(what, -1) + 1
            elif (left_s := slice_s - time.monotonic()) > 0:
                time.sleep(left_s)
        for what, count in repeats.items():
            if count:
                send(event=[*what, count])

    def _subscribe(self) -> Any:
        self._by_address = {_address(gpu.handle): gpu for gpu in self.gpus if gpu.handle is not None}
        events = self.nvml.call(-1, "nvmlEventSetCreate")
        if events is None:
            return None
        for gpu in self._by_address.values():
            try:
                types_ = self.nvml.call(gpu.index, "nvmlDeviceGetSupportedEventTypes", gpu.handle)
                wanted = _XID if types_ is None else types_ & _EVENTS
                try:
                    self._register(gpu, wanted, events)
                except pynvml.NVMLError as error:
                    if error.value in _LOST:
                        raise
                    self._register(gpu, _XID, events)
            except pynvml.NVMLError as error:
                gpu.sample["lost"] = _LOST.get(error.value, "")
        return events

    def _register(self, gpu: SampledGpu, wanted: int, events: Any) -> None:
        if wanted:
            self.nvml.call(gpu.index, "nvmlDeviceRegisterEvents", gpu.handle, wanted, events, strict=True)


def send(**values: Any) -> None:
    """Writes one line to the agent; BrokenPipeError, which ends this process, when the agent is gone."""
    sys.stdout.write(json_text({"at": time.monotonic(), **values}) + "\n")
    sys.stdout.flush()


def main(board_fd: int, interval_s: float, pace: Pace, answered: str, skips: list[str]) -> None:
    """The arguments of start.py. `answered`: addresses with commas, of GPUs that have answered an earlier child; `skips`:
    `NVML_INDEX:CALL:SECONDS`, calls that hung and are not made for this time.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)  # no orphan keeps the driver open
    calls = [skip.split(":") for skip in skips]
    nvml = Nvml(
        mmap.mmap(board_fd, BOARD_BYTES),
        [(int(index), name, float(for_s)) for index, name, for_s in calls],
        answered.split(",") if answered else [],
    )
    try:
        session = NvmlSession(nvml)
        looked, look = 0, nvml.look()
        while True:
            asked = look != looked
            news = asked or bool(nvml.skips) or any(gpu.slow_due for gpu in session.gpus)
            slow, rare = pace.tiers(time.monotonic())
            SAMPLED.pack_into(nvml.board, SAMPLED_AT, time.monotonic_ns())
            for gpu in session.gpus:
                gpu.update(slow=asked or slow, rare=asked or rare)
            samples = [gpu.sample for gpu in session.gpus]
            if pace.send(time.monotonic(), samples, asked=news, full=slow or rare):
                send(gpus=samples, skipped=list(nvml.skips), look=look)
                for gpu in session.gpus:
                    gpu.sent = True
            # At whole multiples of the pause, like the agent's own work; where sampling takes longer than the pause, events
            # have their turn all the same.
            now_s = time.monotonic()
            next_s = (now_s // interval_s + 1) * interval_s
            session.wait(max(next_s, now_s + interval_s / 10), looked := look)
            look = nvml.look()
            if session.stale(asked=look != looked):
                session.close()
                session = NvmlSession(nvml)
                pace.restart()
    except GoneError as error:
        send(absent=str(error), code=error.code)
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(0)  # there is nothing to flush


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
