"""State of the network interfaces from rtnetlink: a dump at start, then every change."""

import asyncio
import errno
import socket
import struct
from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.readings import Link
from agent.host import Host
from agent.sources.base import Emit

_GROUP_LINK = 1
_DONE, _ERROR, _NEWLINK, _DELLINK, _GETLINK = 3, 2, 16, 17, 18
_REQUEST, _DUMP = 0x1, 0x300
_IFNAME, _MTU, _OPERSTATE, _LINKINFO, _INFO_KIND, _CARRIER_CHANGES = 3, 4, 16, 18, 1, 35
_UP, _SLAVE, _LOWER_UP = 0x1, 0x800, 0x10000
_OPERSTATES = ("unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up")
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_IFINFO = struct.Struct("=BxHiII")  # family, type, index, flags, change
_ATTR = struct.Struct("=HH")
_MESSAGE_BYTES = 65536
_SO_RCVBUFFORCE = 33  # beyond net.core.rmem_max; needs CAP_NET_ADMIN


class NetlinkSource:
    """Emits Link, of the network namespace that the agent runs in."""

    name: ClassVar[str] = "netlink"
    needs: ClassVar[str] = "an rtnetlink socket (no rights needed); /sys/class/net on a recorded machine"

    def __init__(self, host: Host, *, buffer_bytes: int = 4 * 1024 * 1024) -> None:
        self._host = host
        self._buffer_bytes = buffer_bytes  # a full buffer costs a new dump, no more
        self._names: dict[int, str] = {}  # interface index -> name, to see renames and what vanished unseen
        self._dumped: set[int] = set()
        self._seq = 0
        self._dump = 0  # sequence number of the dump in progress; 0: none
        self._again = False  # another dump is wanted when it is done
        self._first = True

    async def run(self, emit: Emit) -> None:
        """Follow the interfaces until cancelled."""
        if not self._host.live:
            raise OSError("netlink: a recorded machine has no rtnetlink socket")
        loop = asyncio.get_running_loop()
        broken: asyncio.Future[None] = loop.create_future()
        with _socket(self._buffer_bytes, groups=_GROUP_LINK) as sock:

            def readable() -> None:
                try:
                    while (data := _receive(sock)) is not None:
                        if not data:  # the kernel dropped messages: ask for the whole state again
                            self._ask(sock)
                        for reading in self._readings(data):
                            emit(reading)
                        if self._again and not self._dump:
                            self._ask(sock)
                except OSError as error:
                    loop.remove_reader(sock)
                    if not broken.done():
                        broken.set_exception(error)

            self._dump = 0
            self._ask(sock)
            loop.add_reader(sock, readable)
            readable()  # the kernel has answered already: nothing that changes from now on is taken for the first state
            try:
                await broken
            finally:
                loop.remove_reader(sock)

    async def once(self, emit: Emit) -> None:
        """The interfaces as they are now."""
        if not self._host.live:
            for link in _from_sysfs(self._host):
                emit(link)
            return
        with _socket(self._buffer_bytes, groups=0) as sock:
            self._first, self._dump = True, 0
            self._ask(sock)
            loop = asyncio.get_running_loop()
            while self._dump:
                for reading in self._readings(await loop.sock_recv(sock, _MESSAGE_BYTES)):
                    emit(reading)

    def _ask(self, sock: socket.socket) -> None:
        self._again = self._dump != 0  # the kernel does one dump at a time
        if self._again:
            return
        self._seq += 1
        self._dump = self._seq & 0xFFFFFFFF or 1
        self._dumped = set()
        body = _IFINFO.pack(0, 0, 0, 0, 0)
        sock.send(_HEADER.pack(_HEADER.size + len(body), _GETLINK, _REQUEST | _DUMP, self._dump, 0) + body)

    def _readings(self, data: bytes) -> Iterator[Link]:
        """The readings in one datagram, which holds one or more messages."""
        now_s = self._host.mono_s()
        offset = 0
        while offset + _HEADER.size <= len(data):
            length, kind, _, seq, _ = _HEADER.unpack_from(data, offset)
            if length < _HEADER.size:
                return
            body = data[offset + _HEADER.size : offset + length]
            offset += (length + 3) & ~3
            of_dump = seq == self._dump and self._dump != 0
            if kind in (_NEWLINK, _DELLINK) and len(body) >= _IFINFO.size:
                yield from self._link(body, kind == _DELLINK, of_dump, now_s)
            elif kind == _ERROR and len(body) >= 4:
                code = -struct.unpack_from("=i", body)[0]
                if code:
                    raise OSError(code, f"rtnetlink: {errno.errorcode.get(code, code)}")
            elif kind == _DONE and of_dump:
                for index in [index for index in self._names if index not in self._dumped]:
                    name = self._names.pop(index)
                    yield Link(
                        name=name, admin_up=False, carrier=False, operstate="", removed=True, mono_s=now_s
                    )
                self._dump, self._first = 0, False

    def _link(self, body: bytes, removed: bool, of_dump: bool, now_s: float) -> Iterator[Link]:
        family, _, index, flags, _ = _IFINFO.unpack_from(body)
        if family != socket.AF_UNSPEC:
            return  # a bridge speaks of its port; the interface itself says it too
        name, operstate, kind, mtu, changes = "", 0, "", 0, None
        for attr, value in _attributes(body, _IFINFO.size):
            if attr == _IFNAME:
                name = value.rstrip(b"\0").decode(errors="replace")
            elif attr == _OPERSTATE and value:
                operstate = value[0]
            elif attr == _MTU and len(value) >= 4:
                mtu = struct.unpack_from("=I", value)[0]
            elif attr == _CARRIER_CHANGES and len(value) >= 4:
                changes = struct.unpack_from("=I", value)[0]
            elif attr == _LINKINFO:
                kind = next(
                    (v.rstrip(b"\0").decode() for a, v in _attributes(value, 0) if a == _INFO_KIND), ""
                )
        if not name:
            return
        known = self._names.get(index, name)
        if of_dump:
            self._dumped.add(index)
        if removed:
            self._names.pop(index, None)
        else:
            self._names[index] = name
            self._dumped.add(index)
        yield Link(
            name=name,
            admin_up=bool(flags & _UP),
            carrier=bool(flags & _LOWER_UP),
            slave=bool(flags & _SLAVE),
            operstate=_OPERSTATES[operstate] if operstate < len(_OPERSTATES) else "unknown",
            kind=kind,
            mtu=mtu,
            carrier_changes=changes,
            removed=removed,
            first=of_dump and self._first,
            before=known if known != name else "",
            mono_s=now_s,
        )


def _socket(buffer_bytes: int, *, groups: int) -> socket.socket:
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    sock.setblocking(False)
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, buffer_bytes)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    sock.bind((0, groups))
    return sock


def _receive(sock: socket.socket) -> bytes | None:
    """A datagram; None when there is none yet; empty when the kernel dropped some (ENOBUFS)."""
    try:
        return sock.recv(_MESSAGE_BYTES)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno == errno.ENOBUFS:
            return b""
        raise


def _attributes(data: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    while offset + _ATTR.size <= len(data):
        length, kind = _ATTR.unpack_from(data, offset)
        if length < _ATTR.size:
            return
        yield kind & 0x3FFF, data[offset + _ATTR.size : offset + length]
        offset += (length + 3) & ~3


def _from_sysfs(host: Host) -> Iterator[Link]:
    for name in host.listdir("/sys/class/net"):
        folder = f"/sys/class/net/{name}"
        text = host.read(f"{folder}/flags")
        flags = int(text, 16) if text.startswith("0x") else 0
        yield Link(
            name=name,
            admin_up=bool(flags & _UP),
            slave=bool(flags & _SLAVE),
            carrier=host.read(f"{folder}/carrier") == "1",  # EINVAL while it is set down
            operstate=host.read(f"{folder}/operstate", "unknown"),
            mtu=int(mtu) if (mtu := host.read(f"{folder}/mtu")).isdigit() else 0,
            first=True,
            mono_s=host.mono_s(),
        )
