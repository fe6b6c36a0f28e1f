"""One address of this node on the data network: a UDP socket that probes a few peers and answers those that probe it.

It answers nobody but the addresses that the file names for it, only what carries the cell's key, with as many bytes as it was
asked with, and only so often: nothing can be made louder by it. The kernel's timestamps are used at both ends, so that an
agent that waits for a busy CPU does not look like a slow network.
"""

import asyncio
import secrets
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress

from agent.collectors.samples_node import PeerProbes, ProbeRound
from agent.probes.hosts import ProbeEnd, ProbePart
from agent.probes.packet import ANSWER, ASK, LEAST_BYTES, Packet, pack, unpack, way

PACKETS = 5  # to each peer in each round
_ANSWERS_A_ROUND = 3 * PACKETS  # to each peer; one that was started anew may ask twice within one
_AT_ONCE = 64  # datagrams taken from the socket before others have their turn
_TIMESTAMP_NS = 35  # SO_TIMESTAMPNS and its control message; Python has no name for it
_TIMESPEC = struct.Struct("@qq")
_DONT_FRAGMENT = 2  # IP_PMTUDISC_DO, IPV6_PMTUDISC_DO
_MTU_DISCOVER, _V6_MTU_DISCOVER = 10, 23


class ProbeEndpoint:
    """Open from `open` to `close`."""

    def __init__(
        self, part: ProbePart, *, link: str, port: int, key: bytes, size: int, period_s: float
    ) -> None:
        self.part, self.link = part, link
        self._port, self._key, self._size, self._period_s = port, key, max(size, LEAST_BYTES), period_s
        self._socket: socket.socket | None = None
        own = part.own.address
        self._peers: tuple[tuple[ProbeEnd, bool], ...] = (
            *((end, True) for end in part.near),
            *((end, False) for end in part.far),
        )
        self._to = {end.address: way(own, end.address) for end, _ in self._peers}
        self._from = {address: way(address, own) for address in (*self._to, *part.asked_by)}
        self._back = {address: way(own, address) for address in part.asked_by}
        # Address that asks → answers that it may still have in this round of its own.
        self._left: dict[str, tuple[float, int]] = {}
        self._sequence = secrets.randbits(48)
        # Sequence number → address, and when it was sent.
        self._open: dict[int, tuple[str, int]] = {}
        self._times_us: dict[str, list[float]] = {}

    def open(self) -> None:
        """Binds the address and begins to answer; OSError."""
        six = ":" in self.part.own.address
        opened = socket.socket(
            socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC
        )
        try:
            opened.setblocking(False)
            opened.setsockopt(socket.SOL_SOCKET, _TIMESTAMP_NS, 1)
            if six:
                opened.setsockopt(socket.IPPROTO_IPV6, _V6_MTU_DISCOVER, _DONT_FRAGMENT)
            else:
                opened.setsockopt(socket.IPPROTO_IP, _MTU_DISCOVER, _DONT_FRAGMENT)
            # Neither in nor out by another interface, whatever the routes are. Linux below 5.7 wants CAP_NET_RAW for it.
            with suppress(PermissionError):
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self.link.encode())
            opened.bind((self.part.own.address, self._port))
        except OSError as error:
            opened.close()
            raise OSError(
                error.errno, f"UDP {self.part.own.address} port {self._port}: {error.strerror}"
            ) from error
        self._socket = opened
        asyncio.get_running_loop().add_reader(opened, self._readable)

    def close(self) -> None:
        """The opposite; at most once."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def ask(self) -> None:
        """Sends the packets of one round. What cannot be sent counts as lost."""
        self._open.clear()
        self._times_us = {end.address: [] for end, _ in self._peers}
        for end, _ in self._peers:
            for _ in range(PACKETS):
                self._sequence += 1
                asked = Packet(kind=ASK, sequence=self._sequence)
                data = pack(asked, size=self._size, key=self._key, between=self._to[end.address])
                self._open[self._sequence] = end.address, time.time_ns()
                self._send(data, end.address)

    def round(self, mono_s: float) -> ProbeRound:
        """What has been answered of it until now; later answers count no more."""
        self._open.clear()
        return ProbeRound(
            link=self.link,
            address=self.part.own.address,
            peers=tuple(
                PeerProbes(
                    peer=end.node, near=near, sent=PACKETS, times_us=tuple(self._times_us[end.address])
                )
                for end, near in self._peers
            ),
            mono_s=mono_s,
        )

    def _readable(self) -> None:
        for data, address, at_ns in self._received():
            between = self._from.get(address)
            packet = unpack(data, key=self._key, between=between) if between is not None else None
            if packet is None:
                continue
            if packet.kind == ASK and address in self._back and self._allowed(address):
                held_ns = max(0, time.time_ns() - at_ns)
                answer = Packet(kind=ANSWER, sequence=packet.sequence, held_ns=held_ns)
                self._send(pack(answer, size=len(data), key=self._key, between=self._back[address]), address)
            elif packet.kind == ANSWER:
                self._answered(packet, address, at_ns)

    def _received(self) -> Iterator[tuple[bytes, str, int]]:
        for _ in range(_AT_ONCE):
            if self._socket is None:
                return
            try:
                data, control, _, (address, port, *_) = self._socket.recvmsg(self._size + 1, 128)
            except OSError:  # nothing more
                return
            if port != self._port or len(data) > self._size:
                continue
            stamp = next((value for _, kind, value in control if kind == _TIMESTAMP_NS), b"")
            seconds, ns = _TIMESPEC.unpack(stamp) if len(stamp) == _TIMESPEC.size else (0, time.time_ns())
            yield data, address, seconds * 1_000_000_000 + ns

    def _allowed(self, address: str) -> bool:
        now_s = time.monotonic()
        since_s, left = self._left.get(address, (now_s - self._period_s, 0))
        if now_s - since_s >= self._period_s:
            since_s, left = now_s, _ANSWERS_A_ROUND
        self._left[address] = since_s, left - 1
        return left > 0

    def _answered(self, packet: Packet, address: str, at_ns: int) -> None:
        whose, sent_ns = self._open.get(packet.sequence, ("", 0))
        if whose == address:  # each counts once, and only from whom it was asked
            del self._open[packet.sequence]
            self._times_us[address].append(max(0, at_ns - sent_ns - packet.held_ns) / 1000)

    def _send(self, data: bytes, address: str) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.sendto(data, (address, self._port))
