"""Facts about bonds: the slave that carries the traffic, slaves that are missing, the LACP partner."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.readings import Reading
from agent.collectors.readings_node import Bond
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Draft, Severity, clip

_NOBODY = "00:00:00:00:00:00"


class BondCollector:
    """Compares readings of a bond. A bond is made on purpose: a slave that is missing at start is a fact too."""

    name: ClassVar[str] = "bond"
    wants: ClassVar[tuple[type, ...]] = (Bond,)
    kinds: ClassVar[tuple[str, ...]] = ("bond.active_slave", "bond.slaves", "bond.lacp", "bond.removed")

    def __init__(self) -> None:
        self._bonds: dict[str, Bond] = {}
        self._members: dict[str, frozenset[str]] = {}  # slaves that a bond has had: one taken out is missing

    def feed(self, reading: Reading, now_s: float) -> Iterator[Draft]:  # noqa: ARG002  the port of collectors
        """See agent.collectors.base."""
        if not isinstance(reading, Bond):
            return
        try:
            component = components.check(f"bond/{reading.name}")
        except ContractError:
            return
        before = self._bonds.pop(reading.name, None)
        if reading.removed:
            self._members.pop(reading.name, None)
            if before is not None:
                yield Draft(
                    kind="bond.removed",
                    component=component,
                    severity=Severity.ERROR,
                    evidence=f"{reading.name}: gone from /proc/net/bonding",
                )
            return
        self._bonds[reading.name] = reading
        yield from self._slaves(component, before, reading)
        if before is not None and before.active != reading.active:
            yield Draft(
                kind="bond.active_slave",
                component=component,
                severity=Severity.WARNING if reading.active else Severity.ERROR,
                data={"active": reading.active, "before": before.active},
                evidence=f"{reading.name}: active slave {before.active or 'none'} -> {reading.active or 'none'}",
            )
        yield from _lacp(component, before, reading)

    def _slaves(self, component: str, before: Bond | None, now: Bond) -> Iterator[Draft]:
        names = frozenset(slave.name for slave in now.slaves)
        known = self._members.get(now.name, frozenset()) | names
        self._members[now.name] = known
        up = [slave.name for slave in now.slaves if slave.up]
        down = sorted(known - set(up))
        was = sorted(known - {slave.name for slave in before.slaves if slave.up}) if before else []
        if down == was:
            return
        severity = Severity.WARNING if up else Severity.ERROR
        yield Draft(
            kind="bond.slaves",
            component=component,
            severity=severity if down else Severity.INFO,
            data={
                "up": len(up),
                "slaves": len(known),
                "down": clip(",".join(down)),
                "degraded": bool(down),
            },
            evidence=f"{now.name}: {len(up)} of {len(known)} slaves up; "
            + ", ".join(
                f"{s.name} {'up' if s.up else 'down'} ({s.failures} failures)" for s in now.slaves[:16]
            ),
        )


def _lacp(component: str, before: Bond | None, now: Bond) -> Iterator[Draft]:
    if not now.partner:  # another mode
        return
    answers, apart = now.partner != _NOBODY, _apart(now)
    well = answers and not apart
    if before is None or not before.partner:
        if well:
            return
    elif (before.partner, _apart(before)) == (now.partner, apart):
        return
    yield Draft(
        kind="bond.lacp",
        component=component,
        severity=Severity.INFO if well else Severity.WARNING,
        data={"partner": now.partner, "answers": answers, "apart": apart},
        evidence=f"{now.name}: LACP partner {now.partner}, active aggregator {now.aggregator or 'none'},"
        f" slaves in {', '.join(f'{slave.name}:{slave.aggregator}' for slave in now.slaves[:16])}",
    )


def _apart(bond: Bond) -> int:
    """Slaves that are up and belong to another aggregator: their cable ends at another switch, or LACP fails."""
    return sum(slave.up and slave.aggregator != bond.aggregator for slave in bond.slaves)
