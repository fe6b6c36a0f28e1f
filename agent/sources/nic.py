"""Counters of network interfaces as `ethtool -S` reads them: three ioctls, no program.

Only of RDMA-capable Ethernet interfaces, or those that the configuration names: reading all counters of a driver takes
a few milliseconds with its lock held.
"""

import array
import errno
import fcntl
import socket
import struct
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors import nic
from agent.collectors.samples import Sample
from agent.collectors.samples_node import NicCounters
from agent.config import IB_ROOT
from agent.host import Host
from agent.options import option
from agent.shared import dcb
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.poll import Poller

# include/uapi/linux/sockios.h and ethtool.h
_SIOCETHTOOL = 0x8946
_GSTRINGS, _GSTATS, _GSSET_INFO = 0x1B, 0x1D, 0x37
_SS_STATS = 1
_NAME_BYTES = 32
_MOST = 100_000  # counters of one interface; a larger answer makes no sense
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENODEV, errno.EPERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class NicSourceOptions:
    """What an operator can set."""

    nic_links: tuple[str, ...] = option(
        (), "interfaces whose driver counters (ethtool -S) are read; empty: those of RDMA devices"
    )
    nic_interval_s: float = option(10.0, "pause between readings of driver counters", unit="s", least=1)


class NicSource(Source):
    """Emits NicCounters of each interface, after each pause."""

    name: ClassVar[str] = "nic"
    needs: ClassVar[str] = "an interface whose driver knows ethtool -S (emits nothing where there is none)"
    options: ClassVar[tuple[type[Any], ...]] = (NicSourceOptions,)

    def __init__(
        self,
        host: Host,
        options: NicSourceOptions,
        *,
        ib_root: str = IB_ROOT,
        hang_s: float = 30.0,
    ) -> None:
        self._host = host
        self._links = options.nic_links
        self._ib_root = ib_root
        # Link → how many counters it has, and the places of the wanted ones among them.
        self._names: dict[str, tuple[int, dict[str, int]]] = {}
        self._poller = Poller(self._poll, what=self.name, period_s=options.nic_interval_s, hang_s=hang_s)

    @classmethod
    def of(cls, setup: SourceSetup) -> Self:
        """See Source."""
        return cls(setup.host, setup.options(NicSourceOptions), ib_root=setup.config.ib_root)

    async def run(self, emit: Emit) -> None:
        """Follow the counters until cancelled."""
        await self._poller.run(emit)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self._poller.look(emit)

    async def once(self, emit: Emit) -> None:
        """The counters as they are now; of a recorded machine none."""
        for sample in self._poll() if self._host.live else ():
            emit(sample)

    def _poll(self) -> list[Sample]:
        samples: list[Sample] = []
        links = self._links or rdma_links(self._host, self._ib_root)
        if not links:
            return samples
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
            for link in links:
                try:
                    counters = self._read(sock, link)
                except OSError as error:
                    self._names.pop(link, None)
                    if error.errno not in _UNSUPPORTED:
                        raise
                    continue
                if counters:
                    sample = NicCounters(
                        name=link, counters=counters, lossless=_lossless(link), mono_s=self._host.mono_s()
                    )
                    samples.append(sample)
        return samples

    def _read(self, sock: socket.socket, link: str) -> dict[str, int]:
        """The wanted counters; OSError when the interface does not exist or has none."""
        number = _count(sock, link)
        known = self._names.get(link)
        if known is None or known[0] != number:  # a driver was loaded again, or queues were added
            known = self._names[link] = (number, _places(sock, link, number))
        if not known[1]:
            return {}
        # The kernel asks the driver again how many there are, and writes that many: there is room for some more.
        values = bytearray(8 + 8 * (number + 1024))
        struct.pack_into("=II", values, 0, _GSTATS, number)
        _ethtool(sock, link, values)
        return {name: struct.unpack_from("=Q", values, 8 + 8 * place)[0] for name, place in known[1].items()}


def rdma_links(host: Host, ib_root: str) -> tuple[str, ...]:
    """Ethernet interfaces of the InfiniBand and RoCE devices. IPoIB has its counters under the port itself."""
    links: dict[str, None] = {}
    for device in host.listdir(ib_root):
        ports = host.listdir(f"{ib_root}/{device}/ports")
        if any(host.read(f"{ib_root}/{device}/ports/{port}/link_layer") == "Ethernet" for port in ports):
            links.update(dict.fromkeys(host.listdir(f"{ib_root}/{device}/device/net")))
    return tuple(links)


def _lossless(link: str) -> frozenset[int] | None:
    try:
        return dcb.lossless_priorities(link)
    except OSError:  # most drivers have no DCB
        return None


def _count(sock: socket.socket, link: str) -> int:
    data = bytearray(struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _SS_STATS, 0))
    _ethtool(sock, link, data)
    mask, number = struct.unpack_from("=QI", data, 8)
    return number if mask and number <= _MOST else 0


def _places(sock: socket.socket, link: str, number: int) -> dict[str, int]:
    """Wanted counter → its place in the driver's list."""
    if not number:
        return {}
    data = bytearray(12 + _NAME_BYTES * (number + 1024))
    struct.pack_into("=III", data, 0, _GSTRINGS, _SS_STATS, number)
    _ethtool(sock, link, data)
    number = min(number, struct.unpack_from("=I", data, 8)[0])
    names = (
        bytes(data[12 + _NAME_BYTES * place : 12 + _NAME_BYTES * (place + 1)])
        .partition(b"\0")[0]
        .decode("latin-1")
        for place in range(number)
    )
    return {name: place for place, name in enumerate(names) if nic.wanted(name)}


def _ethtool(sock: socket.socket, link: str, data: bytearray) -> None:
    """SIOCETHTOOL with a pointer to `data`, which the kernel fills in."""
    if len(link.encode()) > 15:
        raise OSError(errno.ENODEV, f"{link}: not a name of an interface")
    buffer = array.array("B", data)
    address, _ = buffer.buffer_info()
    request = struct.pack("=16sQ16x", link.encode(), address)
    fcntl.ioctl(sock.fileno(), _SIOCETHTOOL, request)
    data[:] = buffer.tobytes()
