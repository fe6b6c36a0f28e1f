"""Which lines of the logs that are diagnosed are of which node. Pure."""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.contract.log_hosts import by_host
from brain.cli.log_order import newest_first


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLog:
    """What one node says in one log."""

    node: str
    lines: Sequence[str]
    # Of each line, its 0-based position in the log.
    positions: Sequence[int]
    # The log ends within the last of them.
    unended: bool


def by_node(logs: Mapping[str, Sequence[str]], unended: Container[str]) -> Iterator[NodeLog]:
    """A log in which several machines speak is several nodes' (log_hosts.py). `unended`: logs whose last line has no end."""
    taken = list(logs)
    for name, lines in logs.items():
        hosts = by_host(lines)
        for host, positions in hosts.items():
            node = node_name(host, [one for one in taken if one != name])
            taken.append(node)
            yield _node_log(node, lines, positions, unended=name in unended)
        if not hosts:
            yield _node_log(name, lines, range(len(lines)), unended=name in unended)


def _node_log(node: str, lines: Sequence[str], positions: Sequence[int], *, unended: bool) -> NodeLog:
    own: Sequence[str] = [lines[position] for position in positions]
    if turned := newest_first(own):
        positions = [positions[at] for at in turned]
        own = [own[at] for at in turned]
    return NodeLog(
        node=node,
        lines=own,
        positions=positions,
        unended=unended and bool(positions) and positions[-1] == len(lines) - 1,
    )


def node_name(stem: str, taken: Sequence[str]) -> str:
    """Returns a node name for a file name: valid in scopes and ids, and not taken."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-")[:50] or "this-node"
    many = 2
    wanted = name
    while wanted in taken:
        wanted, many = f"{name}-{many}", many + 1
    return wanted
