"""What a GPU or its driver is set to, wants, or announces, and how many GPUs there are."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from agent.collectors.drafts import of_gpu
from agent.collectors.readings import GpuCount, GpuEvent, GpuHealth, Reading
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Draft, Scalar, Severity, clip

# nvmlDeviceGpuRecoveryAction_t (field 230), as in XID 154.
ACTIONS = {
    0: "none", 1: "reset", 2: "reboot", 3: "drain_p2p", 4: "drain_and_reset", 5: "recover_imex_domain",
}  # fmt: skip
# nvmlEventType*; XIDs (8) are the xid collector's.
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


class GpuStateCollector:
    """gpu.recovery_action, gpu.setting (changes only), gpu.nvml_event and gpu.count."""

    name: ClassVar[str] = "gpu_state"
    wants: ClassVar[tuple[type, ...]] = (GpuHealth, GpuEvent, GpuCount)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.recovery_action", "gpu.setting", "gpu.nvml_event", "gpu.count")

    def __init__(self) -> None:
        self._actions: dict[str, int] = {}
        self._settings: dict[tuple[str, str], int | float | str] = {}
        self._missing = 0

    def feed(self, reading: Reading, now_s: float) -> Iterable[Draft]:
        """See Collector."""
        if isinstance(reading, GpuHealth):
            return [*self._action(reading, now_s), *self._changes(reading, now_s)]
        if isinstance(reading, GpuEvent):
            return _announced(reading, now_s)
        if isinstance(reading, GpuCount):
            return self._counted(reading, now_s)
        return []

    def _action(self, gpu: GpuHealth, now_s: float) -> list[Draft]:
        action = gpu.values.get("recovery_action")
        if not isinstance(action, int) or action == self._actions.get(gpu.bdf, 0):
            return []
        self._actions[gpu.bdf] = action
        name = ACTIONS.get(action, "unknown")
        severity = Severity.ERROR if action else Severity.INFO
        data: dict[str, Scalar] = {"action": action, "name": name}
        return [
            of_gpu(gpu, now_s, "gpu.recovery_action", severity, data, f"recovery action {action} ({name})")
        ]

    def _changes(self, gpu: GpuHealth, now_s: float) -> list[Draft]:
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
            out.append(of_gpu(gpu, now_s, "gpu.setting", severity, data, f"{what}: {before} → {now}"))
        return out

    def _counted(self, count: GpuCount, now_s: float) -> list[Draft]:
        missing = max(0, count.expected - count.answering)
        if missing == self._missing:
            return []
        self._missing = missing
        unnamed = max(0, missing - count.lost)
        data: Mapping[str, Scalar] = {
            "gpus": count.answering,
            "expected": count.expected,
            "missing": missing,
            "unnamed": unnamed,
            "basis": count.basis,
        }
        return [
            Draft(
                kind="gpu.count",
                component=components.NODE,
                severity=Severity.ERROR if missing else Severity.INFO,
                data=data,
                evidence=f"{count.answering} of {count.expected} GPUs answer (expected by: {count.basis})",
                age_s=max(0.0, now_s - count.mono_s),
            )
        ]


def _announced(event: GpuEvent, now_s: float) -> list[Draft]:
    if event.type not in EVENTS:
        return []
    try:
        components.gpu(event.bdf)
    except ContractError:
        return []
    name, severity = EVENTS[event.type]
    data: dict[str, Scalar] = {"event": name, "bit": event.type, "data": event.data}
    evidence = f"NVML event {name} ({event.type:#x}), data {event.data}"
    return [of_gpu(event, now_s, "gpu.nvml_event", severity, data, evidence, count=max(1, event.count))]
