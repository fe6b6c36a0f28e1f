"""The wall clock as the kernel disciplines it, by adjtimex: it tells whether something synchronises this machine's clock."""

import ctypes
from dataclasses import dataclass

# include/uapi/linux/timex.h
_STA_UNSYNC, _STA_NANO, _TIME_ERROR = 0x0040, 0x2000, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockDiscipline:
    """The answer of adjtimex."""

    synchronised: bool
    # What the kernel is still slewing away
    offset_s: float
    max_error_s: float


class _Timex(ctypes.Structure):
    """struct timex of 64-bit Linux."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        *((name, ctypes.c_long) for name in ("offset", "freq", "maxerror", "esterror")),
        ("status", ctypes.c_int),
        *((name, ctypes.c_long) for name in ("constant", "precision", "tolerance", "sec", "usec", "tick")),
        *((name, ctypes.c_long) for name in ("ppsfreq", "jitter")),
        ("shift", ctypes.c_int),
        *((name, ctypes.c_long) for name in ("stabil", "jitcnt", "calcnt", "errcnt", "stbcnt")),
        ("tai", ctypes.c_int),
        ("reserved", ctypes.c_int * 11),
    )


def read() -> ClockDiscipline | None:
    """Returns it, which changes nothing and needs no privileges; None: the kernel does not tell."""
    timex = _Timex()
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    if state < 0:
        return None
    return ClockDiscipline(
        synchronised=state != _TIME_ERROR and not timex.status & _STA_UNSYNC,
        offset_s=timex.offset / (1e9 if timex.status & _STA_NANO else 1e6),
        max_error_s=timex.maxerror / 1e6,
    )
