"""Facts about watched systemd units."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.readings import Reading, Unit
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Draft, Severity

_SEVERITIES = {"failed": Severity.ERROR, "inactive": Severity.WARNING}  # all others: on the way, or fine
_CRASHED = "auto-restart"  # the sub-state of a unit that died and that systemd will start again


class ServiceCollector:
    """Reports a unit's changes of state; at start only that it has failed."""

    name: ClassVar[str] = "service"
    wants: ClassVar[tuple[type, ...]] = (Unit,)
    kinds: ClassVar[tuple[str, ...]] = ("service.state",)

    def __init__(self) -> None:
        self._states: dict[str, tuple[str, bool]] = {}

    def feed(self, reading: Reading, now_s: float) -> Iterator[Draft]:  # noqa: ARG002  the port of collectors
        """See agent.collectors.base."""
        if not isinstance(reading, Unit):
            return
        state = (reading.active, reading.sub == _CRASHED)
        before = self._states.get(reading.name)
        self._states[reading.name] = state
        # Sub-states say how a unit gets somewhere (start-pre, stop-sigterm ...): only a crash is news.
        if state == before or (reading.first and reading.active != "failed"):
            return
        try:
            component = components.check(f"service/{reading.name}")
        except ContractError:
            return
        data: dict[str, str] = {"active": reading.active, "sub": reading.sub}
        if reading.result:
            data["result"] = reading.result
        severity = Severity.ERROR if state[1] else _SEVERITIES.get(reading.active, Severity.INFO)
        yield Draft(
            kind="service.state",
            component=component,
            severity=severity,
            data=data,
            evidence=f"{reading.name}: {reading.active} ({reading.sub}) {reading.result}".rstrip(),
        )
