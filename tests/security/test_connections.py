"""Connections, bodies and locks that somebody holds on purpose cost the brain neither its descriptors nor its time."""

import asyncio
import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import nkeys
import pytest

from brain import locked_file
from brain.cell.registry import CellRegistry
from brain.console import crowded
from brain.console.access import body, connections
from brain.console.access.tokens import Tokens
from brain.console.access.two_persons import MOST_OF_ONE, Proposals
from brain.console_config import Role
from tests import people
from tests.real.brain_kit import lab
from tests.real.nats import free_port
from tests.security.figures import Record, attacked
from tests.security.test_door import ask, console, shown

ELSEWHERE = "127.0.0.2"
HALF = b"GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "


@contextlib.contextmanager
def held(port: int, count: int, words: bytes) -> Iterator[list[socket.socket]]:
    """So many connections from another address, each of which has said so much."""
    opened = []
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", port), 10, source_address=(ELSEWHERE, 0))
        one.sendall(words)
        opened.append(one)
    try:
        yield opened
    finally:
        for one in opened:
            one.close()


def alive(opened: list[socket.socket]) -> int:
    """How many of them the other side still keeps."""
    count = 0
    for one in opened:
        one.setblocking(False)
        try:
            count += bool(one.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            count += 1
        except OSError:
            pass
    return count


async def come(opened: list[socket.socket], most: int) -> None:
    """Waits until at most so many are left."""
    async with asyncio.timeout(30):
        while alive(opened) > most:
            await asyncio.sleep(0.05)


def test_a_quarter_of_the_descriptors_is_the_consoles() -> None:
    """And never so many that a search through them would take long."""
    assert [connections.at_most(limit) for limit in (2, 64, 1024, 65_536)] == [1, 16, 256, 1024]


@pytest.mark.parametrize("words", [b"", HALF], ids=["silent", "half"])
async def test_one_address_holds_few_connections_and_none_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: bytes, record_property: Record
) -> None:
    """What has not sent a whole request is closed; meanwhile others are served."""
    monkeypatch.setattr(connections, "OF_ONE_ADDRESS", 20)
    monkeypatch.setattr(connections, "IDLE_S", 5.0)
    async with console(tmp_path) as (url, _):
        with held(int(url.rpartition(":")[2]), 60, words) as opened:
            await come(opened, 20)
            assert (await ask(url))[0] == 200
            await come(opened, 0)
    attacked(record_property, 60, refused=40)


async def test_many_addresses_together_leave_the_brain_its_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the sum the oldest that has sent nothing goes, so the console is open to whoever says something."""
    monkeypatch.setattr(connections, "MOST", 30)
    async with console(tmp_path) as (url, _):
        with held(int(url.rpartition(":")[2]), 60, HALF) as opened:
            await come(opened, 30)
            for _ in range(40):
                assert (await ask(url))[0] == 200


async def test_whoever_has_shown_a_credential_keeps_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against silent ones, and against strangers who ask; of those the silent ones go first."""
    monkeypatch.setattr(connections, "MOST", 16)
    ann = people.token_file(tmp_path / "d")
    async with (
        console(tmp_path / "d", users=people.ANN["users"]) as (url, _),
        # Their own side keeps an idle connection for longer than a loaded machine takes for this.
        aiohttp.ClientSession(
            headers=people.bearer(ann), connector=aiohttp.TCPConnector(keepalive_timeout=300)
        ) as mine,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(keepalive_timeout=300)) as stranger,
    ):

        async def place(of: aiohttp.ClientSession) -> aiohttp.client_proto.ResponseHandler:
            """The connection that it uses."""
            async with of.get(f"{url}/healthz" if of is stranger else f"{url}/api/v1/me") as answer:
                assert answer.status == 200
                await answer.read()
            assert of.connector is not None
            ((one,),) = of.connector._conns.values()
            return one[0]

        asking = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        port = int(url.rpartition(":")[2])
        places = [await place(mine), await place(stranger)]
        with held(port, 60, b"") as silent:
            await come(silent, 14)
            assert [await place(mine), await place(stranger)] == places
            with held(port, 30, asking):
                await come(silent, 0)
                async with asyncio.timeout(30):
                    while places[1].is_connected():
                        await asyncio.sleep(0.02)
                assert await place(mine) == places[0]
                assert await place(stranger) != places[1]


async def test_a_whole_address_of_people_is_told_and_others_come_in(
    tmp_path: Path, record_property: Record
) -> None:
    """128 connections from one address, each of which has shown a credential: none is dropped for the next one, which is answered
    that there is no place, in the reader's language; somebody at another address comes in. Once one ends there is a place again.
    """
    ann = people.token_file(tmp_path / "d")
    asked = f"GET /api/v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {shown(ann)}\r\n"

    async def next_one(port: int, language: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(ELSEWHERE, 0))
        writer.write(f"{asked}Accept-Language: {language}\r\nConnection: close\r\n\r\n".encode())
        async with asyncio.timeout(30):
            answer = await reader.read()
        writer.close()
        return answer

    async with console(tmp_path / "d", users=people.ANN["users"]) as (url, _):
        port = int(url.rpartition(":")[2])
        with held(port, connections.OF_ONE_ADDRESS, f"{asked}\r\n".encode()) as opened:
            async with asyncio.timeout(60):
                for one in opened:
                    one.setblocking(False)
                    got = b""
                    while b"}" not in got:
                        got += await asyncio.get_running_loop().sock_recv(one, 4096)
                    assert got.startswith(b"HTTP/1.1 200"), got
            for language, says in (("en", "128 connections here"), ("zh-CN", "已有 128 个连接")):
                head, _, body = (await next_one(port, language)).partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 503 "), head
                assert b"Retry-After: 10" in head
                assert says in json.loads(body)["detail"]
                assert json.loads(body)["who"] == "nobody"
            assert (await ask(url, Authorization=shown(ann)))[0] == 200, "from another address"
            assert alive(opened) == connections.OF_ONE_ADDRESS
            opened.pop().close()
            async with asyncio.timeout(30):
                while not (await next_one(port, "en")).startswith(b"HTTP/1.1 200"):
                    await asyncio.sleep(0.05)
        attacked(record_property, 2)


async def test_who_is_told_holds_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks nothing is closed soon, and where many come at once most are closed without a word."""
    monkeypatch.setattr(crowded, "WITHIN_S", 0.3)
    ann = people.token_file(tmp_path / "d")
    asked = f"GET /api/v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {shown(ann)}\r\n\r\n".encode()
    monkeypatch.setattr(connections, "OF_ONE_ADDRESS", 2)
    async with console(tmp_path / "d", users=people.ANN["users"]) as (url, _):
        port = int(url.rpartition(":")[2])
        with held(port, 2, asked) as mine:
            for one in mine:
                assert b"200" in await asyncio.to_thread(one.recv, 20)
            with held(port, 3 * crowded.MOST, b"") as others:
                await come(others, 0)
            assert (await ask(url, Authorization=shown(ann)))[0] == 200


async def test_silent_ones_go_soon_where_many_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after the half minute that they have otherwise."""
    monkeypatch.setattr(connections, "MOST", 16)
    monkeypatch.setattr(connections, "FULL_IDLE_S", 0.2)
    async with console(tmp_path) as (url, _):
        with held(int(url.rpartition(":")[2]), 14, HALF) as opened:
            await asyncio.sleep(0.5)
            assert alive(opened) == 14
            assert (await ask(url))[0] == 200
            await come(opened, 0)


async def test_a_body_comes_soon_and_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not come ends its request; a packed one is refused before it is unpacked."""
    monkeypatch.setattr(body, "BODY_S", 0.3)
    async with console(tmp_path) as (url, _):
        head = b"POST /api/join HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{"
        with held(int(url.rpartition(":")[2]), 1, head) as (one,):
            one.settimeout(30)
            assert b" 408 " in await asyncio.to_thread(one.recv, 100)
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{url}/api/join",
                data=b"{}",
                headers={"Content-Encoding": "gzip", "Content-Type": "application/json"},
            ) as answer,
        ):
            assert answer.status == 415


def test_a_token_made_with_a_token_ends_with_it(tmp_path: Path) -> None:
    """By its time and by its revocation, over two steps; a stolen token of a minute does not become one of a year."""
    tokens = Tokens(tmp_path / "t.json")
    first, _ = tokens.make("ann", Role.VIEWER, now=1000, lasts_s=60, by="root")
    second, text = tokens.make("ann", Role.VIEWER, now=1010, lasts_s=1e6, by="ann", parent=first.id)
    third, _ = tokens.make("ann", Role.VIEWER, now=1020, lasts_s=1e6, by="ann", parent=second.id)
    apart, _ = tokens.make("ann", Role.VIEWER, now=1020, lasts_s=60, by="root")
    assert second.expires_at == third.expires_at == first.expires_at
    assert tokens.find(text, 1059) is not None
    assert {one.id for one in tokens.revoke({first.id})} == {first.id, second.id, third.id}
    assert [one.id for one in tokens.all()] == [apart.id]


async def test_the_console_says_with_which_token_one_was_made(tmp_path: Path) -> None:
    """And a token whose parent was just revoked is not made."""
    ann = people.token_file(tmp_path / "d")
    async with console(tmp_path / "d", users=people.ANN["users"]) as (url, _):
        _, made = await ask(url, "/api/v1/tokens", {}, Authorization=shown(ann))
        (parent,) = (one.id for one in Tokens(tmp_path / "d/tokens.json").all() if one.id != made["id"])
        assert made["made_with"] == parent
        status, gone = await ask(url, "/api/v1/tokens/revoke", {"ids": [parent]}, Authorization=shown(ann))
        assert (status, {one["id"] for one in gone["revoked"]}) == (200, {parent, made["id"]})


def test_one_person_s_words_do_not_push_out_another_s() -> None:
    """Each has places of their own among those that wait for a second person."""
    waiting = Proposals()
    assert waiting.agreed("stop", "bob", lambda: True, 0) is None
    for n in range(110):
        assert waiting.agreed(f"word {n}", "eve", lambda: True, 1) is None
    said = [(one.who, one.text) for one in waiting.waiting(2)]
    assert ("bob", "stop") in said
    assert len(said) == 1 + MOST_OF_ONE
    first = waiting.agreed("stop", "ann", lambda: True, 3)
    assert first is not None
    assert first.who == "bob"


def public() -> str:
    """Of a new NKEY."""
    pair = nkeys.from_seed(bytearray(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)))
    return str(pair.public_key.decode())


@pytest.mark.component("nats-server")
async def test_nobody_joins_under_the_name_of_a_configured_node(tmp_path: Path) -> None:
    """What stands in brain.toml is the operator's word: neither a token, nor one with --replace, nor add-node takes it."""
    honest, thief = public(), public()
    async with lab(tmp_path, nats={"embedded": {"port": free_port(), "nodes": {"gpu-01": honest}}}) as whole:
        assert whole.running is not None
        registry = CellRegistry(whole.config.registry_file, whole.config.nats.embedded.nodes)
        whole.config.cell_dir.mkdir(parents=True, exist_ok=True)
        for replace in (False, True):
            id_, secret = registry.make_token(
                "gpu-*", count=1, now=time.time(), lasts_s=3600, replace=replace
            )
            for node, key in (("gpu-01", thief), ("gpu-02", honest)):
                given = {"id": id_, "secret": secret, "node": node, "public": key}
                status, answer = await ask(whole.running.console_url, "/api/join", given)
                assert (status, "gpu-01" in answer["error"]) == (403, True), answer
        assert not registry.nodes()


async def test_a_lock_that_somebody_holds_stops_no_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A join waits for it in a thread, and says so in the end; other requests are answered meanwhile."""
    monkeypatch.setattr(locked_file, "LOCK_WITHIN_S", 1.0)
    async with console(tmp_path) as (url, view):
        file = view.config.registry_file
        file.parent.mkdir(parents=True, exist_ok=True)
        id_, secret = CellRegistry(file).make_token("n1", count=1, now=time.time(), lasts_s=3600)
        given = {"id": id_, "secret": secret, "node": "n1", "public": public()}
        lock = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)
        joining = asyncio.ensure_future(ask(url, "/api/join", given))
        await asyncio.sleep(0)
        answered = 0
        while not joining.done():
            assert (await ask(url))[0] == 200
            answered += 1
            await asyncio.sleep(0.1)  # within the console's pace
        os.close(lock)
        status, answer = joining.result()
        assert (status, "another process holds it" in answer["error"]) == (503, True)
        assert answered > 1


def test_readers_never_see_an_empty_file_for_a_moment(tmp_path: Path) -> None:
    """While one thread reads what has changed, another gets what was before."""
    path = tmp_path / "f.json"
    path.write_text("[1]")
    seen: list[object] = []

    def parse(body: bytes) -> list[int]:
        if file is not None:
            seen.append(file.last)
        return list(json.loads(body))

    file: locked_file.LockedFile[list[int]] | None = None
    file = locked_file.LockedFile(
        path, parse=parse, dump=lambda value: json.dumps(value).encode(), empty=list
    )
    assert file.value() == [1]
    file.change(lambda found: [*found, 2])
    assert seen[-1] == [1]
    assert file.value() == [1, 2]
