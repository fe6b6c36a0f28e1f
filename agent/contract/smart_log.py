"""The SMART / Health Information log of an NVMe controller, as its 512 bytes tell it.

NVM Express Base Specification 2.0, "SMART / Health Information (Log Identifier 02h)": little endian; temperatures in kelvin,
shares in percent, times in minutes.
"""

import struct
from dataclasses import dataclass

PAGE = 0x02  # Log Identifier
PAGE_BYTES = 512
# Critical Warning, temperature (K), available spare, its threshold, percentage used; the counters stand apart.
_HEAD = struct.Struct("<BHBBB")
_MEDIA_ERRORS = slice(160, 176)
_CRITICAL_MIN = struct.Struct("<I")
_CRITICAL_MIN_AT = 196
# Bits of Critical Warning.
_SPARE, _TEMPERATURE, _UNRELIABLE, _READ_ONLY, _BACKUP, _PERSISTENT_MEMORY = range(6)
_ZERO_C = 273  # in kelvin, as the specification rounds
_MOST = 2**53 - 1  # what any reader of JSON keeps exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class SmartLog:
    """What the controller says of its disk."""

    # Its Critical Warning, bit by bit.
    spare_warning: bool
    # Above its upper, or below its lower threshold.
    temperature_warning: bool
    # Its subsystem is less reliable for media errors or an internal error.
    unreliable: bool
    read_only: bool
    # The volatile memory backup device (its capacitors) has failed, or its persistent memory is read-only or unreliable.
    unprotected: bool
    temperature_c: int
    # Spare capacity that is left, of what it had when it was new; below the threshold the maker wants it replaced.
    spare_percent: int
    spare_threshold_percent: int
    # Of the life that its maker expects: may be above 100, and stops at 255.
    used_percent: int
    # Since it was made: unrecovered errors of data, and minutes at or above its critical temperature.
    media_errors: int
    critical_min: int


def smart_log(page: bytes) -> SmartLog:
    """Reads a page of PAGE_BYTES; ValueError for one of another length."""
    if len(page) != PAGE_BYTES:
        raise ValueError(f"a SMART / Health log has {PAGE_BYTES} bytes, not {len(page)}")
    warning, kelvin, spare, threshold, used = _HEAD.unpack_from(page)

    def set_(bit: int) -> bool:
        return bool(warning >> bit & 1)

    return SmartLog(
        spare_warning=set_(_SPARE),
        temperature_warning=set_(_TEMPERATURE),
        unreliable=set_(_UNRELIABLE),
        read_only=set_(_READ_ONLY),
        unprotected=set_(_BACKUP) or set_(_PERSISTENT_MEMORY),
        temperature_c=kelvin - _ZERO_C,
        spare_percent=spare,
        spare_threshold_percent=threshold,
        used_percent=used,
        media_errors=min(_MOST, int.from_bytes(page[_MEDIA_ERRORS], "little")),
        critical_min=_CRITICAL_MIN.unpack_from(page, _CRITICAL_MIN_AT)[0],
    )
