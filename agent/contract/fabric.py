"""What `ibqueryerrors` and `iblinkinfo` of infiniband-diags report about a whole InfiniBand fabric, and which of it is a
finding.

The counters of a fabric count since they were last cleared, which gpuward never does: a finding is what has grown while
the fabric was watched, or since the inspection before. The thresholds are those that infiniband-diags ships
(`/etc/infiniband-diags/error_thresholds`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

# Counter → growth between two inspections that is a finding. While the fabric is watched, any growth is one.
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
}  # left out: XmitWait, discards and switch relay errors, which come from congestion or ordinary traffic

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
class CableEnd:
    """One end of a cable."""

    # GUID of the node (a switch) or of the port (an adapter), `0x...` as the tool prints it.
    guid: str
    # The node description.
    name: str
    port: int

    @property
    def key(self) -> str:
        """Identifies the end over time: LIDs and descriptions change."""
        return f"{int(self.guid, 16):x}/{self.port}"

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.name or self.guid} port {self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cable:
    """A cable that is plugged in at both ends, as one of its ends sees it."""

    near: CableEnd
    far: CableEnd
    # E.g. `4X`.
    width: str
    # Of one lane, e.g. `25.78125 Gbps`.
    speed: str
    # Active | Armed | Initialize | Down.
    state: str
    # What both ends support beyond that, e.g. `Could be 4X`; empty: it is as good as it can be.
    could: str

    @property
    def key(self) -> str:
        """Identifies the cable by both of its ends, in one order."""
        return " ".join(sorted((self.near.key, self.far.key)))

    @property
    def text(self) -> str:
        """For people: both ends."""
        return f"{self.near.text} to {self.far.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCounters:
    """One reading of the error counters."""

    # How many ports were read.
    ports: int
    # CableEnd.key → counter → value; only those above zero.
    counters: Mapping[str, Mapping[str, int]]
    # By the same keys.
    names: Mapping[str, CableEnd]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastInspection:
    """What an inspection keeps for the next one. Its fields are the keys of a file."""

    # ISO 8601; empty: there was none.
    when: str = ""
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # Cable.key → `A port 1 to B port 2`.
    links: Mapping[str, str] = field(default_factory=dict)


def errors(text: str) -> ErrorCounters:
    """Reads the output of `ibqueryerrors`. The sum over a switch's ports (`port ALL`) is left out."""
    counters: dict[str, dict[str, int]] = {}
    names: dict[str, CableEnd] = {}
    name = ""
    for line in text.splitlines():
        if found := _NODE.match(line):
            name = found["name"]
        elif found := _PORT.match(line):
            end = CableEnd(guid=found["guid"].lower(), name=name, port=int(found["port"]))
            names[end.key] = end
            counters[end.key] = {
                hit["name"]: int(hit["value"]) for hit in _COUNTER.finditer(found["counters"])
            }
    checked = _CHECKED.search(text)
    return ErrorCounters(ports=int(checked["ports"]) if checked else 0, counters=counters, names=names)


def links(text: str) -> list[Cable]:
    """Reads the output of `iblinkinfo --line`: each cable once, by the end that is printed first; ports without one are left
    out.
    """
    found: dict[str, Cable] = {}
    for line in text.splitlines():
        hit = _LINK.match(line)
        if hit is None or not hit["peer_guid"]:
            continue
        near = CableEnd(guid=hit["guid"].lower(), name=hit["name"], port=int(hit["port"]))
        far = CableEnd(guid=hit["peer_guid"].lower(), name=hit["peer"], port=int(hit["peer_port"]))
        cable = Cable(
            near=near,
            far=far,
            width=hit["width"] or "",
            speed=hit["speed"] or "",
            state=hit["state"],
            could=" ".join(hit["could"].split()),
        )
        found.setdefault(cable.key, cable)
    return list(found.values())


def findings(
    before: ErrorCounters, after: ErrorCounters, cables: list[Cable], last: LastInspection, watched_s: float
) -> Iterator[str]:
    """What an operator should look at, worst first; each names both ends of a cable where they are known."""
    ends = {end.key: cable for cable in cables for end in (cable.near, cable.far)}

    def where(key: str) -> str:
        end, cable = after.names[key], ends.get(key)
        if cable is None:
            return end.text
        return f"{end.text} (to {(cable.far if cable.near.key == key else cable.near).text})"

    for cable in cables:
        if cable.state != "Active":
            yield f"{cable.text}: the link has trained but is {cable.state}: no subnet manager makes it active"
    now = {cable.key for cable in cables}
    gone = [text for key, text in last.links.items() if key not in now]
    for text in gone:
        yield f"{text}: the link of {last.when} is gone"
    for key, values in after.counters.items():
        grown = _grown(values, before.counters.get(key, {}), dict.fromkeys(THRESHOLDS, 1))
        if grown:
            yield f"{where(key)}: {grown} within {watched_s:g} s"
        elif last.when and (grown := _grown(values, last.counters.get(key, {}), THRESHOLDS)):
            yield f"{where(key)}: {grown} since {last.when}"
    # Where most links could be better, the fabric is built that way; a few among many are cables that trained badly.
    usual, count = next(iter(Counter(bool(cable.could) for cable in cables).most_common(1)), (False, 0))
    if not usual or count <= len(cables) / 2:
        for cable in cables:
            if cable.could:
                yield f"{cable.text}: {cable.width} {cable.speed}, {cable.could}"


def to_remember(after: ErrorCounters, cables: list[Cable], when: str) -> LastInspection:
    """What the next inspection compares with."""
    return LastInspection(
        when=when, counters=after.counters, links={cable.key: cable.text for cable in cables}
    )


def _grown(values: Mapping[str, int], before: Mapping[str, int], least: Mapping[str, int]) -> str:
    """E.g. `SymbolErrorCounter +12`. A counter that is smaller than before was cleared, and counts from zero."""
    grown = {
        name: value - (old if (old := before.get(name, 0)) <= value else 0)
        for name, value in values.items()
        if name in least
    }
    return ", ".join(f"{name} +{delta}" for name, delta in grown.items() if delta >= least[name])


def text(cables: int, ports: int, found: list[str]) -> str:
    """A node's answer: a first line, which `count` reads, then the findings."""
    first = f"{cables} links, {ports} ports, {len(found)} finding{'' if len(found) == 1 else 's'}"
    return "\n".join([f"{first}:" if found else first, *found])


def count(answer: str) -> int | None:
    """How many findings an answer has; None: it is no such answer."""
    found = FIRST.match(answer)
    return int(found["findings"]) if found else None
