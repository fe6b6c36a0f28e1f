"""One GPU as the child samples it: what is asked of it how often, and whether it answers (agent/nvml/child.py)."""

from __future__ import annotations

import ctypes
import struct

import pynvml

from agent.nvml.calls import LOST, Nvml

TYPE_CHECKING = False  # typing itself would cost 0.6 MB
if TYPE_CHECKING:
    from typing import Any

_UNKNOWN, MUTE = "unknown_error", 3
# NVML answers these from what it has read before: they say nothing about a GPU.
_IDENTITY = {"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetPciInfo", "nvmlDeviceGetUUID", "nvmlDeviceGetSerial"}
_MIB = 1024 * 1024
_CHUNK = 64  # field values in one call
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
            "least": None, "mem": None, "power": None, "clock": None, "temp": None, "reasons": None, "procs": None, "health": {},
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
            self._is_lost(LOST[error.value])

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
            self._is_lost(LOST[error.value])
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
        self.sample |= dict.fromkeys(
            ("now", "util", "least", "power", "clock", "temp", "reasons", "procs")
        ) | {
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
        if self.nvml.clocks:
            self.sample["clock"] = self._ask("nvmlDeviceGetClockInfo", pynvml.NVML_CLOCK_SM)
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
        if self.nvml.clocks:
            fresh["model"] = _text(self._ask("nvmlDeviceGetName")) or None
        delivered = self._ask(
            "nvmlDeviceGetDefaultEccMode"
        )  # older drivers do not tell; pynvml makes a list of it
        fresh["ecc.default"] = delivered[0] if isinstance(delivered, list) else delivered
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
                    if answer in LOST:
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


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
