"""The few calls of rtnetlink that actions need: the state of an interface, setting it up or down, its MTU, its master,
a bond's active slave, and which interface leads to an address.

Own code rather than `ip`: no package needed, and no output to parse. Calls block for as long as the driver takes
(seconds, for some NICs): run them in a thread.
"""

import errno
import ipaddress
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from agent.shared import rtnetlink_wire as wire

_ROUTE_DST, _ROUTE_OIF = 1, 4
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_BOND_ACTIVE_SLAVE = 2
_LINK_SCOPE, _PERMANENT = 253, 0x80
_ROUTE = struct.Struct("=BBBBBBBBI")  # family, dst_len, src_len, tos, table, protocol, scope, type, flags
_ADDRESS = struct.Struct("=BBBBI")  # family, prefix length, flags, scope, index
_NAME_BYTES = 15
_ANSWER_S = 30.0  # firmware that hangs holds the lock for longer than this


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """The state of a network interface."""

    name: str
    # It is set up.
    up: bool
    # The other end is there.
    carrier: bool
    # The kernel lets packets through: it may take a second to act on a carrier.
    running: bool
    loopback: bool
    mtu: int
    # Bytes; 0: the kernel does not say.
    min_mtu: int
    # Bytes; 0: no limit, or the kernel does not say.
    max_mtu: int
    # The bond or bridge that it belongs to; empty: none.
    master: str


def interface(name: str) -> Interface:
    """The interface's state now; OSError (ENODEV) when there is none."""
    answer = call(wire.GETLINK, 0, wire.IFINFO.pack(0, 0, _index(name), 0, 0))
    _, _, _, flags, _ = wire.IFINFO.unpack_from(answer)
    values = dict(wire.attributes(answer, wire.IFINFO.size))
    master = wire.number(values.get(wire.MASTER, b""))
    return Interface(
        name=name,
        up=bool(flags & wire.UP),
        carrier=bool(flags & wire.LOWER_UP),
        running=bool(flags & wire.RUNNING) and bool(flags & wire.LOWER_UP),
        loopback=bool(flags & wire.LOOPBACK),
        mtu=wire.number(values.get(wire.MTU, b"")),
        min_mtu=wire.number(values.get(wire.MIN_MTU, b"")),
        max_mtu=wire.number(values.get(wire.MAX_MTU, b"")),
        master=socket.if_indextoname(master) if master else "",
    )


def set_up(name: str, up: bool) -> None:
    """Sets the interface up or down and returns when the kernel has done it; OSError (ENODEV, EPERM, ...)."""
    flags = wire.UP if up else 0
    call(wire.NEWLINK, wire.ACK, wire.IFINFO.pack(0, 0, _index(name), flags, wire.UP))


def set_mtu(name: str, mtu: int) -> None:
    """Sets the interface's MTU, bytes; OSError (EINVAL: outside the device's limits, ...)."""
    _set(name, wire.attribute(wire.MTU, struct.pack("=I", mtu)))


def set_master(name: str, master: str) -> None:
    """Makes the interface a slave of a bond (it must be set down) or a port of a bridge; OSError."""
    _set(name, wire.attribute(wire.MASTER, struct.pack("=I", _index(master))))


def set_active_slave(bond: str, slave: str) -> None:
    """Makes a slave of an active-backup bond the active one; OSError."""
    data = wire.attribute(_BOND_ACTIVE_SLAVE, struct.pack("=I", _index(slave)))
    info = wire.attribute(wire.INFO_KIND, b"bond") + wire.attribute(wire.INFO_DATA, data)
    _set(bond, wire.attribute(wire.LINKINFO, info))


def addresses(*, lasting: bool = True) -> dict[str, list[str]]:
    """Interface → its permanent IP addresses, as `10.0.0.1/24`; OSError. Link-local addresses are left out, and so are those
    with a lifetime (DHCP, IPv6 autoconfiguration) where only `lasting` ones are wanted.
    """
    found: dict[str, list[str]] = {}
    for body in _exchange(wire.GETADDR, wire.DUMP, _ADDRESS.pack(0, 0, 0, 0, 0)):
        _, length, flags, scope, index = _ADDRESS.unpack_from(body)
        values = dict(wire.attributes(body, _ADDRESS.size))
        raw = values.get(_IFA_LOCAL) or values.get(_IFA_ADDRESS)
        if raw is not None and scope != _LINK_SCOPE and (flags & _PERMANENT or not lasting):
            try:
                name = socket.if_indextoname(index)
            except OSError:  # it was removed meanwhile
                continue
            found.setdefault(name, []).append(f"{ipaddress.ip_address(raw)}/{length}")
    return found


def interface_to(address: str) -> str:
    """Name of the interface by which packets to this IP address leave; OSError when there is no route."""
    ip = ipaddress.ip_address(address)
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    route = _ROUTE.pack(family, ip.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
    answer = call(wire.GETROUTE, 0, route + wire.attribute(_ROUTE_DST, ip.packed))
    index = wire.number(dict(wire.attributes(answer, _ROUTE.size)).get(_ROUTE_OIF, b""))
    if not index:
        raise OSError(f"the kernel names no interface on the way to {address}")
    return socket.if_indextoname(index)


def _index(name: str) -> int:
    if len(name.encode()) > _NAME_BYTES:
        raise OSError(errno.ENODEV, "no interface has so long a name")  # truncated, it might name another one
    return socket.if_nametoindex(name)


def _set(name: str, attributes: bytes) -> None:
    call(wire.NEWLINK, wire.ACK, wire.IFINFO.pack(0, 0, _index(name), 0, 0) + attributes)


def call(kind: int, flags: int, body: bytes, protocol: int = socket.NETLINK_ROUTE) -> bytes:
    """The body of the answer to one request; empty for an acknowledgement. OSError: the kernel's."""
    return next(_exchange(kind, flags, body, protocol), b"")


def _exchange(kind: int, flags: int, body: bytes, protocol: int = socket.NETLINK_ROUTE) -> Iterator[bytes]:
    """The bodies of all answers to one request."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol) as sock:
        sock.settimeout(_ANSWER_S)
        sock.bind((0, 0))
        sock.send(wire.request(kind, flags, body, 1))
        while True:
            for answer, _, content in wire.messages(sock.recv(wire.MESSAGE_BYTES)):
                if answer == wire.ERROR:
                    wire.raise_error(content)
                    return
                if answer == wire.DONE:
                    return
                yield content
            if not flags & wire.DUMP:
                return
