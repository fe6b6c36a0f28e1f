"""How rtnetlink messages are laid out (include/uapi/linux/netlink.h, rtnetlink.h, if_link.h): headers and attributes,
packed and read. No sockets here.
"""

import os
import struct
from collections.abc import Iterator

ERROR, DONE, NEWLINK, DELLINK, GETLINK, GETADDR, GETROUTE = 2, 3, 16, 17, 18, 22, 26
REQUEST, ACK, DUMP = 0x1, 0x4, 0x300
MESSAGE_BYTES = 65536

# Interface flags.
UP, LOOPBACK, RUNNING, SLAVE, LOWER_UP = 0x1, 0x8, 0x40, 0x800, 0x10000

# Attributes of an interface, and inside IFLA_LINKINFO.
IFNAME, MTU, MASTER, OPERSTATE, LINKINFO, CARRIER_CHANGES, MIN_MTU, MAX_MTU = 3, 4, 10, 16, 18, 35, 50, 51
NEW_NETNSID, NEW_IFINDEX = 45, 49  # in the DELLINK of an interface that goes on in another network namespace
INFO_KIND, INFO_DATA = 1, 2

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence number, port
IFINFO = struct.Struct("=BxHiII")  # family, type, index, flags, change
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_TYPE_MASK = 0x3FFF  # the two bits above say "nested" and "network byte order"


def request(kind: int, flags: int, body: bytes, sequence: int) -> bytes:
    """A request to the kernel."""
    return _HEADER.pack(_HEADER.size + len(body), kind, REQUEST | flags, sequence, 0) + body


def messages(datagram: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Type, sequence number and body of each message in a datagram; stops at one that is broken."""
    offset = 0
    while offset + _HEADER.size <= len(datagram):
        length, kind, _, sequence, _ = _HEADER.unpack_from(datagram, offset)
        if length < _HEADER.size:
            return
        yield kind, sequence, datagram[offset + _HEADER.size : offset + length]
        offset += _aligned(length)


def raise_error(body: bytes) -> None:
    """Raises the OSError that the body of an ERROR message reports; returns when it is an acknowledgement."""
    code = -struct.unpack_from("=i", body)[0]
    if code:
        raise OSError(code, f"rtnetlink: {os.strerror(code)}")


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute, padded."""
    length = _ATTRIBUTE.size + len(value)
    return (_ATTRIBUTE.pack(length, kind) + value).ljust(_aligned(length), b"\0")


def attributes(data: bytes, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """Type and value of each attribute from `offset` on; stops at one that is broken."""
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            return
        yield kind & _TYPE_MASK, data[offset + _ATTRIBUTE.size : offset + length]
        offset += _aligned(length)


def number(value: bytes) -> int:
    """A 32-bit attribute; 0 when it is too short."""
    return int(struct.unpack_from("=I", value)[0]) if len(value) >= 4 else 0


def text(value: bytes) -> str:
    """A zero-terminated attribute."""
    return value.rstrip(b"\0").decode(errors="replace")


def _aligned(length: int) -> int:
    return (length + 3) & ~3
