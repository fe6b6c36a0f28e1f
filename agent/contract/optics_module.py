"""A pluggable module of a network interface, as its own memory describes it: what all three layouts have in common.

Its memory is read in halves of 128 bytes (agent/shared/module_memory.py). Numbers in it are big endian.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

HALF_BYTES = 128
_KEPT = 64  # characters of a text; the longest is 16


class Half(NamedTuple):
    """128 bytes of a module's memory: where on its I2C bus, which page, and from which byte on (0 or 128)."""

    address: int
    page: int
    offset: int


Memory = Mapping[Half, bytes]
LOWER, UPPER = Half(0x50, 0, 0), Half(0x50, 0, 128)


class Flag(NamedTuple):
    """Something that is beyond the module's own limit."""

    # receive_low | receive_high | transmit_low | transmit_high | transmit_fault | bias_low | bias_high | temperature_low |
    # temperature_high | voltage_low | voltage_high
    what: str
    # Counted from 1; 0: the module as a whole.
    lane: int
    # Else a warning.
    alarm: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OpticalLane:
    """What one lane measures; None: it does not, or not in a way that needs no table of its maker."""

    receive_uw: float | None = None
    transmit_uw: float | None = None
    bias_ma: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpticsModule:
    """What a module is, and what it says of itself. Texts are empty where it does not tell."""

    # SFP | QSFP | CMIS: whose layout its memory has.
    layout: str
    vendor: str
    part: str
    revision: str
    serial: str
    # A copper cable: it has no light, and measures nothing.
    copper: bool = False
    # Its ends cannot be taken off: the module at the other end has the same serial number.
    cable: bool = False
    temperature_c: float | None = None
    # Those that are in use, by their numbers.
    lanes: Mapping[int, OpticalLane]
    # Lanes that receive no light (loss of signal).
    dark: tuple[int, ...] = ()
    flags: tuple[Flag, ...] = ()


def number(half: bytes, at: int, *, signed: bool = False) -> int:
    """The 16 bits at this place."""
    return int.from_bytes(half[at : at + 2], "big", signed=signed)


def text(half: bytes, first: int, last: int) -> str:
    """The text at these bytes, without what cannot be printed."""
    decoded = half[first : last + 1].decode("latin-1")
    return " ".join("".join(c if " " <= c <= "~" else " " for c in decoded).split())[:_KEPT]


def lanes_of(mask: int) -> tuple[int, ...]:
    """Numbers of the lanes whose bits are set, the lowest bit for lane 1."""
    return tuple(bit + 1 for bit in range(8) if mask >> bit & 1)


# High alarm, low alarm, high warning, low warning: the order in which every layout has them.
GRADES = (("high", True), ("low", True), ("high", False), ("low", False))


def graded(what: str, lane: int, bits: int) -> tuple[Flag, ...]:
    """Flags of four bits, the highest first: high alarm, low alarm, high warning, low warning."""
    return tuple(
        Flag(f"{what}_{side}", lane, alarm)
        for place, (side, alarm) in enumerate(GRADES)
        if bits >> (3 - place) & 1
    )
