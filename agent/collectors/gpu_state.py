"""Settings of a GPU and its driver, the recovery that it asks for, its NVML events, and how many GPUs there are."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.gpu_event import gpu_event
from agent.collectors.samples import GpuCount, GpuEvent, GpuHealth, Sample
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip
from agent.contract.xid_facts import RECOVERY, UNKNOWN_RECOVERY

# nvmlEventType*; the xid collector has XIDs (8).
EVENTS = {
    0x1: ("ecc_single_bit", Severity.INFO),
    0x2: ("ecc_double_bit", Severity.ERROR),
    0x80: ("power_source_change", Severity.WARNING),
    0x100: ("mig_change", Severity.INFO),
    0x200: ("ecc_single_bit_storm", Severity.WARNING),
    0x400: ("dram_retirement", Severity.WARNING),
    0x800: ("dram_retirement_failure", Severity.ERROR),
    0x1000: ("poison_non_fatal", Severity.ERROR),
    0x2000: ("poison_fatal", Severity.FATAL),
    0x4000: ("gpu_unavailable", Severity.FATAL),
    0x8000: ("recovery_action", Severity.WARNING),
}
_SETTINGS = (
    "persistence",
    "mig",
    "mig_pending",
    "ecc.mode",
    "ecc.mode_pending",
    "power_limit",
    "driver",
    "vbios",
)


class GpuStateCollector(Collector):
    """gpu.recovery_action, gpu.setting (changes only), gpu.nvml_event and gpu.count."""

    name: ClassVar[str] = "gpu_state"
    wants: ClassVar[tuple[type, ...]] = (GpuHealth, GpuEvent, GpuCount)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.recovery_action", "gpu.setting", "gpu.nvml_event", "gpu.count")

    def __init__(self) -> None:
        self._actions: dict[str, int] = {}
        self._settings: dict[tuple[str, str], int | float | str] = {}
        self._missing = 0

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, GpuHealth):
            return [*self._action(sample, now_s), *self._changes(sample, now_s)]
        if isinstance(sample, GpuEvent):
            return _announced(sample, now_s)
        if isinstance(sample, GpuCount):
            return self._counted(sample, now_s)
        return []

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector: the recovery that a GPU asks for, and how many there are. A changed setting is a change."""
        if isinstance(sample, GpuHealth) and isinstance(action := sample.values.get("recovery_action"), int):
            return [_action_event(sample, now_s, action)]
        return [_count_event(sample, now_s)] if isinstance(sample, GpuCount) else []

    def _action(self, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        action = gpu.values.get("recovery_action")
        if not isinstance(action, int) or action == self._actions.get(gpu.bdf, 0):
            return []
        self._actions[gpu.bdf] = action
        return [_action_event(gpu, now_s, action)]

    def _changes(self, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        out = []
        for what in _SETTINGS:
            now = gpu.values.get(what)
            if now is None:
                continue
            before = self._settings.get((gpu.bdf, what), now)
            self._settings[gpu.bdf, what] = now
            if before == now:
                continue
            worse = what == "persistence" and not now
            data: dict[str, Scalar] = {"what": what, "before": clip(str(before)), "now": clip(str(now))}
            severity = Severity.WARNING if worse else Severity.INFO
            out.append(gpu_event(gpu, now_s, "gpu.setting", severity, data, f"{what}: {before} → {now}"))
        return out

    def _counted(self, count: GpuCount, now_s: float) -> list[UnsentEvent]:
        missing = max(0, count.expected - count.answering)
        if missing == self._missing:
            return []
        self._missing = missing
        return [_count_event(count, now_s)]


def _action_event(gpu: GpuHealth, now_s: float, action: int) -> UnsentEvent:
    name, _ = RECOVERY.get(action, UNKNOWN_RECOVERY)
    severity = Severity.ERROR if action else Severity.INFO
    data: dict[str, Scalar] = {"action": action, "name": name}
    return gpu_event(gpu, now_s, "gpu.recovery_action", severity, data, f"recovery action {action} ({name})")


def _count_event(count: GpuCount, now_s: float) -> UnsentEvent:
    missing = max(0, count.expected - count.answering)
    data: Mapping[str, Scalar] = {
        "gpus": count.answering,
        "expected": count.expected,
        "missing": missing,
        "unnamed": max(0, missing - count.lost),
        "basis": count.basis,
    }
    return UnsentEvent(
        kind="gpu.count",
        component=components.NODE,
        severity=Severity.ERROR if missing else Severity.INFO,
        data=data,
        evidence=f"{count.answering} of {count.expected} GPUs answer (expected by: {count.basis})",
        age_s=max(0.0, now_s - count.mono_s),
    )


def _announced(event: GpuEvent, now_s: float) -> list[UnsentEvent]:
    if event.type not in EVENTS:
        return []
    try:
        components.gpu(event.bdf)
    except ContractError:
        return []
    name, severity = EVENTS[event.type]
    data: dict[str, Scalar] = {"event": name, "bit": event.type, "data": event.data}
    evidence = f"NVML event {name} ({event.type:#x}), data {event.data}"
    return [gpu_event(event, now_s, "gpu.nvml_event", severity, data, evidence, count=max(1, event.count))]
