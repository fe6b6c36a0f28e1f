"""The SMART / Health Information log of an NVMe controller, as its 512 bytes tell it.

NVM Express Base Specification 2.0, "SMART / Health Information (Log Identifier 02h)": little endian; temperatures in kelvin,
shares in percent, times in minutes. Firmware that fails hands over a page that it has not filled, or fields of all ones: such a
page is none, and such a field tells nothing.
"""

from dataclasses import dataclass

PAGE = 0x02  # Log Identifier
PAGE_BYTES = 512
# Where its fields are.
_WARNING, _KELVIN, _SPARE_LEFT, _THRESHOLD, _USED = 0, slice(1, 3), 3, 4, 5
_MEDIA_ERRORS, _CRITICAL_MIN = slice(160, 176), slice(196, 200)
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
    # None: it does not measure it (0 K).
    temperature_c: int | None
    # Spare capacity that is left, of what it had when it was new; below the threshold the maker wants it replaced.
    spare_percent: int
    spare_threshold_percent: int
    # Of the life that its maker expects: may be above 100, and stops at 255.
    used_percent: int
    # Since it was made: unrecovered errors of data, and minutes at or above its critical temperature.
    # None: it does not count them.
    media_errors: int | None
    critical_min: int | None


def smart_log(page: bytes) -> SmartLog | None:
    """Reads a page of PAGE_BYTES; None: no controller has filled it, as all its bytes are alike. ValueError for one of another
    length.
    """
    if len(page) != PAGE_BYTES:
        raise ValueError(f"a SMART / Health log has {PAGE_BYTES} bytes, not {len(page)}")
    if page == page[:1] * PAGE_BYTES:
        return None

    def set_(bit: int) -> bool:
        return bool(page[_WARNING] >> bit & 1)

    def number(field: slice) -> int:
        return int.from_bytes(page[field], "little")

    def count(field: slice) -> int | None:
        return None if set(page[field]) == {0xFF} else min(_MOST, number(field))

    kelvin = count(_KELVIN)
    return SmartLog(
        spare_warning=set_(_SPARE),
        temperature_warning=set_(_TEMPERATURE),
        unreliable=set_(_UNRELIABLE),
        read_only=set_(_READ_ONLY),
        unprotected=set_(_BACKUP) or set_(_PERSISTENT_MEMORY),
        temperature_c=kelvin - _ZERO_C if kelvin else None,
        spare_percent=page[_SPARE_LEFT],
        spare_threshold_percent=page[_THRESHOLD],
        used_percent=page[_USED],
        media_errors=count(_MEDIA_ERRORS),
        critical_min=count(_CRITICAL_MIN),
    )
