"""What `ibqueryerrors` and `iblinkinfo` of infiniband-diags say of a whole InfiniBand fabric, and what of it is a finding.

Counters of a fabric count since somebody cleared them, which we never do: a finding is what grew while it was watched,
or since the inspection before. The thresholds are those that infiniband-diags ships as its suggestion
(`/etc/infiniband-diags/error_thresholds`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

# Counter -> growth between two inspections that is a finding; while it is watched any growth is one.
THRESHOLDS: Mapping[str, int] = {
    **dict.fromkeys(
        (
            *("SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors"),
            *("LocalLinkIntegrityErrors", "ExcessiveBufferOverrunErrors"),
        ),
        10,
    ),
    **dict.fromkeys(
        ("PortRcvRemotePhysicalErrors", "PortXmitConstraintErrors", "PortRcvConstraintErrors"), 100
    ),
}  # XmitWait, discards and switch relay errors are congestion or ordinary traffic: no cable is bad for them

_NODE = re.compile(r'^Errors for (?:0x[0-9a-f]+ )?"(?P<name>[^"]*)"', re.IGNORECASE)
_PORT = re.compile(r"^\s+GUID (?P<guid>0x[0-9a-f]+) port (?P<port>\d+):(?P<counters>.*)$", re.IGNORECASE)
_COUNTER = re.compile(r"\[(?P<name>\w+) == (?P<value>\d+)")
_CHECKED = re.compile(r"^##\s+(?P<ports>\d+) ports checked", re.MULTILINE)
_LINK = re.compile(
    r'^(?P<guid>0x[0-9a-f]+) "\s*(?P<name>[^"]*)"\s+\d+\s+(?P<port>\d+)\[[^\]]*\] ==\(\s*'
    r"(?:(?P<width>\d+X)\s+(?P<speed>[\d.]+ Gbps)\s+(?:\([^)]*\)\s*)?)?(?P<state>\w+)/\s*(?P<physical>[\w/]+)\)==>\s*"
    r'(?:(?P<peer_guid>0x[0-9a-f]+)\s+\d+\s+(?P<peer_port>\d+))?\[[^\]]*\] "(?P<peer>[^"]*)" \((?P<could>[^)]*)\)',
    re.IGNORECASE,
)
FIRST = re.compile(r"^(?P<links>\d+) links, (?P<ports>\d+) ports, (?P<findings>\d+) findings?\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of a cable."""

    guid: str  # of the node (a switch) or of the port (an adapter), `0x...` as the tool prints it
    name: str  # node description
    port: int

    @property
    def key(self) -> str:
        """Names it in what is kept: LIDs and descriptions change."""
        return f"{int(self.guid, 16):x}/{self.port}"

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.name or self.guid} port {self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A cable that is plugged at both ends, as one of its ends sees it."""

    near: End
    far: End
    width: str  # `4X`
    speed: str  # of one lane, `25.78125 Gbps`
    state: str  # Active | Armed | Initialize | Down
    could: str  # what both ends support beyond it, `Could be 4X`; empty: it is as good as it can be

    @property
    def text(self) -> str:
        """For people: both ends."""
        return f"{self.near.text} to {self.far.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """One reading of the error counters."""

    ports: int  # that were asked
    counters: Mapping[str, Mapping[str, int]]  # End.key -> counter -> value; only those above zero
    names: Mapping[str, End]  # the same keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """What an inspection leaves for the next one."""

    when: str = ""  # ISO 8601; empty: there was none
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)  # End.key of both ends -> `A port 1 to B port 2`


def errors(text: str) -> Errors:
    """What `ibqueryerrors` printed. The sum over a switch's ports (`port ALL`) is left out."""
    counters: dict[str, dict[str, int]] = {}
    names: dict[str, End] = {}
    name = ""
    for line in text.splitlines():
        if found := _NODE.match(line):
            name = found["name"]
        elif found := _PORT.match(line):
            end = End(guid=found["guid"].lower(), name=name, port=int(found["port"]))
            names[end.key] = end
            counters[end.key] = {
                hit["name"]: int(hit["value"]) for hit in _COUNTER.finditer(found["counters"])
            }
    checked = _CHECKED.search(text)
    return Errors(ports=int(checked["ports"]) if checked else 0, counters=counters, names=names)


def links(text: str) -> list[Link]:
    """What `iblinkinfo --line` printed: each cable once, whichever end was told first; ports without a cable left out."""
    found: dict[str, Link] = {}
    for line in text.splitlines():
        hit = _LINK.match(line)
        if hit is None or not hit["peer_guid"]:
            continue
        near = End(guid=hit["guid"].lower(), name=hit["name"], port=int(hit["port"]))
        far = End(guid=hit["peer_guid"].lower(), name=hit["peer"], port=int(hit["peer_port"]))
        link = Link(
            near=near,
            far=far,
            width=hit["width"] or "",
            speed=hit["speed"] or "",
            state=hit["state"],
            could=" ".join(hit["could"].split()),
        )
        found.setdefault(cable(link), link)
    return list(found.values())


def cable(link: Link) -> str:
    """Names a cable by both of its ends, in one order."""
    return " ".join(sorted((link.near.key, link.far.key)))


def findings(
    before: Errors, after: Errors, cables: list[Link], last: Last, watched_s: float
) -> Iterator[str]:
    """What somebody should look at, worst first; each names both ends of a cable where they are known."""
    ends = {end.key: link for link in cables for end in (link.near, link.far)}

    def where(key: str) -> str:
        end, link = after.names[key], ends.get(key)
        if link is None:
            return end.text
        return f"{end.text} (to {(link.far if link.near.key == key else link.near).text})"

    for link in cables:
        if link.state != "Active":
            yield f"{link.text}: the link has trained but is {link.state}: no subnet manager makes it active"
    now = {cable(link) for link in cables}
    gone = [text for key, text in last.links.items() if key not in now]
    for text in gone:
        yield f"{text}: the link of {last.when} is gone"
    for key, values in after.counters.items():
        grown = _grown(values, before.counters.get(key, {}), dict.fromkeys(THRESHOLDS, 1))
        if grown:
            yield f"{where(key)}: {grown} within {watched_s:g} s"
        elif last.when and (grown := _grown(values, last.counters.get(key, {}), THRESHOLDS)):
            yield f"{where(key)}: {grown} since {last.when}"
    # Where most links could be better the fabric is built so; a few among many others are cables that trained badly.
    usual, count = next(iter(Counter(bool(link.could) for link in cables).most_common(1)), (False, 0))
    if not usual or count <= len(cables) / 2:
        for link in cables:
            if link.could:
                yield f"{link.text}: {link.width} {link.speed}, {link.could}"


def keep(after: Errors, cables: list[Link], when: str) -> Last:
    """For the next inspection."""
    return Last(when=when, counters=after.counters, links={cable(link): link.text for link in cables})


def _grown(values: Mapping[str, int], before: Mapping[str, int], least: Mapping[str, int]) -> str:
    """`SymbolErrorCounter +12`; a counter that is smaller than before was cleared and counts from zero."""
    grown = {
        name: value - (old if (old := before.get(name, 0)) <= value else 0)
        for name, value in values.items()
        if name in least
    }
    return ", ".join(f"{name} +{delta}" for name, delta in grown.items() if delta >= least[name])


def text(cables: int, ports: int, found: list[str]) -> str:
    """What a node answers: a first line that `count` reads, then the findings."""
    first = f"{cables} links, {ports} ports, {len(found)} finding{'' if len(found) == 1 else 's'}"
    return "\n".join([first, *found])


def count(answer: str) -> int | None:
    """How many findings an answer tells; None: it is no such answer."""
    found = FIRST.match(answer)
    return int(found["findings"]) if found else None
