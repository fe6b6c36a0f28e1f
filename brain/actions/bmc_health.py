"""What a BMC says of the health of its node: parts with their states and readings, and the entries of its event log.

One form for Redfish and IPMI (`redfish_health`, `ipmi_health`); what follows from it is judged in `bmc_facts`. Bounded: a BMC
that says more than these limits is cut short, and its texts are clipped.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from agent.contract.messages import clip

MOST_PARTS = 400  # of one node; servers with eight GPUs have some 150 sensors
MOST_ENTRIES = 64  # of the event log, the newest
MAX_NAME, MAX_TEXT = 80, 200  # characters of what a BMC names and says


class PartKind(StrEnum):
    """What a part is, in the terms of the rules."""

    PSU = "psu"  # a power supply
    PSU_REDUNDANCY = "psu_redundancy"  # of the power supplies together
    FAN = "fan"
    FAN_REDUNDANCY = "fan_redundancy"  # of the fans together
    INLET = "inlet"  # temperature of the air that comes in
    LEAK = "leak"  # a detector of liquid
    DIMM = "dimm"  # a memory module
    SENSOR = "sensor"  # anything else
    SYSTEM = "system"  # what the BMC says of the whole node


class PartState(StrEnum):
    """How a part is."""

    WELL = "well"
    WARNING = "warning"  # it works, and the BMC is not content
    CRITICAL = "critical"  # it has failed, or is beyond its limits
    UNKNOWN = "unknown"  # the BMC does not say, or the part is switched off


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePart:
    """One part at one time. Make it by `part`, which clips the texts."""

    kind: PartKind
    # As the BMC names it; unique among the parts of one kind
    name: str
    state: PartState
    # °C of an inlet, speed of a fan (per cent or per minute), corrected errors of a DIMM since it counts
    reading: float | None = None
    # The BMC's own limit of the reading
    limit: float | None = None
    # Of a DIMM: errors that could not be corrected, since it counts
    uncorrected: int = 0
    # What the BMC says of it
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One entry of the BMC's event log."""

    # Unique in the log of this BMC, also after it was cleared
    id: str
    state: PartState
    text: str
    # How old it is by the BMC's own clock, seconds; None: the BMC does not say
    age_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcHealth:
    """One look at a BMC."""

    # False: the node is off, so fans stand still and nothing follows from it
    on: bool = True
    parts: tuple[NodePart, ...] = ()
    # Newest first
    entries: tuple[LogEntry, ...] = ()
    # What could not be read, and why; of the parts in there nothing is known
    missing: tuple[str, ...] = ()


def part(
    kind: PartKind,
    name: object,
    state: PartState,
    *,
    reading: float | None = None,
    limit: float | None = None,
    uncorrected: int = 0,
    text: object = "",
) -> NodePart:
    """A part whose name and text are clipped, as they come from outside."""
    return NodePart(
        kind=kind,
        name=clip(" ".join(str(name).replace(",", " ").split()), MAX_NAME) or "?",
        state=state,
        reading=reading,
        limit=limit,
        uncorrected=uncorrected,
        text=clip(" ".join(str(text).split()), MAX_TEXT),
    )


def unique(parts: Iterable[NodePart]) -> tuple[NodePart, ...]:
    """The first MOST_PARTS; of several of one name the worst one, so that a name is a name."""
    order = (PartState.UNKNOWN, PartState.WELL, PartState.WARNING, PartState.CRITICAL)
    found: dict[tuple[PartKind, str], NodePart] = {}
    for one in parts:
        key = (one.kind, one.name)
        if key in found and order.index(found[key].state) >= order.index(one.state):
            continue
        if key in found or len(found) < MOST_PARTS:
            found[key] = one
    return tuple(found.values())


def number(found: object) -> float | None:
    """A finite number, or None: what a BMC sends need not be one."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    value = float(found)
    return value if abs(value) < 1e12 else None  # NaN and infinity are not
