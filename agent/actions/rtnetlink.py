"""The few words of rtnetlink that actions need: set an interface up or down, and ask which one leads to an
address.

Own code rather than `ip`: no package needed, and no parsing. Calls block for as long as the driver takes
(a NIC may take seconds): run them in a thread.
"""

import ipaddress
import os
import socket
import struct
from collections.abc import Iterator

_ERROR, _NEWLINK, _NEWROUTE, _GETROUTE = 2, 16, 24, 26
_REQUEST, _ACK = 0x1, 0x4
_DST, _OIF = 1, 4
_UP = 0x1
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_IFINFO = struct.Struct("=BxHiII")  # family, type, index, flags, change
_ROUTE = struct.Struct("=BBBBBBBBI")  # family, dst_len, src_len, tos, table, protocol, scope, type, flags
_ATTR = struct.Struct("=HH")
_ANSWER_S = 30.0  # a firmware that hangs holds the lock longer than this


def set_up(name: str, up: bool) -> None:
    """Sets the interface up or down and returns when the kernel has done it; OSError (ENODEV, EPERM, ...)."""
    index = socket.if_nametoindex(name)
    _ask(_NEWLINK, _ACK, _IFINFO.pack(0, 0, index, _UP if up else 0, _UP))


def interface_to(address: str) -> str:
    """Name of the interface by which packets to this IP address leave; OSError when there is no route."""
    ip = ipaddress.ip_address(address)
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    body = (
        _ROUTE.pack(family, ip.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
        + _ATTR.pack(4 + len(ip.packed), _DST)
        + ip.packed
    )
    answer = _ask(_GETROUTE, 0, body)
    for kind, value in _attributes(answer, _ROUTE.size):
        if kind == _OIF:
            return socket.if_indextoname(struct.unpack("=i", value[:4])[0])
    raise OSError(f"the kernel names no interface on the way to {address}")


def _ask(kind: int, flags: int, body: bytes) -> bytes:
    """Sends one request; the body of its answer (empty for an acknowledgement)."""
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
    ) as sock:
        sock.settimeout(_ANSWER_S)
        sock.bind((0, 0))
        sock.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | flags, 1, 0) + body)
        data = sock.recv(65536)
    length, answer, _, _, _ = _HEADER.unpack_from(data)
    content = data[_HEADER.size : length]
    if answer == _ERROR:
        code = -struct.unpack_from("=i", content)[0]
        if code:
            raise OSError(code, f"rtnetlink: {os.strerror(code)}")
        return b""
    return content


def _attributes(data: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    while offset + _ATTR.size <= len(data):
        length, kind = _ATTR.unpack_from(data, offset)
        if length < _ATTR.size:
            return
        yield kind & 0x3FFF, data[offset + _ATTR.size : offset + length]
        offset += (length + 3) & ~3
