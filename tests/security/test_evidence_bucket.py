"""Evidence bundles: what a deposed brain, and a node that announces without end, do to the bucket."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.manager import JetStreamManager

from agent.contract.bundle_parts import KEPT, REFUSED, Bundle, Chunk, decode_part_answer, encode_part
from agent.contract.subjects import MAX_BUNDLE_CHUNK
from brain.adapters import evidence, evidence_store
from brain.adapters.evidence_store import EvidenceStore
from brain.adapters.readmodel import ReadModel
from brain.console.evidence import TOO_LARGE, why_not_kept
from brain.core.effects import Note
from brain.nats_config import EvidenceConfig
from tests.bundles import fetch
from tests.fences import Open
from tests.real.nats import client, nats_server
from tests.security.figures import Record, attacked

pytestmark = pytest.mark.component("nats-server")
CONTENT = b"evidence" * 1000
KEEP = EvidenceConfig(max_bytes=64 * 1024**2)


class Lease:
    """A brain's lease, as the server and the brain's own clock see it."""

    def __init__(self) -> None:
        self.held = True
        self.asked = 0

    async def confirm(self) -> bool:
        """As in Fence."""
        self.asked += 1
        await asyncio.sleep(0)
        return self.held

    def holds(self) -> bool:
        """As in Fence."""
        return self.held


def quiet(_: str) -> None:
    """Nobody is told."""


def bundle(command: str, content: bytes = CONTENT) -> tuple[bytes, bytes]:
    """Its announcement, and its only chunk."""
    digest = "SHA-256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
    about = Bundle(command=command, file="b.tar.gz", digest=digest, size=len(content), chunks=1)
    return encode_part(about), encode_part(Chunk(command=command, number=0, content=content))


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[Client]:
    """A broker with the bucket."""
    with nats_server(tmp_path) as server:
        async with client(server.url) as connection:
            await evidence.ensure(connection, "default", KEEP)
            yield connection


async def _kept(store: EvidenceStore, bus: Client, command: str) -> None:
    for part in bundle(command):
        assert decode_part_answer(await store.take(bus, "n1", part)).word == KEPT


@pytest.mark.parametrize("at", ["announcement", "chunk"])
async def test_a_deposed_brain_removes_and_writes_nothing(
    bus: Client, at: str, record_property: Record
) -> None:
    """It was stopped in the middle of a bundle; another brain leads and has stored it since."""
    old, new = EvidenceStore("default", KEEP), EvidenceStore("default", KEEP)
    lease = Lease()
    old.begin(lease, quiet)
    new.begin(Open(), quiet)
    head, chunk = bundle("inc-1.r1.s1.a1")
    if at == "chunk":
        assert decode_part_answer(await old.take(bus, "n1", head)).word == KEPT
    lease.held = False
    await _kept(new, bus, "inc-1.r1.s1.a1")
    before = (await bus.jsm().stream_info("OBJ_evidence-default")).state.last_seq
    assert await old.take(bus, "n1", chunk if at == "chunk" else head) == b""
    assert lease.asked > 0
    assert await fetch(bus, "default", "n1", "inc-1.r1.s1.a1") == CONTENT
    assert (await bus.jsm().stream_info("OBJ_evidence-default")).state.last_seq == before
    attacked(record_property, 1)


async def test_announcing_costs_little_and_has_a_pace(
    bus: Client, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    """What a node has is asked of the bucket once; an empty bundle is none; above the pace it waits, which is told."""
    monkeypatch.setattr(evidence_store, "ANNOUNCED_BURST", 20.0)
    monkeypatch.setattr(evidence_store, "ANNOUNCED_PER_S", 10.0)
    store = EvidenceStore("default", KEEP)
    told: list[str] = []
    asked: list[str] = []
    store.begin(Open(), told.append)
    manager = type(bus.jsm())
    plain = manager.get_last_msg

    async def counted(self: JetStreamManager, stream: str, subject: str) -> object:
        asked.append(subject)
        return await plain(self, stream, subject)

    monkeypatch.setattr(manager, "get_last_msg", counted)
    for number in range(15):
        await _kept(store, bus, f"inc-{number}")
    assert not asked
    assert not told
    empty = Bundle(command="inc-empty", file="b.tar.gz", digest="SHA-256=", size=0, chunks=0)
    assert decode_part_answer(await store.take(bus, "n1", encode_part(empty))).word == REFUSED
    began = asyncio.get_running_loop().time()
    for number in range(15, 30):
        await _kept(store, bus, f"inc-{number}")
    assert asyncio.get_running_loop().time() - began > 0.9
    assert set(told) == {"n1"}
    store.begin(Open(), told.append)
    await _kept(store, bus, "inc-30")
    assert len(asked) == 30, "once, after another brain may have written"
    attacked(record_property, 31)


async def test_a_bundle_that_is_too_large_is_told_with_its_size_and_the_limit(bus: Client) -> None:
    """To people, not only to the node; and once in a while, however often a node announces one."""
    notes: list[tuple[str, str]] = []
    store = EvidenceStore("default", KEEP, lambda *note: notes.append(note))
    store.begin(Open(), quiet)
    size = 200 * 1024**2
    large = Bundle(
        command="inc-1", file="b.tar.gz", digest="SHA-256=", size=size, chunks=-(-size // MAX_BUNDLE_CHUNK)
    )
    for _ in range(5):
        answer = decode_part_answer(await store.take(bus, "n1", encode_part(large)))
        assert answer.word == REFUSED
        assert "the bundle has 200.0 MiB and is not kept, as a node may keep" in answer.why
        assert "evidence.max_bytes of brain.toml, and at most 64 MiB" in answer.why
    assert notes == [(evidence_store.TOO_LARGE, f"n1/inc-1: {answer.why}")]


def test_who_looks_for_such_a_bundle_is_told_why(tmp_path: Path) -> None:
    """By what is noted of it, and of no other one."""
    model = ReadModel(tmp_path / "history.sqlite")
    for number, command in enumerate(("inc-1", "inc-2")):
        text = f"n1/{command}: {evidence_store.too_large((100 + number) * 1024**2, 1024**2)}"
        model.note(Note(id=f"brain:b:{number}", at=float(number), kind=TOO_LARGE, text=text))
    assert why_not_kept(model, "n1/inc-1").startswith("the bundle has 100.0 MiB and is not kept")
    assert why_not_kept(model, "n1/inc-3") == ""
    assert TOO_LARGE == evidence_store.TOO_LARGE


async def test_the_oldest_bundles_of_the_node_make_room(bus: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted from memory, also when the same bundle comes again."""
    store = EvidenceStore("default", KEEP)
    store.begin(Open(), quiet)
    monkeypatch.setattr(store, "_most", 3 * len(CONTENT))
    for command in ("a", "b", "c", "c", "d"):
        await _kept(store, bus, command)
    found = [await fetch(bus, "default", "n1", command) for command in "abcd"]
    assert [one is not None for one in found] == [False, True, True, True]
