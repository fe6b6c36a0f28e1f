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

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if not isinstance(sample, Unit):
            return
        state = (sample.active, sample.sub == _CRASHED)
        before = self._states.get(sample.name)
        self._states[sample.name] = state
        # Sub-states are steps on the way (start-pre, stop-sigterm ...): only a crash is a fact.
        if state == before or (sample.first and sample.active != "failed"):
            return
        try:
            component = components.check(f"service/{sample.name}")
        except ContractError:
            return
        data: dict[str, str] = {"active": sample.active, "sub": sample.sub}
        if sample.result:
            data["result"] = sample.result
        severity = Severity.ERROR if state[1] else _SEVERITIES.get(sample.active, Severity.INFO)
        yield UnsentEvent(
            kind="service.state",
            component=component,
            severity=severity,
            data=data,
            evidence=f"{sample.name}: {sample.active} ({sample.sub}) {sample.result}".rstrip(),
        )
