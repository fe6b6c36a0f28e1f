"""Reads what `ibnetdiscover` or `iblinkinfo` (infiniband-diags) print of an InfiniBand fabric: which card is on which switch.

A card tells its node and its device in its description, `gpu-01 mlx5_0` (rdma-ndd, or the driver, writes it so). A switch is
named by its own: `leaf-1` of `MF0;leaf-1:MQM8700/U1`. Two switches of one name are told apart by their GUIDs.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brain.topology.sightings import Sightings, lines
from brain.topology.site_map import SiteMap

_HEAD = re.compile(r'(Switch|Ca|Rt)\t(\d+) "[SHR]-([0-9a-f]{16})"\s*# "(.*?)"(?: .*)?$')
_PORT = re.compile(
    r'\[(\d+)\](?:\[ext \d+\])?(?:\([0-9a-f]+\))?\s+"([SHR])-([0-9a-f]{16})"\[(\d+)\](?:\([0-9a-f]+\))?\s*#\s*(.*)$'
)
_QUOTED = re.compile(r'"(.*?)"')
_OF_HOST = re.compile(r"(\S+)(?: (\S+))?\s*")
_MODEL = re.compile(r"(?:MF\d+;)?(.*?)(?::[\w-]+(?:/\w+)*)?$")
_DEVICE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*\d*")  # mlx5_0, ibp24s0; not `HCA-1`
_LINKS_OF = re.compile(r"(CA|Switch): (?:0x([0-9a-f]{16}) )?(.*):$")
_LINK = re.compile(
    r'\s+(?:0x([0-9a-f]{16})\s+)?\d+\s+\d+\[.*?\] ==\(\s*(.*?)\)==>\s+(?:(\d+)\s+(\d+)\[.*?\] "(.*?)")?'
)
_NO_NODE = ("Aggregation Node", "Mellanox Technologies")  # of a switch (SHARP), with a card of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cable:
    """A card on a switch, by their descriptions."""

    line: int
    card: str
    switch: str
    # Of the switch; empty: not told
    guid: str


def read(files: Sequence[tuple[str, str, str]]) -> SiteMap:
    """Returns the places that outputs of either tool tell of. `files`: (fabric, name of the file, text) of each.

    The fabric's name is empty where a site has one only. A node with cards in two fabrics stands in both.
    """
    found = Sightings(source="")
    guids: dict[str, dict[str, None]] = {}
    told = [(fabric, source, _cables(text)) for fabric, source, text in files]
    for cable in (one for _, _, cables in told for one in cables):
        guids.setdefault(_switch(cable.switch), {})[cable.guid] = None
    for fabric, source, cables in told:
        found.source = source
        _add(found, fabric, cables, guids)
    found.source = ", ".join(source for _, source, _ in files)
    return found.site()


def _cables(text: str) -> list[_Cable]:
    return _of_netdiscover(text) if '"S-' in text else _of_linkinfo(text)


def _add(
    found: Sightings, fabric: str, cables: list[_Cable], guids: Mapping[str, Mapping[str, None]]
) -> None:
    for cable in cables:
        if any(word in cable.card for word in _NO_NODE):
            continue
        host = _OF_HOST.fullmatch(cable.card)
        if host is None:
            found.refuse(cable.line, cable.card[:40], "not taken: not `NODE` or `NODE DEVICE`")
            continue
        node = found.node(host[1], cable.line)
        name = _switch(cable.switch)
        if len(guids[name]) > 1 and cable.guid:
            name = f"{name}-{cable.guid}"
        if node and name:
            device = host[2] or ""
            found.connected(node, device if _DEVICE.fullmatch(device) else "", name, cable.line)
            if fabric:
                found.stands(node, "fabric", fabric, cable.line)
    if not cables:
        found.refuse(0, "", "no card on a switch: is it what ibnetdiscover or iblinkinfo prints?")


def _switch(description: str) -> str:
    """The switch's own name: `leaf-1` of `MF0;leaf-1:MQM8700/U1`."""
    own = _MODEL.fullmatch(description.strip())
    return (own[1] if own else "") or description.strip()


def _of_netdiscover(text: str) -> list[_Cable]:
    cables: list[_Cable] = []
    switch = guid = ""
    for number, line in lines(text):
        if head := _HEAD.match(line):
            switch, guid = (head[4], head[3]) if head[1] == "Switch" else ("", "")
        elif (port := _PORT.match(line)) and guid and port[2] == "H" and (card := _QUOTED.search(port[5])):
            cables.append(_Cable(line=number, card=card[1], switch=switch, guid=guid))
    return cables


def _of_linkinfo(text: str) -> list[_Cable]:
    """A link stands at both its ends; only the lines of cards name their switch without a doubt."""
    cables: list[_Cable] = []
    card, switches = "", {}
    for _, line in lines(text):
        if (head := _LINKS_OF.match(line)) and head[1] == "Switch":
            switches[head[3]] = head[2] or ""
    for number, line in lines(text):
        if head := _LINKS_OF.match(line):
            card = head[3] if head[1] == "CA" else ""
        elif card and (link := _LINK.match(line)) and link[5] is not None and "Down" not in link[2]:
            cables.append(_Cable(line=number, card=card, switch=link[5], guid=switches.get(link[5], "")))
    return cables
