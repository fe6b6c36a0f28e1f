"""Facts about network interfaces: up, down, gone. Only changes; a port that never had a cable is not reported."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.samples import LinkState, Sample
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Scalar, Severity, UnsentEvent

# Drivers that do not track the state (tun and others) report `unknown`; then the carrier decides.
_OPERATIONAL = ("up", "unknown")


class LinkCollector(Collector):
    """Reports the changes of an interface's state.

    `ignore` lists interfaces that are left out, with a trailing `*` for any rest: `("lo", "veth*")`. Empty: all are
    watched. Software interfaces (a `kind`, e.g. veth) come and go with containers: their removal is only information.
    """

    name: ClassVar[str] = "link"
    wants: ClassVar[tuple[type, ...]] = (LinkState,)
    kinds: ClassVar[tuple[str, ...]] = (
        "link.state", "link.removed", "link.moved", "link.mtu", "link.carrier_changes",
    )  # fmt: skip

    def __init__(self, *, ignore: tuple[str, ...] = ("lo",)) -> None:
        self._names = frozenset(name for name in ignore if not name.endswith("*"))
        self._prefixes = tuple(name[:-1] for name in ignore if name.endswith("*"))
        self._links: dict[str, LinkState] = {}
        # Those that had a link: of all others it is ordinary that they have none.
        self._were_up: set[str] = set()

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if not isinstance(sample, LinkState) or self._ignored(sample.name):
            return
        if sample.before:  # renamed: the same interface goes on under its new name
            former = self._links.pop(sample.before, None)
            if former is not None:
                self._links[sample.name] = former
            if sample.before in self._were_up:
                self._were_up.remove(sample.before)
                self._were_up.add(sample.name)
        before = self._links.pop(sample.name, None)
        if sample.removed:
            self._were_up.discard(sample.name)
            if before is not None:
                yield _moved(sample) if sample.moved else _removed(sample, before)
            return
        self._links[sample.name] = sample
        if _up(sample):
            self._were_up.add(sample.name)
        if before is None:  # the state at start, or a new interface: it has lost nothing
            return
        if sample.mtu and before.mtu and sample.mtu != before.mtu:
            yield _mtu(sample, before)
        yield from _unseen_changes(sample, before)
        went_up_or_down = _up(sample) != _up(before)
        set_up = sample.admin_up and not before.admin_up
        set_down = before.admin_up and not sample.admin_up
        if went_up_or_down or set_up or set_down:
            yield _state(sample, set_up=set_up)

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector: links that are up, or were. A removal is a change."""
        if (
            isinstance(sample, LinkState)
            and sample.name in self._were_up
            and self._links.get(sample.name) == sample
        ):
            yield _state(sample, set_up=False)

    def _ignored(self, name: str) -> bool:
        if name in self._names or name.startswith(self._prefixes):
            return True
        try:
            components.check(f"link/{name}")
        except ContractError:  # a name that no component can have
            return True
        return False


def _up(link: LinkState) -> bool:
    return link.admin_up and link.carrier and link.operstate in _OPERATIONAL


def _state(link: LinkState, *, set_up: bool) -> UnsentEvent:
    up = _up(link)
    data: dict[str, Scalar] = {
        "up": up,
        "admin_up": link.admin_up,
        "carrier": link.carrier,
        "operstate": link.operstate,
    }
    if link.slave:
        data["slave"] = True
    if set_up and not up:
        data["set_up"] = True
    return UnsentEvent(
        kind="link.state",
        component=f"link/{link.name}",
        severity=Severity.INFO if up else Severity.WARNING,
        data=data,
        evidence=f"{link.name}: {'up' if up else 'down'}, set {'up' if link.admin_up else 'down'},"
        f" {'carrier' if link.carrier else 'no carrier'}, operstate {link.operstate}"
        f"{', slave of a bond' if link.slave else ''}",
    )


def _mtu(link: LinkState, before: LinkState) -> UnsentEvent:
    return UnsentEvent(
        kind="link.mtu",
        component=f"link/{link.name}",
        severity=Severity.INFO,
        data={"mtu": link.mtu, "before": before.mtu},
        evidence=f"{link.name}: MTU {before.mtu} -> {link.mtu}",
    )


def _unseen_changes(link: LinkState, before: LinkState) -> Iterator[UnsentEvent]:
    """The kernel reports several quick changes as one: its counter shows those that no sample did."""
    if link.carrier_changes is None or before.carrier_changes is None or link.kind:
        return
    unseen = link.carrier_changes - before.carrier_changes - (link.carrier != before.carrier)
    if unseen > 0:
        yield UnsentEvent(
            kind="link.carrier_changes",
            component=f"link/{link.name}",
            severity=Severity.WARNING,
            data={"unseen": unseen, "value": link.carrier_changes},
            evidence=f"{link.name}: carrier_changes {before.carrier_changes} -> {link.carrier_changes}",
        )


def _moved(link: LinkState) -> UnsentEvent:
    return UnsentEvent(
        kind="link.moved",
        component=f"link/{link.name}",
        severity=Severity.INFO,
        evidence=f"{link.name}: moved into another network namespace",
    )


def _removed(link: LinkState, before: LinkState) -> UnsentEvent:
    return UnsentEvent(
        kind="link.removed",
        component=f"link/{link.name}",
        severity=Severity.INFO if before.kind else Severity.ERROR,
        evidence=f"{link.name}: removed",
    )
