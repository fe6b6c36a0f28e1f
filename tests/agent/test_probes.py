"""Probes between agents: who probes whom, and what is answered. Sockets are real, on loopback."""

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.collectors.samples_node import ProbeRound
from agent.config import AgentConfig
from agent.host import Host
from agent.probes.endpoint import PACKETS, ProbeEndpoint
from agent.probes.hosts import HostsError, ProbeEnd, ProbePart, read
from agent.probes.packet import ANSWER, ASK, LEAST_BYTES, Packet, pack, unpack, way
from agent.sources.base import SourceSetup
from agent.sources.probes import ProbeSource, ProbeSourceOptions

KEY, SIZE = b"k" * 64, 64


# ----- who probes whom


def fleet(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("# node address leaf\n\n" + "\n".join(lines), encoding="utf-8")
    return path


def test_each_probes_the_next_ones_of_its_leaf_and_one_behind_each_of_the_next(tmp_path: Path) -> None:
    """Round at the end of the file, so that each is probed by as many."""
    file = fleet(
        tmp_path / "hosts", [f"n{number} 10.0.0.{number} leaf-{number // 4}" for number in range(12)]
    )
    (part,) = read(file, "n3", near=2, far=2)
    assert [end.node for end in part.near] == ["n0", "n1"]
    assert [end.node for end in part.far] == ["n7", "n11"]
    assert part.asked_by == {"10.0.0.1", "10.0.0.2", "10.0.0.7", "10.0.0.11"}


@pytest.mark.parametrize("seed", range(60))
def test_whoever_is_probed_answers_and_nobody_else_is(tmp_path: Path, seed: int) -> None:
    """Over random fleets: of several rails, leaf switches of one node, leaf switches of different sizes."""
    chance = random.Random(seed)
    ends = [
        (f"n{node}", f"10.{rail}.{node // 200}.{node % 200}", f"leaf-{chance.randrange(1, 7)}")
        for node in range(chance.randrange(1, 30))
        for rail in range(chance.randrange(1, 4))
    ]
    near, far = chance.randrange(5), chance.randrange(5)
    file = fleet(tmp_path / "hosts", [" ".join(end) for end in ends])
    parts = {
        part.own.address: part
        for node in {end[0] for end in ends}
        for part in read(file, node, near=near, far=far)
    }
    assert sorted(parts) == sorted(end[1] for end in ends)
    asked_by: dict[str, set[str]] = {address: set() for address in parts}
    for part in parts.values():
        assert len(part.near) <= near
        assert len(part.far) <= far
        assert all(end.leaf == part.own.leaf for end in part.near)
        assert all(end.leaf != part.own.leaf for end in part.far)
        assert all(end.node != part.own.node for end in (*part.near, *part.far))
        for end in (*part.near, *part.far):
            asked_by[end.address].add(part.own.address)
    assert asked_by == {address: set(part.asked_by) for address, part in parts.items()}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("n1 10.0.0.1", "line 3: want node, address and leaf switch, and it has 2 words"),
        ("n1 10.0.0.1 leaf-1 eth2", "it has 4 words"),
        ("n1 10.0.0 leaf-1", "line 3: '10.0.0' is no IP address"),
        ("n2 10.0.0.2 leaf-1", "has no line for n1"),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path: Path, line: str, why: str) -> None:
    """The supervisor tells it as the source's failure."""
    with pytest.raises(HostsError, match=why):
        read(fleet(tmp_path / "hosts", [line]), "n1", near=2, far=2)


# ----- the packet


def test_a_packet_is_worth_nothing_with_another_key_size_or_pair() -> None:
    """Whatever bit of the header or tag is another one, too."""
    between = way("10.0.0.1", "10.0.0.2")
    packet = Packet(kind=ANSWER, sequence=2**47 + 5, held_ns=123456)
    data = pack(packet, size=SIZE, key=KEY, between=between)
    assert len(data) == SIZE
    assert unpack(data, key=KEY, between=between) == packet
    assert unpack(data, key=b"x" * 64, between=between) is None
    assert unpack(data, key=KEY, between=way("10.0.0.2", "10.0.0.1")) is None
    assert unpack(data + b"\0", key=KEY, between=between) is None
    assert all(unpack(data[:cut], key=KEY, between=between) is None for cut in range(SIZE))
    for bit in range(LEAST_BYTES * 8):
        other = bytearray(data)
        other[bit // 8] ^= 1 << bit % 8
        found = unpack(bytes(other), key=KEY, between=between)
        assert found is None, bit


# ----- sockets


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


A, B, C = (ProbeEnd(node=f"n{last}", address=f"127.0.0.{last}", leaf=f"leaf-{last}") for last in (2, 3, 4))


@asynccontextmanager
async def endpoints(port: int, *parts: ProbePart, key: bytes = KEY) -> AsyncIterator[list[ProbeEndpoint]]:
    made = [ProbeEndpoint(part, link="lo", port=port, key=key, size=SIZE, period_s=10.0) for part in parts]
    try:
        for one in made:
            one.open()
        yield made
    finally:
        for one in made:
            one.close()


def asks(own: ProbeEnd, *near: ProbeEnd) -> ProbePart:
    return ProbePart(own=own, near=near, far=(), asked_by=frozenset())


def answers(own: ProbeEnd, *asked_by: ProbeEnd) -> ProbePart:
    return ProbePart(own=own, near=(), far=(), asked_by=frozenset(end.address for end in asked_by))


async def until(true: Callable[[], bool]) -> None:
    """Fails after half a minute."""
    end_s = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end_s
        await asyncio.sleep(0.005)


async def test_a_peer_answers_and_its_times_are_measured() -> None:
    """One that is not there does not."""
    async with endpoints(free_port(), asks(A, B, C), answers(B, A)) as (one, _):
        one.ask()
        await until(lambda: len(one._times_us["127.0.0.3"]) == PACKETS)
        found = one.round(1.0)
    assert [(probes.peer, probes.near, probes.sent, len(probes.times_us)) for probes in found.peers] == [
        ("n3", True, PACKETS, PACKETS), ("n4", True, PACKETS, 0),
    ]  # fmt: skip
    assert all(0 <= time_us < 5_000_000 for time_us in found.peers[0].times_us)


async def test_the_time_that_the_peer_held_the_packet_is_no_time_of_the_network() -> None:
    """Its agent may wait for a CPU beside a job: here for a third of a second."""
    async with endpoints(free_port(), asks(A, B), answers(B, A)) as (one, _):
        one.ask()
        time.sleep(0.3)  # neither end reads meanwhile
        await until(lambda: len(one._times_us["127.0.0.3"]) == PACKETS)
        found = one.round(1.0)
    assert max(found.peers[0].times_us) < 200_000


def datagram(data: bytes, port: int, address: str = "127.0.0.3") -> socket.socket:
    """A socket at A's address and port that has sent this to B."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.2", port))
    sock.sendto(data, (address, port))
    return sock


async def heard(sock: socket.socket, sent: int) -> list[bytes]:
    """What came back, once all that was sent has been read (a last one that is answered for sure tells)."""
    sock.setblocking(False)
    found: list[bytes] = []
    end_s = time.monotonic() + 30
    while len(found) < sent and time.monotonic() < end_s:
        try:
            found.append(sock.recv(9000))
        except BlockingIOError:
            await asyncio.sleep(0.005)
    return found


ASKING = pack(Packet(kind=ASK, sequence=7), size=SIZE, key=KEY, between=way(A.address, B.address))
LAST = pack(Packet(kind=ASK, sequence=99), size=SIZE, key=KEY, between=way(A.address, B.address))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"gwp1",
        b"\0" * SIZE,
        b"x" * 8000,
        ASKING[:-1],
        ASKING + b"\0",
        pack(Packet(kind=ASK, sequence=7), size=SIZE, key=b"x" * 64, between=way(A.address, B.address)),
        pack(Packet(kind=ASK, sequence=7), size=SIZE, key=KEY, between=way(C.address, B.address)),
        pack(Packet(kind=ASK, sequence=7), size=SIZE + 1, key=KEY, between=way(A.address, B.address)),
        pack(Packet(kind=ANSWER, sequence=7), size=SIZE, key=KEY, between=way(A.address, B.address)),
        pack(Packet(kind=3, sequence=7), size=SIZE, key=KEY, between=way(A.address, B.address)),
    ],
    ids=["empty", "magic", "zeros", "large", "cut", "longer", "key", "pair", "over size", "answer", "kind"],
)
async def test_only_what_was_agreed_is_answered(data: bytes) -> None:
    """The ask behind it is the only one that gets something back."""
    port = free_port()
    async with endpoints(port, answers(B, A)):
        with datagram(data, port) as sock:
            sock.sendto(LAST, (B.address, port))
            (got,) = await heard(sock, 1)
    found = unpack(got, key=KEY, between=way(B.address, A.address))
    assert found is not None
    assert (found.kind, found.sequence, len(got)) == (ANSWER, 99, len(LAST))


async def test_whoever_is_not_in_the_file_is_not_answered() -> None:
    """Though it has the key; and a peer from another port is not, either."""
    port = free_port()
    async with endpoints(port, answers(B, C)):
        with datagram(ASKING, port) as sock, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as third:
            third.bind((C.address, port))
            ask = pack(Packet(kind=ASK, sequence=5), size=SIZE, key=KEY, between=way(C.address, B.address))
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                other.bind((C.address, 0))
                other.sendto(ask, (B.address, port))
                third.sendto(ask, (B.address, port))
                assert len(await heard(third, 1)) == 1
                other.setblocking(False)
                with pytest.raises(BlockingIOError):
                    other.recv(9000)
            sock.setblocking(False)
            with pytest.raises(BlockingIOError):
                sock.recv(9000)


async def test_a_flood_gets_few_answers_and_no_more_bytes_than_it_sent() -> None:
    """Recorded and sent again and again, it makes nothing louder; another peer is answered as before."""
    port = free_port()
    async with endpoints(port, answers(B, A, C)):
        with datagram(ASKING, port) as sock, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as third:
            third.bind((C.address, port))
            for _ in range(400):
                sock.sendto(ASKING, (B.address, port))
                await asyncio.sleep(0)
            ask = pack(Packet(kind=ASK, sequence=5), size=SIZE, key=KEY, between=way(C.address, B.address))
            third.sendto(ask, (B.address, port))
            assert len(await heard(third, 1)) == 1
            sock.setblocking(False)
            got = []
            while True:
                try:
                    got.append(sock.recv(9000))
                except BlockingIOError:
                    break
    assert 1 <= len(got) <= 3 * PACKETS
    assert {len(one) for one in got} == {SIZE}


async def test_an_answer_counts_once_and_only_from_whom_was_asked() -> None:
    """And only while its round lasts."""
    port = free_port()
    async with endpoints(port, asks(A, B, C)) as (one,):
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as third,
        ):
            peer.bind((B.address, port))
            third.bind((C.address, port))
            one.ask()
            asked = [
                unpack(got, key=KEY, between=way(A.address, B.address)) for got in await heard(peer, PACKETS)
            ]
            first = asked[0]
            assert first is not None
            for sock, end in ((third, C), (peer, B), (peer, B), (peer, B)):
                answer = replace(first, kind=ANSWER)
                back = pack(answer, size=SIZE, key=KEY, between=way(end.address, A.address))
                sock.sendto(back, (A.address, port))
            await until(lambda: len(one._times_us[B.address]) == 1)
            second = asked[1]
            assert second is not None
            found = one.round(1.0)
            back = pack(replace(second, kind=ANSWER), size=SIZE, key=KEY, between=way(B.address, A.address))
            peer.sendto(back, (A.address, port))
            one.ask()
            await heard(peer, PACKETS)
            assert one._times_us == {B.address: [], C.address: []}
    assert [len(probes.times_us) for probes in found.peers] == [1, 0]


# ----- the source


def source(tmp_path: Path, node: str, port: int) -> ProbeSource:
    options = ProbeSourceOptions(
        probe_hosts=str(tmp_path / "hosts"),
        probe_key_file=str(tmp_path / "key"),
        probe_port=port,
        probe_interval_s=0.1,
    )
    return ProbeSource(Host(), node, options, wait_s=0.05)


def no_emit(_: object) -> None:
    pass


async def test_two_agents_probe_each_other_as_the_file_says(tmp_path: Path) -> None:
    """And as it says later: the third one is probed once it stands there."""
    fleet(tmp_path / "hosts", ["n2 127.0.0.2 leaf-1", "n3 127.0.0.3 leaf-1"])
    (tmp_path / "key").write_text("a secret of some length\n", encoding="utf-8")
    (tmp_path / "key").chmod(0o600)
    port, found = free_port(), list[ProbeRound]()
    running = [
        asyncio.create_task(source(tmp_path, "n2", port).run(found.append)),  # type: ignore[arg-type]  # samples alone
        asyncio.create_task(source(tmp_path, "n3", port).run(no_emit)),
    ]
    try:
        await until(lambda: any(len(one.peers[0].times_us) == PACKETS for one in found))
        assert {(one.link, one.address, one.peers[0].peer, one.peers[0].near) for one in found} == {
            ("lo", "127.0.0.2", "n3", True)
        }
        fleet(tmp_path / "hosts", ["n2 127.0.0.2 leaf-1", "n3 127.0.0.3 leaf-1", "n4 127.0.0.4 leaf-2"])
        await until(lambda: [one.peer for one in found[-1].peers] == ["n3", "n4"])
        assert not found[-1].peers[1].near
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@pytest.mark.parametrize(
    ("hosts", "key", "why"),
    [
        ("n2 127.0.0.2 leaf-1", "short", "has fewer than 16 characters"),
        ("n2 127.0.0.2 leaf-1", "", "is empty"),
        ("n3 127.0.0.3 leaf-1", "a secret of some length", "has no line for n2"),
        (
            "n2 192.0.2.77 leaf-1",
            "a secret of some length",
            "no interface of this node has the address 192.0.2.77",
        ),
    ],
)
async def test_what_is_missing_is_said(tmp_path: Path, hosts: str, key: str, why: str) -> None:
    """By the source's failure."""
    fleet(tmp_path / "hosts", [hosts])
    (tmp_path / "key").write_text(key, encoding="utf-8")
    with pytest.raises(OSError, match=why):
        await source(tmp_path, "n2", free_port()).run(no_emit)


def test_nothing_is_probed_where_it_is_not_asked_for() -> None:
    """Nor on a recorded machine."""

    def made(root: Path, **options: Any) -> ProbeSource | None:
        return ProbeSource.of(SourceSetup(host=Host(root=root), config=AgentConfig(plugins=options)))

    assert made(Path("/")) is None
    assert made(Path("/"), probe_hosts="/etc/gpuward/probe-hosts") is not None
    assert made(Path("/recorded"), probe_hosts="/etc/gpuward/probe-hosts") is None
