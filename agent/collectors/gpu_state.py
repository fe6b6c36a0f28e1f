"""Settings of a GPU and its driver, the recovery that it asks for, its NVML events, and how many GPUs there are."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
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
# Switches that are to stay on: whoever is told that one is off is told when it is on.
_TO_BE_ON = ("persistence", "ecc.mode", "ecc.mode_pending")
# Whether a GPU is delivered with ECC on: those for data centres are, those for workstations are not.
_ECC, _ECC_DEFAULT = "ecc.mode", "ecc.default"
_SETTINGS = (
    *_TO_BE_ON,
    "mig",
    "mig_pending",
    "power_limit",
    "driver",
    "vbios",
)


class GpuStateCollector(Collector):
    """gpu.recovery_action, gpu.setting (changes, and ECC that is off from the beginning), gpu.nvml_event and gpu.count."""

    name: ClassVar[str] = "gpu_state"
    wants: ClassVar[tuple[type, ...]] = (GpuHealth, GpuEvent, GpuCount)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.recovery_action", "gpu.setting", "gpu.nvml_event", "gpu.count")

    def __init__(self) -> None:
        self._actions: dict[str, int] = {}
        self._settings: dict[tuple[str, str], int | float | str] = {}
        # (address, setting) of what was switched off since the agent began.
        self._off: set[tuple[str, str]] = set()
        # Address -> whether ECC was on when it was first seen, of the GPUs that are delivered with ECC on.
        self._began_on: dict[str, bool] = {}
        # Who counts → what it counted last.
        self._counts: dict[str, GpuCount] = {}
        self._missing = 0

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, GpuHealth):
            return [
                *self._action(sample, now_s),
                *self._changes(sample, now_s),
                *self._found_off(sample, now_s),
            ]
        if isinstance(sample, GpuEvent):
            return _announced(sample, now_s)
        if isinstance(sample, GpuCount):
            return self._counted(sample, now_s)
        return []

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector: the recovery that a GPU asks for, switches that are on or were switched off, and the number of GPUs.

        What was off from the beginning may be meant so, but for ECC where the card is delivered with it; other settings are
        people's.
        """
        if isinstance(sample, GpuHealth):
            return [*self._present_action(sample, now_s), *self._switches(sample, now_s)]
        return [_count_event(self._of_node(sample), now_s)] if isinstance(sample, GpuCount) else []

    def _present_action(self, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        action = gpu.values.get("recovery_action")
        return [_action_event(gpu, now_s, action)] if isinstance(action, int) else []

    def _found_off(self, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        """ECC that was off before the agent saw the GPU, once."""
        mode = gpu.values.get(_ECC)
        if gpu.bdf in self._began_on or mode is None or not gpu.values.get(_ECC_DEFAULT):
            return []
        self._began_on[gpu.bdf] = bool(mode) or (gpu.bdf, _ECC) in self._off
        return [] if self._began_on[gpu.bdf] else [_setting_event(gpu, now_s, _ECC, mode, mode, found=True)]

    def _switches(self, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        mode = gpu.values.get(_ECC)
        found = mode == 0 and (gpu.bdf, _ECC) not in self._off and not self._began_on.get(gpu.bdf, True)
        return ([_setting_event(gpu, now_s, _ECC, 0, 0, found=True)] if found else []) + [
            _setting_event(gpu, now_s, what, now, now)
            for what in _TO_BE_ON
            if (now := gpu.values.get(what)) is not None and (now or (gpu.bdf, what) in self._off)
        ]

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
            (self._off.discard if now else self._off.add)((gpu.bdf, what))
            out.append(_setting_event(gpu, now_s, what, before, now))
        return out

    def _of_node(self, count: GpuCount) -> GpuCount:
        """The count with those of the other makers' GPUs in the node."""
        all_of = [*(one for by, one in self._counts.items() if by != count.by), count]
        configured = max((one.expected for one in all_of if one.basis == "config"), default=0)
        return replace(
            count,
            answering=sum(one.answering for one in all_of),
            lost=sum(one.lost for one in all_of),
            expected=configured or sum(one.expected for one in all_of),
        )

    def _counted(self, counted: GpuCount, now_s: float) -> list[UnsentEvent]:
        self._counts[counted.by] = counted
        count = self._of_node(counted)
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


def _setting_event(
    gpu: GpuHealth,
    now_s: float,
    what: str,
    before: int | float | str,
    now: int | float | str,
    *,
    found: bool = False,
) -> UnsentEvent:
    severity = Severity.WARNING if what in _TO_BE_ON and not now else Severity.INFO
    data: dict[str, Scalar] = {"what": what, "before": clip(str(before)), "now": clip(str(now))}
    if found:
        data["found"] = True
    was = ", and was when the agent first saw the GPU, which is delivered with it on" if found else ""
    evidence = f"{what}: {now}{was}" if before == now else f"{what}: {before} → {now}"
    return gpu_event(gpu, now_s, "gpu.setting", severity, data, evidence)


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
