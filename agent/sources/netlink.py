"""State of the network interfaces from rtnetlink: a dump at start, then every change."""

import asyncio
import errno
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from agent.collectors.samples import LinkState
from agent.host import Host
from agent.shared import rtnetlink_wire as wire
from agent.sources.base import Emit, Source, SourceSetup

_GROUP_LINK = 1
_OPERSTATES = ("unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up")
_SO_RCVBUFFORCE = 33  # beyond net.core.rmem_max; needs CAP_NET_ADMIN


@dataclass(slots=True, kw_only=True)
class _Look:
    """The whole state is asked for out of turn."""

    emit: Emit
    done: asyncio.Future[None]
    # Dumps that must have ended since.
    dumps: int


class NetlinkSource(Source):
    """Emits LinkState, of the network namespace that the agent runs in."""

    name: ClassVar[str] = "netlink"
    needs: ClassVar[str] = "an rtnetlink socket (no privileges needed); /sys/class/net on a recorded machine"

    def __init__(self, host: Host, *, buffer_bytes: int = 4 * 1024 * 1024) -> None:
        self._host = host
        # A full buffer costs a new dump, no more.
        self._buffer_bytes = buffer_bytes
        # Interface index → name, to see renames and what vanished without a message.
        self._names: dict[int, str] = {}
        # While it is followed.
        self._sock: socket.socket | None = None
        self._dumped: set[int] = set()
        self._seq = 0
        # Sequence number of the dump in progress; 0: none.
        self._dump = 0
        # Another dump is needed when it is done.
        self._again = False
        self._first = True
        self._look: _Look | None = None

    @classmethod
    def of(cls, setup: SourceSetup) -> Self:
        """See Source."""
        return cls(setup.host)

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
                        if not data:  # the kernel dropped messages: request the whole state again
                            self._request_dump(sock)
                        take = emit if self._look is None else self._look.emit
                        for sample in self._samples(data):
                            take(sample)
                        if self._again and not self._dump:
                            self._request_dump(sock)
                except OSError as error:
                    loop.remove_reader(sock)
                    if not broken.done():
                        broken.set_exception(error)

            self._dump = 0
            self._request_dump(sock)
            loop.add_reader(sock, readable)
            self._sock = sock
            readable()  # the kernel has answered already: no change from now on is taken for the first state
            try:
                await broken
            finally:
                self._sock = None
                loop.remove_reader(sock)

    async def look(self, emit: Emit) -> None:
        """See Source: a dump that begins now."""
        if self._sock is None:
            raise OSError("netlink: the socket is not open")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._look = _Look(emit=emit, done=done, dumps=2 if self._dump else 1)
        try:
            self._request_dump(self._sock)
            await done
        finally:
            self._look = None

    async def once(self, emit: Emit) -> None:
        """The interfaces as they are now."""
        if not self._host.live:
            for link in _from_sysfs(self._host):
                emit(link)
            return
        with _socket(self._buffer_bytes, groups=0) as sock:
            self._first, self._dump = True, 0
            self._request_dump(sock)
            loop = asyncio.get_running_loop()
            while self._dump:
                for sample in self._samples(await loop.sock_recv(sock, wire.MESSAGE_BYTES)):
                    emit(sample)

    def _request_dump(self, sock: socket.socket) -> None:
        self._again = self._dump != 0  # the kernel does one dump at a time
        if self._again:
            return
        self._seq += 1
        self._dump = self._seq & 0xFFFFFFFF or 1
        self._dumped = set()
        body = wire.IFINFO.pack(0, 0, 0, 0, 0)
        sock.send(wire.request(wire.GETLINK, wire.DUMP, body, self._dump))

    def _samples(self, data: bytes) -> Iterator[LinkState]:
        """The samples in one datagram, which holds one or more messages."""
        now_s = self._host.mono_s()
        for kind, sequence, body in wire.messages(data):
            of_dump = sequence == self._dump and self._dump != 0
            if kind in (wire.NEWLINK, wire.DELLINK) and len(body) >= wire.IFINFO.size:
                yield from self._link(body, kind == wire.DELLINK, of_dump, now_s)
            elif kind == wire.ERROR and len(body) >= 4:
                wire.raise_error(body)
            elif kind == wire.DONE and of_dump:
                for index in [index for index in self._names if index not in self._dumped]:
                    name = self._names.pop(index)
                    yield LinkState(
                        name=name, admin_up=False, carrier=False, operstate="", removed=True, mono_s=now_s
                    )
                self._dump, self._first = 0, False
                if self._look is not None:
                    self._look.dumps -= 1
                    if not self._look.dumps and not self._look.done.done():
                        self._look.done.set_result(None)

    def _link(self, body: bytes, removed: bool, of_dump: bool, now_s: float) -> Iterator[LinkState]:
        family, _, index, flags, _ = wire.IFINFO.unpack_from(body)
        if family != socket.AF_UNSPEC:
            return  # a bridge about its port; the kernel sends the same about the interface itself
        values = dict(wire.attributes(body, wire.IFINFO.size))
        info = dict(wire.attributes(values.get(wire.LINKINFO, b"")))
        name = wire.text(values.get(wire.IFNAME, b""))
        operstate = int.from_bytes(values.get(wire.OPERSTATE, b"")[:1], "little")
        changes = values.get(wire.CARRIER_CHANGES)
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
        yield LinkState(
            name=name,
            admin_up=bool(flags & wire.UP),
            carrier=bool(flags & wire.LOWER_UP),
            slave=bool(flags & wire.SLAVE),
            operstate=_OPERSTATES[operstate] if operstate < len(_OPERSTATES) else "unknown",
            kind=wire.text(info.get(wire.INFO_KIND, b"")),
            mtu=wire.number(values.get(wire.MTU, b"")),
            carrier_changes=None if changes is None else wire.number(changes),
            removed=removed,
            moved=removed and (wire.NEW_NETNSID in values or wire.NEW_IFINDEX in values),
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
        return sock.recv(wire.MESSAGE_BYTES)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno == errno.ENOBUFS:
            return b""
        raise


def _from_sysfs(host: Host) -> Iterator[LinkState]:
    for name in host.listdir("/sys/class/net"):
        folder = f"/sys/class/net/{name}"
        text = host.read(f"{folder}/flags")
        flags = int(text, 16) if text.startswith("0x") else 0
        yield LinkState(
            name=name,
            admin_up=bool(flags & wire.UP),
            slave=bool(flags & wire.SLAVE),
            carrier=host.read(f"{folder}/carrier") == "1",  # EINVAL while it is set down
            operstate=host.read(f"{folder}/operstate", "unknown"),
            mtu=int(mtu) if (mtu := host.read(f"{folder}/mtu")).isdigit() else 0,
            first=True,
            mono_s=host.mono_s(),
        )
