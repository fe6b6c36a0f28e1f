"""Fault codes of Ascend NPUs, and tools that do not answer."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.samples import Sample
from agent.collectors.samples_node import NpuFaults, ToolState
from agent.contract import components
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip
from agent.contract.npu_fault_table import LEVELS

UNKNOWN = "unknown"
_NO_CODE = "none"  # it is not well, and gives no code
_NOT_WELL = ("Alarm", "Critical")
_ADDRESS_CHARS = 16
_MOST = 64  # NPUs, and codes of one, that are remembered
_RANKS = {
    "not_handle": Severity.INFO,
    "sub_health": Severity.WARNING,
    "restart_request": Severity.WARNING,
    "restart_job": Severity.WARNING,
    "restart_npu_when_free": Severity.ERROR,
    "restart_npu": Severity.ERROR,
    "separate_npu": Severity.FATAL,
}


class NpuFaultCollector(Collector):
    """gpu.fault for each code when it appears and when it is gone; gpu.tool_hung and gpu.tool_answers.

    A new run tells again what is present, and what an earlier one has told and is gone: an NPU that was reset, or replaced, with
    its node would otherwise be ill for as long as the brain remembers.
    """

    name: ClassVar[str] = "npu_fault"
    wants: ClassVar[tuple[type, ...]] = (NpuFaults, ToolState)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.fault", "gpu.tool_hung", "gpu.tool_answers")
    remembers: ClassVar[str] = "npu faults"

    def __init__(self, *, before: Mapping[str, Any] | None = None) -> None:
        """`before`: what an earlier run `remembered`."""
        # Address → codes that were told as present: by an earlier run, and by this one.
        self._before = _well_formed(before or {})
        self._present: dict[str, tuple[str, ...]] = {}
        # Tool → since when it does not answer; and how often it hung.
        self._since_s: dict[str, float] = {}
        self._hangs: dict[str, int] = {}

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(before=setup.remembered.get(cls.remembers))

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, NpuFaults):
            told = self._present.get(sample.bdf, ())
            now = _codes(sample, self._before.get(sample.bdf, ()) or told)
            ended = self._before.pop(sample.bdf, told)
            self._present[sample.bdf] = now
            for code in [*(one for one in now if one not in told), *(one for one in ended if one not in now)]:
                yield _fault(sample, now_s, code, active=code in now)
        elif isinstance(sample, ToolState):
            yield from self._tool(sample, now_s)

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, NpuFaults):
            for code in self._present.get(sample.bdf, ()):
                yield _fault(sample, now_s, code, active=True)

    def remembered(self) -> Mapping[str, Any]:
        """Address → codes that are told as present; also of NPUs that this run has not seen yet."""
        told = self._before | self._present
        return {bdf: list(codes) for bdf, codes in sorted(told.items())[:_MOST] if codes}

    def _tool(self, state: ToolState, now_s: float) -> Iterable[UnsentEvent]:
        age_s = max(0.0, now_s - state.mono_s)
        if state.state == "hung":
            times = self._hangs[state.tool] = self._hangs.get(state.tool, 0) + 1
            first = state.tool not in self._since_s
            self._since_s.setdefault(state.tool, state.mono_s - state.waited_s)
            if first:
                data: dict[str, Scalar] = {
                    "tool": state.tool,
                    "waited_s": round(state.waited_s, 3),
                    "times": times,
                }
                evidence = (
                    f"{state.tool} {state.args} did not end within {state.waited_s:.0f} s and was killed"
                )
                yield _of_node("gpu.tool_hung", Severity.ERROR, data, evidence, age_s)
        elif (since_s := self._since_s.pop(state.tool, None)) is not None:
            after_s = round(max(0.0, state.mono_s - since_s), 3)
            evidence = f"{state.tool} answers again after {after_s:.0f} s"
            data = {"tool": state.tool, "after_s": after_s}
            yield _of_node("gpu.tool_answers", Severity.INFO, data, evidence, age_s)


def _codes(sample: NpuFaults, told: tuple[str, ...]) -> tuple[str, ...]:
    """What it has now. One that is not well and gives no code has one nevertheless; where the tool does not say why, it is what
    was told of it.
    """
    if sample.codes is None and told:
        return told
    return tuple(dict.fromkeys(sample.codes or ((_NO_CODE,) if sample.health in _NOT_WELL else ())))


def _well_formed(before: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """What can be used of what an earlier run remembered."""
    return {
        bdf: tuple(code for code in codes if isinstance(code, str) and 0 < len(code) <= 8)[:_MOST]
        for bdf, codes in list(before.items())[:_MOST]
        if isinstance(codes, list) and len(bdf) <= _ADDRESS_CHARS
    }


def _fault(sample: NpuFaults, now_s: float, code: str, *, active: bool) -> UnsentEvent:
    level = LEVELS.get(code, UNKNOWN)
    data: dict[str, Scalar] = {
        "code": code,
        "level": level,
        "active": active,
        "health": clip(sample.health),
        "message": clip(sample.said) if active else "",
    }
    severity = _RANKS.get(level, Severity.UNKNOWN) if active else Severity.INFO
    number = f"{sample.index} " if sample.index >= 0 else ""
    said = f"({level}){': ' + sample.said if sample.said else ''}" if active else "is gone"
    return UnsentEvent(
        kind="gpu.fault",
        component=components.gpu(sample.bdf),
        severity=severity,
        data=data,
        evidence=clip(f"NPU {number}{sample.bdf}: fault {code} {said}"),
        age_s=max(0.0, now_s - sample.mono_s),
    )


def _of_node(
    kind: str, severity: Severity, data: dict[str, Scalar], evidence: str, age_s: float
) -> UnsentEvent:
    return UnsentEvent(
        kind=kind,
        component=components.NODE,
        severity=severity,
        data=data,
        evidence=clip(evidence),
        age_s=age_s,
    )
