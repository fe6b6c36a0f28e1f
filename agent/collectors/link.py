"""Facts about network interfaces: up, down, gone. Only changes; a port that never had a cable stays quiet."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.readings import Link, Reading
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Draft, Scalar, Severity

# `unknown` is what drivers say that do not track the state (tun and others); the carrier decides then.
_OPERATIONAL = ("up", "unknown")


class LinkCollector:
    """Reports the edges of an interface's state.

    `ignore` lists interfaces that are passed over, a trailing `*` standing for any rest: `("lo", "veth*")`.
    Empty: all are watched. Software interfaces (a `kind`, e.g. veth) come and go with containers: their
    removal is only worth an info.
    """

    name: ClassVar[str] = "link"
    wants: ClassVar[tuple[type, ...]] = (Link,)
    kinds: ClassVar[tuple[str, ...]] = ("link.state", "link.removed", "link.mtu", "link.carrier_changes")

    def __init__(self, *, ignore: tuple[str, ...] = ("lo",)) -> None:
        self._names = frozenset(name for name in ignore if not name.endswith("*"))
        self._prefixes = tuple(name[:-1] for name in ignore if name.endswith("*"))
        self._links: dict[str, Link] = {}

    def feed(self, reading: Reading, now_s: float) -> Iterator[Draft]:  # noqa: ARG002  the port of collectors
        """See agent.collectors.base."""
        if not isinstance(reading, Link) or self._ignored(reading.name):
            return
        if reading.before:  # renamed: the same interface goes on under its new name
            former = self._links.pop(reading.before, None)
            if former is not None:
                self._links[reading.name] = former
        before = self._links.pop(reading.name, None)
        if reading.removed:
            if before is not None:
                yield _removed(reading, before)
            return
        self._links[reading.name] = reading
        if before is None:  # the state at start, or a new interface: what it lacks it has never had
            return
        if reading.mtu and before.mtu and reading.mtu != before.mtu:
            yield _mtu(reading, before)
        yield from _blinked(reading, before)
        went_up_or_down = _up(reading) != _up(before)
        set_down = before.admin_up and not reading.admin_up
        if went_up_or_down or set_down:
            yield _state(reading)

    def _ignored(self, name: str) -> bool:
        if name in self._names or name.startswith(self._prefixes):
            return True
        try:
            components.check(f"link/{name}")
        except ContractError:  # a name that no component can have; nothing could be said about it
            return True
        return False


def _up(link: Link) -> bool:
    return link.admin_up and link.carrier and link.operstate in _OPERATIONAL


def _state(link: Link) -> Draft:
    up = _up(link)
    data: dict[str, Scalar] = {
        "up": up,
        "admin_up": link.admin_up,
        "carrier": link.carrier,
        "operstate": link.operstate,
    }
    if link.slave:
        data["slave"] = True
    return Draft(
        kind="link.state",
        component=f"link/{link.name}",
        severity=Severity.INFO if up else Severity.WARNING,
        data=data,
        evidence=f"{link.name}: {'up' if up else 'down'}, set {'up' if link.admin_up else 'down'},"
        f" {'carrier' if link.carrier else 'no carrier'}, operstate {link.operstate}"
        f"{', slave of a bond' if link.slave else ''}",
    )


def _mtu(link: Link, before: Link) -> Draft:
    return Draft(
        kind="link.mtu",
        component=f"link/{link.name}",
        severity=Severity.INFO,
        data={"mtu": link.mtu, "before": before.mtu},
        evidence=f"{link.name}: MTU {before.mtu} -> {link.mtu}",
    )


def _blinked(link: Link, before: Link) -> Iterator[Draft]:
    """The kernel tells of several quick changes at once: its counter shows those that no reading did."""
    if link.carrier_changes is None or before.carrier_changes is None or link.kind:
        return
    unseen = link.carrier_changes - before.carrier_changes - (link.carrier != before.carrier)
    if unseen > 0:
        yield Draft(
            kind="link.carrier_changes",
            component=f"link/{link.name}",
            severity=Severity.WARNING,
            data={"unseen": unseen, "value": link.carrier_changes},
            evidence=f"{link.name}: carrier_changes {before.carrier_changes} -> {link.carrier_changes}",
        )


def _removed(link: Link, before: Link) -> Draft:
    return Draft(
        kind="link.removed",
        component=f"link/{link.name}",
        severity=Severity.INFO if before.kind else Severity.ERROR,
        evidence=f"{link.name}: removed",
    )
