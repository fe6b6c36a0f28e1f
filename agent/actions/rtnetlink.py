"""The few words of rtnetlink that actions need: how an interface is, set it up or down, its MTU, its master, a bond's
active slave, and which one leads to an address.

Own code rather than `ip`: no package needed, and no parsing. Calls block for as long as the driver takes
(a NIC may take seconds): run them in a thread.
"""

import errno
import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_ERROR, _DONE, _NEWLINK, _GETLINK, _GETADDR, _NEWROUTE, _GETROUTE = 2, 3, 16, 18, 22, 24, 26
_REQUEST, _ACK, _DUMP = 0x1, 0x4, 0x300
_DST, _OIF = 1, 4
# include/uapi/linux/if_link.h
_MTU, _MASTER, _LINKINFO, _MIN_MTU, _MAX_MTU = 4, 10, 18, 50, 51
_INFO_KIND, _INFO_DATA, _BOND_ACTIVE_SLAVE = 1, 2, 2
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_UP, _LOOPBACK, _RUNNING, _LOWER_UP = 0x1, 0x8, 0x40, 0x10000
_LINK_SCOPE, _PERMANENT = 253, 0x80
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_IFINFO = struct.Struct("=BxHiII")  # family, type, index, flags, change
_ROUTE = struct.Struct("=BBBBBBBBI")  # family, dst_len, src_len, tos, table, protocol, scope, type, flags
_ADDRESS = struct.Struct("=BBBBI")  # family, prefix length, flags, scope, index
_ATTR = struct.Struct("=HH")
_NAME_BYTES = 15
_ANSWER_S = 30.0  # a firmware that hangs holds the lock longer than this


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """How an interface is."""

    name: str
    up: bool  # it is set up
    carrier: bool  # its other end is there
    running: bool  # and the kernel lets packets through: it may think about a carrier for a second
    loopback: bool
    mtu: int  # bytes
    min_mtu: int  # bytes; 0: the kernel does not say
    max_mtu: int  # bytes; 0: no limit, or the kernel does not say
    master: str  # the bond or bridge that it belongs to; empty: none


def link(name: str) -> Link:
    """How the interface is now; OSError (ENODEV) when there is none."""
    answer = _ask(_GETLINK, 0, _IFINFO.pack(0, 0, _index(name), 0, 0))
    _, _, _, flags, _ = _IFINFO.unpack_from(answer)
    words = {
        kind: struct.unpack("=I", value[:4])[0]
        for kind, value in _attributes(answer, _IFINFO.size)
        if kind in (_MTU, _MIN_MTU, _MAX_MTU, _MASTER)
    }
    return Link(
        name=name,
        up=bool(flags & _UP),
        carrier=bool(flags & _LOWER_UP),
        running=bool(flags & _RUNNING) and bool(flags & _LOWER_UP),
        loopback=bool(flags & _LOOPBACK),
        mtu=words.get(_MTU, 0),
        min_mtu=words.get(_MIN_MTU, 0),
        max_mtu=words.get(_MAX_MTU, 0),
        master=socket.if_indextoname(words[_MASTER]) if words.get(_MASTER) else "",
    )


def set_up(name: str, up: bool) -> None:
    """Sets the interface up or down and returns when the kernel has done it; OSError (ENODEV, EPERM, ...)."""
    _ask(_NEWLINK, _ACK, _IFINFO.pack(0, 0, _index(name), _UP if up else 0, _UP))


def set_mtu(name: str, mtu: int) -> None:
    """Sets the interface's MTU, bytes; OSError (EINVAL: not within the device's limits, ...)."""
    _set(name, _attribute(_MTU, struct.pack("=I", mtu)))


def set_master(name: str, master: str) -> None:
    """Makes the interface a slave of a bond (it must be set down) or a port of a bridge; OSError."""
    _set(name, _attribute(_MASTER, struct.pack("=I", _index(master))))


def set_active_slave(bond: str, slave: str) -> None:
    """Makes a slave of an active-backup bond the active one; OSError."""
    data = _attribute(_BOND_ACTIVE_SLAVE, struct.pack("=I", _index(slave)))
    _set(bond, _attribute(_LINKINFO, _attribute(_INFO_KIND, b"bond") + _attribute(_INFO_DATA, data)))


def addresses() -> dict[str, list[str]]:
    """Interface → the IP addresses that were given it for good, as `10.0.0.1/24`; OSError. Those of its own link and
    those with a lifetime (DHCP, IPv6 autoconfiguration) are left out.
    """
    found: dict[str, list[str]] = {}
    for body in _dump(_GETADDR, _ADDRESS.pack(0, 0, 0, 0, 0)):
        _, length, flags, scope, index = _ADDRESS.unpack_from(body)
        values = dict(_attributes(body, _ADDRESS.size))
        raw = values.get(_IFA_LOCAL) or values.get(_IFA_ADDRESS)
        if raw is not None and scope != _LINK_SCOPE and flags & _PERMANENT:
            try:
                name = socket.if_indextoname(index)
            except OSError:  # it went meanwhile
                continue
            found.setdefault(name, []).append(f"{ipaddress.ip_address(raw)}/{length}")
    return found


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


def _index(name: str) -> int:
    if len(name.encode()) > _NAME_BYTES:
        raise OSError(errno.ENODEV, "no interface has so long a name")  # cut short it could be another one's
    return socket.if_nametoindex(name)


def _set(name: str, attributes: bytes) -> None:
    _ask(_NEWLINK, _ACK, _IFINFO.pack(0, 0, _index(name), 0, 0) + attributes)


def _attribute(kind: int, value: bytes) -> bytes:
    return (_ATTR.pack(_ATTR.size + len(value), kind) + value).ljust(
        (_ATTR.size + len(value) + 3) & ~3, b"\0"
    )


def _ask(kind: int, flags: int, body: bytes) -> bytes:
    """Sends one request; the body of its answer (empty for an acknowledgement)."""
    for answer in _exchange(kind, flags, body):
        return answer
    return b""


def _dump(kind: int, body: bytes) -> Iterator[bytes]:
    """The bodies of all answers to one request."""
    yield from _exchange(kind, _DUMP, body)


def _exchange(kind: int, flags: int, body: bytes) -> Iterator[bytes]:
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
    ) as sock:
        sock.settimeout(_ANSWER_S)
        sock.bind((0, 0))
        sock.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | flags, 1, 0) + body)
        while True:
            data = sock.recv(65536)
            while len(data) >= _HEADER.size:
                length, answer, _, _, _ = _HEADER.unpack_from(data)
                content, data = data[_HEADER.size : length], data[(length + 3) & ~3 :]
                if answer == _ERROR:
                    code = -struct.unpack_from("=i", content)[0]
                    if code:
                        raise OSError(code, f"rtnetlink: {os.strerror(code)}")
                    return
                if answer == _DONE:
                    return
                yield content
            if not flags & _DUMP:
                return


def _attributes(data: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    while offset + _ATTR.size <= len(data):
        length, kind = _ATTR.unpack_from(data, offset)
        if length < _ATTR.size:
            return
        yield kind & 0x3FFF, data[offset + _ATTR.size : offset + length]
        offset += (length + 3) & ~3
