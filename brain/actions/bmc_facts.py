"""From what a BMC says to facts of its node: what is unwell, what has become so, and what is on the way there. Pure.

What is remembered of a node is the leading brain's own, and bounded: the states it has told, the entries of the log that it has
seen, and of each inlet, fan and memory module a usual value. A new leader learns the states from the log, and begins anew with
the usual values: for HISTORY_S it tells of no trend.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from agent.contract.messages import Scalar, Severity, clip
from brain.actions.bmc_health import BmcHealth, LogEntry, NodePart, PartKind, PartState
from brain.core.pack import bmc_kinds

MOST_TEXT = 400
MOST_TOLD = 5  # entries of the event log in one look; the others are counted
SEEN = 512  # entries that are remembered
AGAIN_S = 3600.0  # what lasts is told again
MISSES = 3  # looks in a row without an answer, before a BMC counts as unreachable
HISTORY_S = 6 * 3600.0  # before there is a usual value
USUAL_S = 86400.0  # time constant of the usual value: a day, since rooms have a day and a night
LOOKS = 3  # in a row, for a trend
COOLER_C = 2.0  # an inlet that was too hot has to be so much below the limit
RISE_C, FALL_C = 6.0, 3.0  # of an inlet above its usual temperature: it rises, it no longer does
FAN_SHARE = 0.2  # by which the speed of a fan against the node's others differs from what it usually is
FEW_FANS = 4
ECC_GROWTH = 24.0  # corrected errors of one module, growing at LOOKS readings in a row
_BAD = (PartState.WARNING, PartState.CRITICAL)
_GROUPS: Mapping[str, tuple[PartKind, ...]] = {
    bmc_kinds.BMC_POWER: (PartKind.PSU, PartKind.PSU_REDUNDANCY),
    bmc_kinds.BMC_FAN: (PartKind.FAN, PartKind.FAN_REDUNDANCY),
    bmc_kinds.BMC_INLET: (PartKind.INLET,),
    bmc_kinds.BMC_LEAK: (PartKind.LEAK,),
    bmc_kinds.BMC_DIMM: (PartKind.DIMM,),
    bmc_kinds.BMC_SENSOR: (PartKind.SENSOR,),
}
_STOPS = (bmc_kinds.BMC_FAN, bmc_kinds.BMC_SENSOR)  # of a node that is off nothing follows from these
# What an entry of the event log is about, by its words; the first one that fits.
_ABOUT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("leak", ("leak", "coolant", "liquid")),
    ("memory", ("ecc", "dimm", "memory")),
    ("power", ("power supply", "psu", "ac lost", "pwr supply", "redundancy")),
    ("fan", ("fan",)),
    ("temperature", ("temp", "thermal", "overheat")),
    ("pcie", ("pci", "bus fatal", "bus uncorrectable")),
    ("processor", ("cpu", "processor", "ierr", "machine check", "frb", "mce")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcFact:
    """One fact of a node, in the words of the rules."""

    kind: str
    # apart from the kind: what of a node stands apart in it, as the trend of fans
    what: str
    severity: Severity
    data: Mapping[str, Scalar]
    # equal for the same fact, for its id on the log
    digest: str


@dataclass(slots=True)
class ToldState:
    """What the log has of one kind."""

    digest: str
    active: bool
    at_s: float
    # The parts that were unwell
    parts: tuple[str, ...] = ()


@dataclass(slots=True)
class Usual:
    """What one reading usually is."""

    value: float
    since_s: float
    last_s: float
    beyond: int = 0  # looks in a row
    on: bool = False

    def learn(self, value: float, now_s: float) -> None:
        """Moves towards a new value, the more the longer it was not looked at."""
        share = min(1.0, max(0.0, now_s - self.last_s) / USUAL_S)
        self.value += (value - self.value) * share
        self.last_s = now_s

    def known(self, now_s: float) -> bool:
        """Has it been looked at for long enough?"""
        return now_s - self.since_s >= HISTORY_S

    def moved(self, *, beyond: bool, back: bool) -> bool:
        """Counts a look beyond its limits; True while LOOKS in a row were, until one is back."""
        self.beyond = self.beyond + 1 if beyond else 0
        if self.beyond >= LOOKS:
            self.on = True
        elif back:
            self.on = False
        return self.on


@dataclass(slots=True)
class Counted:
    """The corrected errors of one memory module."""

    last: float
    first: float  # where the growth began
    uncorrected: int
    grew: int = 0  # readings in a row
    quiet: int = 0
    on: bool = False


@dataclass(slots=True)
class NodeMemory:
    """What is remembered of one node."""

    told: dict[tuple[str, str], ToldState] = field(default_factory=dict)
    seen: deque[str] = field(default_factory=lambda: deque(maxlen=SEEN))
    looked: bool = False
    misses: int = 0
    turn: int = 0
    usual: dict[tuple[PartKind, str], Usual] = field(default_factory=dict)
    counted: dict[str, Counted] = field(default_factory=dict)
    hot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PollLimits:
    """What the site sets."""

    # An inlet that is so warm is too hot, whatever its BMC says; °C
    inlet_celsius: float
    # Time between two looks at a BMC
    every_s: float


def facts(
    found: BmcHealth, memory: NodeMemory, limits: PollLimits, now_s: float, *, early: bool = False
) -> list[BmcFact]:
    """What one look at a node tells that the log does not have yet. Changes `memory`. `early`: it was not the node's turn; for
    trends, which count looks, it is none.
    """
    memory.misses = 0
    bad = {kind: _bad(kind, found, memory, limits) for kind in _GROUPS}
    told = [*_state(bmc_kinds.BMC_UNREACHABLE, "", (), {"refused": False}, memory, now_s, well=True)]
    for kind, parts in bad.items():
        if kind in _STOPS and not found.on:
            continue
        seen = [one for one in found.parts if one.kind in _GROUPS[kind]]
        well = not parts and _is_well(kind, seen, found, memory)
        told += _state(kind, "", parts, _data(kind, parts, seen, limits), memory, now_s, well=well)
    whole = next((one for one in found.parts if one.kind is PartKind.SYSTEM), None)
    if whole is not None:
        ill = whole.state is PartState.CRITICAL and not any(bad.values()) and found.on
        parts = (whole,) if ill else ()
        told += _state(
            bmc_kinds.BMC_HEALTH, "", parts, {"text": whole.text}, memory, now_s, well=not ill and found.on
        )
    for what, parts, data in () if early else _trends(found, memory, now_s):
        told += _state(bmc_kinds.BMC_RISING, what, parts, data, memory, now_s, well=not parts)
    told += _entries(found.entries, memory, limits)
    memory.looked = True
    memory.turn += 1
    return told


def missed(why: str, memory: NodeMemory, now_s: float, *, refused: bool) -> list[BmcFact]:
    """A look got no answer. `refused`: the BMC answers, and does not let us in; that is told at once."""
    memory.misses += 1
    if memory.misses < MISSES and not refused:
        return []
    text = clip(" ".join(why.split()), MOST_TEXT)
    bad = (NodePart(kind=PartKind.SYSTEM, name="bmc", state=PartState.WARNING, text=text),)
    data: dict[str, Scalar] = {"refused": refused, "text": text}
    return list(_state(bmc_kinds.BMC_UNREACHABLE, "", bad, data, memory, now_s, well=False))


def _bad(kind: str, found: BmcHealth, memory: NodeMemory, limits: PollLimits) -> tuple[NodePart, ...]:
    """The parts of a kind that are unwell."""
    parts = [one for one in found.parts if one.kind in _GROUPS[kind]]
    if kind == bmc_kinds.BMC_SENSOR:
        return tuple(one for one in parts if one.state is PartState.CRITICAL)
    if kind == bmc_kinds.BMC_INLET:
        limit = limits.inlet_celsius - (COOLER_C if memory.hot else 0.0)
        hot = tuple(
            one for one in parts if one.state in _BAD or (one.reading is not None and one.reading >= limit)
        )
        if parts:
            memory.hot = bool(hot)
        return hot
    if kind == bmc_kinds.BMC_DIMM:
        return tuple(one for one in parts if one.state in _BAD or _lost(one, memory))
    return tuple(one for one in parts if one.state in _BAD)


def _lost(one: NodePart, memory: NodeMemory) -> bool:
    """Has the module lost data since it was first looked at? What it lost before is an old story."""
    known = memory.counted.get(one.name)
    return known is not None and one.uncorrected > known.uncorrected


def _is_well(kind: str, seen: Sequence[NodePart], found: BmcHealth, memory: NodeMemory) -> bool:
    """Are the parts that were unwell well now? What could not be read proves nothing."""
    told = memory.told.get((kind, ""))
    if told is None or not told.active:
        return False
    names = {one.name for one in seen if one.state is PartState.WELL}
    if told.parts and names.issuperset(told.parts):
        return True
    # Not of modules: of those a look sees some only.
    return kind != bmc_kinds.BMC_DIMM and bool(names) and not found.missing


def _data(
    kind: str, bad: Sequence[NodePart], seen: Sequence[NodePart], limits: PollLimits
) -> dict[str, Scalar]:
    failed = sum(one.state is PartState.CRITICAL for one in bad)
    if kind == bmc_kinds.BMC_POWER:
        return {
            "failed": sum(one.state is PartState.CRITICAL and one.kind is PartKind.PSU for one in bad),
            "working": sum(one.state is PartState.WELL and one.kind is PartKind.PSU for one in seen),
            "redundant": not any(
                one.kind is PartKind.PSU_REDUNDANCY or one.state is PartState.CRITICAL for one in bad
            ),
        }
    if kind == bmc_kinds.BMC_FAN:
        working = sum(one.state is PartState.WELL and one.kind is PartKind.FAN for one in seen)
        return {"failed": failed, "working": working}
    if kind == bmc_kinds.BMC_INLET:
        warmest = max((one.reading for one in bad if one.reading is not None), default=0.0)
        limit = next((one.limit for one in bad if one.limit is not None), limits.inlet_celsius)
        return {"celsius": warmest, "limit": limit, "critical": failed > 0 or warmest >= limit}
    if kind == bmc_kinds.BMC_DIMM:
        return {"uncorrected": any(one.state is PartState.CRITICAL or one.uncorrected > 0 for one in bad)}
    return {}


def _state(
    kind: str,
    what: str,
    bad: Sequence[NodePart],
    data: Mapping[str, Scalar],
    memory: NodeMemory,
    now_s: float,
    *,
    well: bool,
) -> Iterator[BmcFact]:
    """What to tell of a state: that it begins, changes, still lasts, or is over."""
    key, told = (kind, what), memory.told.get((kind, what))
    lasts = told is not None and told.active
    if not bad and not (lasts and well):
        return
    names = tuple(one.name for one in bad)
    # What changes at every look, a temperature or a text, is no new fact: it comes along when the state is told anyway.
    fixed = [f"{name}={value}" for name, value in sorted(data.items()) if isinstance(value, int)]
    states = [f"{one.name} {one.state}" for one in bad]
    digest = hashlib.sha256("\n".join([str(bool(bad)), *states, *fixed]).encode()).hexdigest()[:16]
    if lasts and told is not None and bad and digest == told.digest and now_s - told.at_s < AGAIN_S:
        return
    memory.told[key] = ToldState(digest=digest, active=bool(bad), at_s=now_s, parts=names)
    severe = any(one.state is PartState.CRITICAL for one in bad)
    head: dict[str, Scalar] = {"active": bool(bad)}
    if what:
        head["what"] = what
    yield BmcFact(
        kind=kind,
        what=what,
        severity=Severity.ERROR if severe else Severity.WARNING if bad else Severity.INFO,
        data=head
        | {"parts": clip(", ".join(names), MOST_TEXT)}
        | dict(data)
        | {"text": str(data.get("text", clip("; ".join(_said(bad)), MOST_TEXT)))},
        digest=digest,
    )


def _said(bad: Sequence[NodePart]) -> Iterator[str]:
    for one in bad:
        reading = "" if one.reading is None else f" {one.reading:g}"
        yield f"{one.name}{reading}: {one.text or one.state.value}"


def _trends(
    found: BmcHealth, memory: NodeMemory, now_s: float
) -> Iterator[tuple[str, tuple[NodePart, ...], dict[str, Scalar]]]:
    """What is on its way: (what, the parts, data) of each kind of which the look says something."""
    inlets = [one for one in found.parts if one.kind is PartKind.INLET and one.reading is not None]
    if inlets:
        yield ("inlet", *_inlets(inlets, memory, now_s))
    fans = [one for one in found.parts if one.kind is PartKind.FAN and (one.reading or 0.0) > 0.0]
    if found.on and len(fans) >= FEW_FANS:
        yield ("fan", *_fans(fans, memory, now_s))
    modules = [one for one in found.parts if one.kind is PartKind.DIMM and one.reading is not None]
    if modules:
        yield ("memory", *_modules(modules, memory))


def _inlets(
    inlets: Sequence[NodePart], memory: NodeMemory, now_s: float
) -> tuple[tuple[NodePart, ...], dict[str, Scalar]]:
    risen, worst = [], (0.0, 0.0, 0.0)
    for one in inlets:
        value = one.reading or 0.0
        usual = memory.usual.setdefault((one.kind, one.name), Usual(value=value, since_s=now_s, last_s=now_s))
        above = value - usual.value
        if usual.known(now_s) and usual.moved(beyond=above >= RISE_C, back=above < FALL_C):
            risen.append(one)
            worst = max(worst, (above, value, usual.value))
        usual.learn(value, now_s)
    return tuple(risen), {"value": round(worst[1], 1), "usual": round(worst[2], 1)}


def _fans(
    fans: Sequence[NodePart], memory: NodeMemory, now_s: float
) -> tuple[tuple[NodePart, ...], dict[str, Scalar]]:
    """A fan against the others of its node: all of them turn faster under load, and one alone when it wears."""
    middle = median(one.reading or 0.0 for one in fans)
    moved, worst = [], (0.0, 0.0, 0.0)
    for one in fans:
        share = (one.reading or 0.0) / middle
        usual = memory.usual.setdefault((one.kind, one.name), Usual(value=share, since_s=now_s, last_s=now_s))
        off = abs(share / usual.value - 1.0)
        if usual.known(now_s) and usual.moved(beyond=off >= FAN_SHARE, back=off < FAN_SHARE / 2):
            moved.append(one)
            worst = max(worst, (off, share, usual.value))
        usual.learn(share, now_s)
    return tuple(moved), {"value": round(worst[1], 2), "usual": round(worst[2], 2)}


def _modules(
    modules: Sequence[NodePart], memory: NodeMemory
) -> tuple[tuple[NodePart, ...], dict[str, Scalar]]:
    """Of memory modules only some are read at each look; of the others the state of before counts."""
    for one in modules:
        value = one.reading or 0.0
        known = memory.counted.setdefault(
            one.name, Counted(last=value, first=value, uncorrected=one.uncorrected)
        )
        if value < known.last:  # cleared, or another module
            known.first, known.grew, known.on = value, 0, False
        elif value > known.last:
            known.grew, known.quiet = known.grew + 1, 0
        else:
            known.quiet += 1
            if known.quiet >= LOOKS:
                known.first, known.grew, known.on = value, 0, False
        known.last = value
        known.on = known.on or (known.grew >= LOOKS and value - known.first >= ECC_GROWTH)
    growing = {name: known for name, known in memory.counted.items() if known.on}
    worst = max((known.last - known.first for known in growing.values()), default=0.0)
    made = tuple(NodePart(kind=PartKind.DIMM, name=name, state=PartState.WARNING) for name in sorted(growing))
    return made, {"value": worst, "usual": 0.0}


def _entries(entries: Sequence[LogEntry], memory: NodeMemory, limits: PollLimits) -> list[BmcFact]:
    """The critical entries that are new. At the first look only those that are young by the BMC's own clock."""
    known = set(memory.seen)
    fresh = [one for one in reversed(entries) if one.id not in known]  # oldest first
    memory.seen.extend(one.id for one in fresh)
    if not memory.looked:
        fresh = [one for one in fresh if one.age_s is not None and one.age_s <= 2 * limits.every_s]
    grave = [one for one in fresh if one.state is PartState.CRITICAL]
    left_out = max(0, len(grave) - MOST_TOLD)
    return [_entry(one, left_out) for one in grave[-MOST_TOLD:]]


def _entry(one: LogEntry, left_out: int) -> BmcFact:
    words = one.text.lower()
    about = next((what for what, signs in _ABOUT if any(sign in words for sign in signs)), "other")
    lost = about == "memory" and ("uncorrect" in words or "multi-bit" in words)
    data: dict[str, Scalar] = {"entry": one.id, "about": about, "text": one.text, "uncorrected": lost}
    if left_out:
        data["left_out"] = left_out
    return BmcFact(
        kind=bmc_kinds.BMC_ENTRY,
        what="",
        severity=Severity.ERROR,
        data=data,
        digest=hashlib.sha256(one.id.encode()).hexdigest()[:16],
    )
