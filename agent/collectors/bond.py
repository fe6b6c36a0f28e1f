"""Facts about bonds: the slave that carries the traffic, slaves that are missing, the LACP partner."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.samples import Sample
from agent.collectors.samples_node import Bond
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Severity, UnsentEvent, clip

_NO_PARTNER = "00:00:00:00:00:00"


class BondCollector(Collector):
    """Compares samples of a bond. A bond is configured on purpose: a slave that is missing at start is a fact too."""

    name: ClassVar[str] = "bond"
    wants: ClassVar[tuple[type, ...]] = (Bond,)
    kinds: ClassVar[tuple[str, ...]] = ("bond.active_slave", "bond.slaves", "bond.lacp", "bond.removed")

    def __init__(self) -> None:
        self._bonds: dict[str, Bond] = {}
        # Slaves that a bond has had: one that was taken out is missing.
        self._members: dict[str, frozenset[str]] = {}

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if not isinstance(sample, Bond):
            return
        try:
            component = components.check(f"bond/{sample.name}")
        except ContractError:
            return
        before = self._bonds.pop(sample.name, None)
        if sample.removed:
            self._members.pop(sample.name, None)
            if before is not None:
                yield UnsentEvent(
                    kind="bond.removed",
                    component=component,
                    severity=Severity.ERROR,
                    evidence=f"{sample.name}: gone from /proc/net/bonding",
                )
            return
        self._bonds[sample.name] = sample
        yield from self._slaves(component, before, sample)
        if before is not None and before.active != sample.active:
            yield UnsentEvent(
                kind="bond.active_slave",
                component=component,
                severity=Severity.WARNING if sample.active else Severity.ERROR,
                data={"active": sample.active, "before": before.active},
                evidence=f"{sample.name}: active slave {before.active or 'none'} -> {sample.active or 'none'}",
            )
        yield from _lacp(component, before, sample)

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector: slaves and partner. Another active slave is a change."""
        if isinstance(sample, Bond) and self._bonds.get(sample.name) == sample:
            component = components.check(f"bond/{sample.name}")
            yield _slaves_event(component, sample, self._members[sample.name])
            if sample.partner:
                yield _lacp_event(component, sample)

    def _slaves(self, component: str, before: Bond | None, now: Bond) -> Iterator[UnsentEvent]:
        names = frozenset(slave.name for slave in now.slaves)
        known = self._members.get(now.name, frozenset()) | names
        self._members[now.name] = known
        up = [slave.name for slave in now.slaves if slave.up]
        down = sorted(known - set(up))
        down_before = sorted(known - {slave.name for slave in before.slaves if slave.up}) if before else []
        if down == down_before:
            return
        yield _slaves_event(component, now, known)


def _slaves_event(component: str, now: Bond, known: frozenset[str]) -> UnsentEvent:
    up = [slave.name for slave in now.slaves if slave.up]
    down = sorted(known - set(up))
    severity = Severity.WARNING if up else Severity.ERROR
    return UnsentEvent(
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
        + ", ".join(f"{s.name} {'up' if s.up else 'down'} ({s.failures} failures)" for s in now.slaves[:16]),
    )


def _lacp(component: str, before: Bond | None, now: Bond) -> Iterator[UnsentEvent]:
    if not now.partner:  # another mode
        return
    answers, apart = now.partner != _NO_PARTNER, _apart(now)
    healthy = answers and not apart
    if before is None or not before.partner:
        if healthy:
            return
    elif (before.partner, _apart(before)) == (now.partner, apart):
        return
    yield _lacp_event(component, now)


def _lacp_event(component: str, now: Bond) -> UnsentEvent:
    answers, apart = now.partner != _NO_PARTNER, _apart(now)
    healthy = answers and not apart
    return UnsentEvent(
        kind="bond.lacp",
        component=component,
        severity=Severity.INFO if healthy else Severity.WARNING,
        data={"partner": now.partner, "answers": answers, "apart": apart},
        evidence=f"{now.name}: LACP partner {now.partner}, active aggregator {now.aggregator or 'none'},"
        f" slaves in {', '.join(f'{slave.name}:{slave.aggregator}' for slave in now.slaves[:16])}",
    )


def _apart(bond: Bond) -> int:
    """How many slaves are up in another aggregator: their cable ends at another switch, or LACP fails."""
    return sum(slave.up and slave.aggregator != bond.aggregator for slave in bond.slaves)
