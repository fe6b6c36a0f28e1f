"""Reads what `lldpcli show neighbors -f json` prints on a node: which switch each of its interfaces is connected to.

lldpd does not write the name of its own machine: it is that of the file, `gpu-01.json`. Both its forms are read: `json`, where
one interface is an object and several are a list, and `json0`, where everything is a list.
"""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import orjson

from agent.contract.errors import ConfigError
from brain.topology.sightings import Sightings
from brain.topology.site_map import SiteMap


def read(files: Sequence[tuple[str, str]], source: str, interfaces: Sequence[str] = ("*",)) -> SiteMap:
    """Returns the places that neighbours tell of. `files`: (node, text); `interfaces`: patterns of those that count."""
    found = Sightings(source=source)
    for name, text in files:
        node = found.node(name)
        for interface, switch in sorted(_neighbours(text, name)) if node else ():
            if any(fnmatchcase(interface, pattern) for pattern in interfaces):
                found.connected(node, interface, switch.partition(".")[0])
    return found.site()


def _neighbours(text: str, name: str) -> Iterator[tuple[str, str]]:
    """(interface, system name of its neighbour)."""
    try:
        whole = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{name}: is not what `lldpcli show neighbors -f json` prints") from error
    for one in _each(whole.get("lldp") if isinstance(whole, dict) else None):
        for named in _each(one.get("interface")):
            if isinstance(label := named.get("name"), str):  # json0
                yield from ((label, switch) for switch in _systems(named))
            else:
                yield from (
                    (interface, switch)
                    for interface, value in named.items()
                    for neighbour in _each(value)
                    for switch in _systems(neighbour)
                )


def _systems(neighbour: dict[str, Any]) -> Iterator[str]:
    for chassis in _each(neighbour.get("chassis")):
        for said in _each(chassis.get("name")):  # json0
            if isinstance(value := said.get("value"), str):
                yield value
        if "name" not in chassis:
            # A neighbour without a name stands under its fields.
            yield from (name for name, value in chassis.items() if isinstance(value, dict) and "id" in value)


def _each(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, or the one object."""
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]
