"""Facts about watched systemd units."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.samples import Sample, Unit
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Severity, UnsentEvent

_SEVERITIES = {"failed": Severity.ERROR, "inactive": Severity.WARNING}  # all others: changing, or fine
_CRASHED = "auto-restart"  # the sub-state of a unit that died and that systemd will start again


class ServiceCollector(Collector):
    """Reports a unit's changes of state; at start only that it has failed."""

    name: ClassVar[str] = "service"
    wants: ClassVar[tuple[type, ...]] = (Unit,)
    kinds: ClassVar[tuple[str, ...]] = ("service.state",)

    def __init__(self) -> None:
        self._states: dict[str, tuple[str, bool]] = {}
        # Units of which anything was reported.
        self._reported: set[str] = set()

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if not isinstance(sample, Unit):
            return
        state = _shown(sample)
        before = self._states.get(sample.name)
        self._states[sample.name] = state
        # Sub-states are steps on the way (start-pre, stop-sigterm ...): only a crash is a fact.
        if state == before or (sample.first and sample.active != "failed"):
            return
        self._reported.add(sample.name)
        yield from _state(sample)

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector. A unit that is on its way is neither well nor failed; one that never ran may have no work."""
        if not isinstance(sample, Unit) or self._states.get(sample.name) != _shown(sample):
            return
        if (
            sample.active in ("active", "failed")
            or (sample.active == "inactive" and sample.name in self._reported)
            or sample.sub == _CRASHED
        ):
            yield from _state(sample)


def _shown(unit: Unit) -> tuple[str, bool]:
    return unit.active, unit.sub == _CRASHED


def _state(unit: Unit) -> Iterator[UnsentEvent]:
    try:
        component = components.check(f"service/{unit.name}")
    except ContractError:
        return
    data: dict[str, str] = {"active": unit.active, "sub": unit.sub}
    if unit.result:
        data["result"] = unit.result
    crashed = unit.sub == _CRASHED
    yield UnsentEvent(
        kind="service.state",
        component=component,
        severity=Severity.ERROR if crashed else _SEVERITIES.get(unit.active, Severity.INFO),
        data=data,
        evidence=f"{unit.name}: {unit.active} ({unit.sub}) {unit.result}".rstrip(),
    )
