"""What NVML, or another maker's driver, reports about GPUs and about itself: lost, returned, hung, absent, refused."""

from collections.abc import Iterable
from typing import ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.samples import Gpu, NvmlState, Sample
from agent.contract import components
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip

# `{}`: who was asked.
REASONS = {
    "lost": "{}: GPU is lost",
    "not_found": "{} no longer finds the GPU",
    "reset_required": "{}: the GPU requires a reset",
    "unknown_error": "{}: nothing that the GPU is asked is answered",
    "unbound": "the GPU is on the PCI bus and no driver is bound to it",
    "no_driver": "{} has not taken the GPU, which is on the PCI bus",
}
_NAMES = {"nvml": "NVML"}
# nvmlReturn_t of nvmlInit where not the driver or a GPU is at fault. "Driver not loaded" is said of a driver that has GPUs when
# /dev/nvidiactl is missing.
_WHY_REFUSED = {4: "no_permission", 9: "no_device_files", 12: "no_library", 18: "other_version"}
# A lost GPU has returned when it answers in so many samples in a row: one that is dying answers now and then.
STEADY_SAMPLES = 5
_BEFORE = "reported before the agent's start"


class GpuCollector(Collector):
    """gpu.lost, gpu.returned and the nvml.* kinds; each change is reported once. gpu.answers is restated only."""

    name: ClassVar[str] = "gpu"
    wants: ClassVar[tuple[type, ...]] = (Gpu, NvmlState)
    kinds: ClassVar[tuple[str, ...]] = (
        "gpu.lost",
        "gpu.returned",
        "gpu.answers",
        "nvml.hung",
        "nvml.answers",
        "nvml.absent",
        "nvml.refused",
        "nvml.blind",
    )

    def __init__(self, *, lost_before: Iterable[str] = ()) -> None:
        """`lost_before`: addresses of GPUs that an earlier run had reported lost, perhaps before a reboot."""
        # Address → reason that was reported last. One that an earlier run reported returns when it answers now.
        self._lost: dict[str, str] = dict.fromkeys(lost_before, _BEFORE)
        # The same → every reason that was reported since it is lost: a dying GPU gives another one each second.
        self._told: dict[str, set[str]] = {}
        # Address of one of these → samples in a row in which it answers.
        self._answered: dict[str, int] = {}
        self._hangs = 0
        self._unanswered_since_s: float | None = None
        self._opened_s: float | None = None

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(lost_before=setup.lost_before)

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, Gpu):
            return self._gpu(sample, max(0.0, now_s - sample.mono_s))
        if isinstance(sample, NvmlState):
            if sample.state == "ready":
                self._opened_s = sample.mono_s
            return self._nvml(sample, max(0.0, now_s - sample.mono_s))
        return ()

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector. A GPU that answers has not returned: gpu.returned ends what only a reset ends."""
        age_s = max(0.0, now_s - sample.mono_s)
        if isinstance(sample, Gpu):
            if sample.lost:
                return [_lost(sample, age_s)]
            return [_answers(sample, age_s)] if sample.answers and sample.bdf not in self._lost else []
        if isinstance(sample, NvmlState) and sample.state == "answers":
            data: dict[str, Scalar] = {"after_s": 0.0}
            if self._opened_s is not None:
                data["open_s"] = round(max(0.0, now_s - self._opened_s), 3)
            return [_of_node("nvml.answers", Severity.INFO, data, "NVML answers", age_s)]
        return ()

    def _gpu(self, gpu: Gpu, age_s: float) -> list[UnsentEvent]:
        before = self._lost.get(gpu.bdf, "")
        well = before and gpu.answers and not gpu.lost
        self._answered[gpu.bdf] = self._answered.get(gpu.bdf, 0) + 1 if well else 0
        if gpu.lost == before:
            return []
        if not gpu.lost:
            if self._answered[gpu.bdf] < STEADY_SAMPLES:
                return []
            del self._lost[gpu.bdf]
            self._told.pop(gpu.bdf, None)
            return [
                UnsentEvent(
                    kind="gpu.returned",
                    component=components.gpu(gpu.bdf),
                    severity=Severity.INFO,
                    data={"by": gpu.by},
                    evidence=f"{_asked(gpu)} answers again for {_where(gpu)} (was: {before})",
                    age_s=age_s,
                )
            ]
        self._lost[gpu.bdf] = gpu.lost
        told = self._told.setdefault(gpu.bdf, set())
        if gpu.lost in told:
            return []
        told.add(gpu.lost)
        return [_lost(gpu, age_s)]

    def _nvml(self, state: NvmlState, age_s: float) -> list[UnsentEvent]:
        if state.state == "hung":
            self._hangs += 1
            if self._unanswered_since_s is None:
                self._unanswered_since_s = state.mono_s - state.waited_s
            evidence = f"{state.call} did not return within {state.waited_s:.1f} s {state.reason}".rstrip()
            data: dict[str, Scalar] = {
                "call": state.call,
                "waited_s": round(state.waited_s, 3),
                "times": self._hangs,
            }
            if state.bdf:
                data["gpu"] = state.bdf
            return [_of_node("nvml.hung", Severity.ERROR, data, evidence, age_s)]
        if state.state in ("answers", "ready") and self._unanswered_since_s is not None:
            after_s = round(max(0.0, state.mono_s - self._unanswered_since_s), 3)
            self._unanswered_since_s = None
            evidence = f"NVML answers again after {after_s:.1f} s"
            return [_of_node("nvml.answers", Severity.INFO, {"after_s": after_s}, evidence, age_s)]
        if state.state == "blind":
            evidence = f"NVML is not asked any more: {state.reason}"
            return [_of_node("nvml.blind", Severity.ERROR, {"reason": clip(state.reason)}, evidence, age_s)]
        if state.state == "refused":
            if self._unanswered_since_s is None:
                self._unanswered_since_s = state.mono_s - state.waited_s
            reason = clip(state.reason)
            data = {
                "what": _WHY_REFUSED.get(state.code, "driver"),
                "code": state.code,
                "reason": reason,
                "gpus": state.gpus,
            }
            evidence = (
                f"NVML cannot be opened, and NVIDIA's driver has {state.gpus} GPUs: {reason} ({state.code})"
            )
            return [_of_node("nvml.refused", Severity.ERROR, data, evidence, age_s)]
        if state.state == "absent":
            return [
                _of_node(
                    "nvml.absent", Severity.INFO, {"reason": clip(state.reason)}, clip(state.reason), age_s
                )
            ]
        return []


def _where(gpu: Gpu) -> str:
    number = f" {gpu.index}" if gpu.index >= 0 else ""  # -1: NVML never showed it
    return f"GPU{number} {gpu.bdf} {gpu.uuid}".rstrip()


def _asked(gpu: Gpu) -> str:
    return _NAMES.get(gpu.by, gpu.by)


def _lost(gpu: Gpu, age_s: float) -> UnsentEvent:
    data: dict[str, Scalar] = {"reason": gpu.lost}
    if gpu.by != "nvml":
        data["by"] = gpu.by
    if gpu.index >= 0:
        data["index"] = gpu.index
    if gpu.uuid:
        data["uuid"] = gpu.uuid
    return UnsentEvent(
        kind="gpu.lost",
        component=components.gpu(gpu.bdf),
        severity=Severity.FATAL,
        data=data,
        evidence=f"{REASONS.get(gpu.lost, gpu.lost).format(_asked(gpu))}: {_where(gpu)}",
        age_s=age_s,
    )


def _answers(gpu: Gpu, age_s: float) -> UnsentEvent:
    return UnsentEvent(
        kind="gpu.answers",
        component=components.gpu(gpu.bdf),
        severity=Severity.INFO,
        data={"index": gpu.index},
        evidence=f"{_asked(gpu)} answers for {_where(gpu)}",
        age_s=age_s,
    )


def _of_node(
    kind: str, severity: Severity, data: dict[str, Scalar], evidence: str, age_s: float
) -> UnsentEvent:
    return UnsentEvent(
        kind=kind, component=components.NODE, severity=severity, data=data, evidence=evidence, age_s=age_s
    )
