"""Reads Slurm's topology.conf: switches of topology/tree, blocks of topology/block.

A switch with nodes is their leaf switch; the switch above it is their pod, unless it is at the top: that of one tree holds all
and says nothing, those of several trees are fabrics. A block is a set of nodes that NVLink connects (Slurm's page of
topology.conf: "BlockName", "BlockSizes"; topology/block was made for such systems).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from brain import hostlist
from brain.topology.sightings import Sightings, lines
from brain.topology.site_map import SiteMap

_PAIR = re.compile(r"(\w+)=(\S*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Switch:
    line: int
    nodes: tuple[str, ...]
    switches: tuple[str, ...]


def read(text: str, source: str) -> SiteMap:
    """Returns the places that a topology.conf tells of."""
    found = Sightings(source=source)
    switches: dict[str, _Switch] = {}
    for line, pairs in _records(text):
        nodes, below = (
            _hosts(found, line, pairs.get("nodes", "")),
            _hosts(found, line, pairs.get("switches", "")),
        )
        if name := pairs.get("blockname", ""):
            for node in filter(None, (found.node(one, line) for one in nodes)):
                found.stands(node, "nvlink", name, line)
        elif name := pairs.get("switchname", ""):
            if name in switches:
                found.refuse(line, name, f"occurs twice, first in line {switches[name].line}")
                continue
            switches[name] = _Switch(line=line, nodes=tuple(nodes), switches=tuple(below))
        elif "nodes" in pairs:
            found.refuse(line, "", "has nodes, and no SwitchName or BlockName")
    _climb(found, switches)
    return found.site()


def _records(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, lower key -> value); a backslash at the end goes on in the next line, `#` begins a comment."""
    whole, first = "", 0
    for number, line in lines(text):
        part = line.partition("#")[0].rstrip()
        whole, first = whole + part.removesuffix("\\"), first or number
        if part.endswith("\\"):
            continue
        if whole.strip():
            yield first, {key.lower(): value for key, value in _PAIR.findall(whole)}
        whole, first = "", 0
    if whole.strip():
        yield first, {key.lower(): value for key, value in _PAIR.findall(whole)}


def _hosts(found: Sightings, line: int, text: str) -> list[str]:
    try:
        return hostlist.expand(text)
    except ValueError as error:
        found.refuse(line, "", f"not taken: {error}")
        return []


def _climb(found: Sightings, switches: dict[str, _Switch]) -> None:
    above: dict[str, str] = {}
    for name, switch in switches.items():
        for below in switch.switches:
            if below not in switches:
                found.refuse(switch.line, name, f"there is no switch {below[:60]!r}")
            elif above.setdefault(below, name) != name:
                found.refuse(switch.line, name, f"switch {below} is below {above[below]} too: that counts")
    tops = {name: _top(found, switches, above, name) for name in switches}
    several = len({top for name, top in tops.items() if top and switches[name].nodes}) > 1
    for name, switch in switches.items():
        pod = above.get(name, "")
        for node in filter(None, (found.node(one, switch.line) for one in switch.nodes)):
            found.stands(node, "leaf", name, switch.line)
            if pod and pod in above:
                found.stands(node, "pod", pod, switch.line)
            if several and tops[name]:
                found.stands(node, "fabric", tops[name], switch.line)


def _top(found: Sightings, switches: dict[str, _Switch], above: dict[str, str], name: str) -> str:
    """The switch at the top of a switch's tree; empty, with a warning: the tree is a circle."""
    seen = {name: None}
    while (higher := above.get(name)) is not None:
        if higher in seen:
            found.refuse(switches[name].line, name, f"is above itself, by {higher}")
            return ""
        seen[higher] = None
        name = higher
    return name
