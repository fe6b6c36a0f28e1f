"""The file `rate` of an InfiniBand or RoCE port, as the kernel prints it: `400 Gb/sec (4X NDR)`."""

import re
from dataclasses import dataclass

_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?) Gb/sec(?: \(([0-9]{1,2})X(?: ([A-Z0-9]{2,5}))?\))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class IbSpeed:
    """What a port can carry; never 0."""

    gbps: float
    # Lanes; 0: not known.
    lanes: int = 0
    # SDR, ..., XDR; empty: not known.
    generation: str = ""


def ib_speed(text: str) -> IbSpeed | None:
    """None where the file says nothing: a driver that knows no rate writes 0."""
    match = _RATE.match(text)
    if match is None or not float(match[1]):
        return None
    return IbSpeed(gbps=float(match[1]), lanes=int(match[2] or 0), generation=match[3] or "")
