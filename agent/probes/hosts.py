"""Who probes whom. One file, the same on all nodes, names all ends of the data network; each agent works out its own part.

    # node     address      leaf switch
    gpu-0017   10.1.0.17    leaf-3
    gpu-0017   10.2.0.17    leaf-7

Each address probes the next ones of its own leaf switch and one of each of the next leaf switches, in the order of the file
and round at its end: so each probes and is probed by as few, however large the fleet is, and every leaf switch is crossed by
as many paths as it has ends. Pure but for `read`.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeEnd:
    """One address of a node on the data network: a line of the file."""

    node: str
    address: str
    leaf: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePart:
    """What one address of this node has to do."""

    own: ProbeEnd
    # Whom it probes: those on the same leaf switch, and those behind others.
    near: tuple[ProbeEnd, ...]
    far: tuple[ProbeEnd, ...]
    # Addresses that probe it; nobody else is answered.
    asked_by: frozenset[str]


class HostsError(OSError):
    """The file says nothing that can be used: its text says what is wrong and in which line."""


def read(path: Path, node: str, *, near: int, far: int) -> list[ProbePart]:
    """The parts of this node, one for each of its addresses. OSError: the file cannot be read or used.

    The file is read twice, so that of a large fleet only the neighbours are kept.
    """
    leaves: dict[str, None] = {}
    mine: dict[str, None] = {}
    for end in _ends(path):
        leaves.setdefault(end.leaf)
        if end.node == node:
            mine.setdefault(end.leaf)
    if not mine:
        raise HostsError(
            f"{path} has no line for {node}: add one for each of its addresses, or unset probe_hosts"
        )
    order = list(leaves)
    wanted = set()
    for leaf in mine:
        at = order.index(leaf)
        # Those that it probes, and those that probe it.
        wanted |= {order[(at + step) % len(order)] for step in range(-far, far + 1)}
    members: dict[str, list[ProbeEnd]] = {leaf: [] for leaf in wanted}
    for end in _ends(path):
        if end.leaf in wanted:
            members[end.leaf].append(end)
    return list(_parts(order, members, node, near=near, far=far))


def _parts(
    order: Sequence[str], members: Mapping[str, Sequence[ProbeEnd]], node: str, *, near: int, far: int
) -> Iterator[ProbePart]:
    steps = range(1, min(far, len(order) - 1) + 1)
    for leaf, here in members.items():
        if all(end.node != node for end in here):
            continue  # its neighbours are not known
        at = order.index(leaf)
        after = [members[order[(at + step) % len(order)]] for step in steps]
        before = [members[order[(at - step) % len(order)]] for step in steps]
        for number, own in enumerate(here):
            if own.node != node:
                continue
            asking = [end for place, end in enumerate(here) if own in _near(here, place, near)]
            for there in before:
                asking += [end for place, end in enumerate(there) if _across(here, place, end.node) == own]
            found = (_across(there, number, node) for there in after)
            yield ProbePart(
                own=own,
                near=tuple(_near(here, number, near)),
                far=tuple(end for end in found if end is not None),
                asked_by=frozenset(end.address for end in asking),
            )


def _near(here: Sequence[ProbeEnd], number: int, near: int) -> list[ProbeEnd]:
    """The next ones on the same leaf switch, none of the same node."""
    node, found = here[number].node, list[ProbeEnd]()
    for step in range(1, len(here)):
        end = here[(number + step) % len(here)]
        if len(found) == near:
            break
        if end.node != node:
            found.append(end)
    return found


def _across(there: Sequence[ProbeEnd], number: int, node: str) -> ProbeEnd | None:
    """The one in the same place behind another leaf switch, or the next that is not of the same node."""
    for step in range(len(there)):
        end = there[(number + step) % len(there)]
        if end.node != node:
            return end
    return None


def _ends(path: Path) -> Iterator[ProbeEnd]:
    with path.open(encoding="utf-8", errors="replace") as lines:
        yield from parse(lines, str(path))


def parse(lines: Iterable[str], path: str) -> Iterator[ProbeEnd]:
    """The ends that the lines name; HostsError for one that names none."""
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 3:
            raise HostsError(
                f"{path}, line {number}: want node, address and leaf switch, and it has {len(words)} words"
            )
        node, address, leaf = words
        try:
            yield ProbeEnd(node=node, address=str(ipaddress.ip_address(address)), leaf=leaf)
        except ValueError as error:
            raise HostsError(f"{path}, line {number}: {address[:60]!r} is no IP address") from error
