"""The memory of the pluggable module of a network interface, half a page at a time, through the kernel's ethtool family of
generic netlink (Documentation/networking/ethtool-netlink.rst, MODULE_EEPROM_GET; Linux 5.13). Needs CAP_NET_ADMIN.
"""

import errno
import struct
from functools import lru_cache

from agent.contract.optics_module import HALF_BYTES, Half
from agent.shared import rtnetlink
from agent.shared import rtnetlink_wire as wire

_GENERIC = 16  # NETLINK_GENERIC
_CONTROL, _GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 16, 3, 1, 2  # include/uapi/linux/genetlink.h
_HEADER = struct.Struct("=BBH")  # struct genlmsghdr: command, version, reserved
_MODULE_EEPROM_GET = 31  # include/uapi/linux/ethtool_netlink.h
_DEVICE, _DEVICE_NAME = 1, 2
_OFFSET, _LENGTH, _PAGE, _BANK, _ADDRESS, _DATA = range(2, 8)
_NESTED = 0x8000
_NAME_BYTES = 15


def read_half(link: str, half: Half) -> bytes:
    """128 bytes; blocks for as long as driver and module take, in which the kernel's lock of all interfaces is held.

    OSError: there is no interface or no module (ENODEV, EIO, ...), the driver has no such memory (EOPNOTSUPP), the kernel is
    older. PermissionError: we may not ask.
    """
    if len(link.encode()) > _NAME_BYTES:
        raise OSError(errno.ENODEV, f"{link}: not a name of an interface")
    answer = rtnetlink.call(_family(), 0, request(link, half), _GENERIC)
    data = dict(wire.attributes(answer, _HEADER.size)).get(_DATA, b"")
    if len(data) != HALF_BYTES:
        raise OSError(errno.EIO, f"{link}: {len(data)} bytes of its module came, not {HALF_BYTES}")
    return data


def request(link: str, half: Half) -> bytes:
    """The body of a request."""
    device = wire.attribute(_DEVICE_NAME, link.encode() + b"\0")
    return (
        _HEADER.pack(_MODULE_EEPROM_GET, 1, 0)
        + wire.attribute(_DEVICE | _NESTED, device)
        + wire.attribute(_OFFSET, struct.pack("=I", half.offset))
        + wire.attribute(_LENGTH, struct.pack("=I", HALF_BYTES))
        + wire.attribute(_PAGE, bytes((half.page,)))
        + wire.attribute(_BANK, b"\0")
        + wire.attribute(_ADDRESS, bytes((half.address,)))
    )


@lru_cache(maxsize=1)
def _family() -> int:
    """The number that this kernel has given to its ethtool family; OSError (ENOENT): it has none."""
    body = _HEADER.pack(_GET_FAMILY, 1, 0) + wire.attribute(_FAMILY_NAME, b"ethtool\0")
    values = dict(wire.attributes(rtnetlink.call(_CONTROL, 0, body, _GENERIC), _HEADER.size))
    return int(struct.unpack_from("=H", values[_FAMILY_ID])[0])
