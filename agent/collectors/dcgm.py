"""What DCGM's health check shows: each error when it begins, each hour while it lasts, and when it is over."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.samples import Sample
from agent.collectors.samples_node import DcgmFinding, DcgmHealth
from agent.contract import components
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip

_REPEAT_S = 3600.0  # what is still wrong is told again: the brain forgets what is not repeated
# DCGM looks at its last minute: an error that comes and goes with it is one.
_OVER_S = 150.0
_MOST = 256  # errors that are remembered
# Component, entity, error, XID.
_Key = tuple[str, str, str, int]


@dataclass(slots=True)
class _Present:
    """An error that was told."""

    finding: DcgmFinding
    told_s: float
    seen_s: float


class DcgmCollector(Collector):
    """gpu.dcgm_health, of the GPU, or of the node where DCGM means another part or does not say where its GPU is."""

    name: ClassVar[str] = "dcgm"
    wants: ClassVar[tuple[type, ...]] = (DcgmHealth,)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.dcgm_health",)

    def __init__(self) -> None:
        self._present: dict[_Key, _Present] = {}

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:
        """See Collector."""
        if not isinstance(sample, DcgmHealth):
            return
        at_s = sample.mono_s
        for finding in sample.findings:
            known = self._present.get(_key(finding))
            if known is None and len(self._present) >= _MOST:
                continue
            worse = known is not None and finding.failed and not known.finding.failed
            if known is None or worse or at_s - known.told_s >= _REPEAT_S:
                known = self._present[_key(finding)] = _Present(finding=finding, told_s=at_s, seen_s=at_s)
                yield _event(finding, now_s - at_s, active=True)
            known.seen_s = at_s
        for key, known in list(self._present.items()):
            if at_s - known.seen_s >= _OVER_S:
                del self._present[key]
                yield _event(known.finding, now_s - at_s, active=False)

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, DcgmHealth):
            for finding in sample.findings:
                if _key(finding) in self._present:
                    yield _event(finding, now_s - sample.mono_s, active=True)


def _component(finding: DcgmFinding) -> str:
    return components.gpu(finding.bdf) if finding.bdf else components.NODE


def _key(finding: DcgmFinding) -> _Key:
    return _component(finding), finding.entity, finding.name, finding.xid


def _event(finding: DcgmFinding, age_s: float, *, active: bool) -> UnsentEvent:
    data: dict[str, Scalar] = {
        "error": finding.name,
        "code": finding.code,
        "system": finding.system,
        "failed": finding.failed,
        "active": active,
        "told_by": finding.told_by,
        "entity": clip(finding.entity),
        "message": clip(finding.message) if active else "",
    }
    if finding.xid:
        data["xid"] = finding.xid
    severity = Severity.INFO
    if active and not finding.told_by:
        severity = Severity.ERROR if finding.failed else Severity.WARNING
    said = f"DCGM: {finding.message or finding.name}" if active else f"DCGM: {finding.name} is over"
    return UnsentEvent(
        kind="gpu.dcgm_health",
        component=_component(finding),
        severity=severity,
        data=data,
        evidence=clip(said),
        age_s=max(0.0, age_s),
    )
