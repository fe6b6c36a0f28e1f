"""Whoever may read begins downloads of the largest bundle, on many connections, and reads none of them."""

import asyncio
import contextlib
import hashlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from agent.contract.errors import ActionError
from brain.adapters.evidence import MAX_BYTES
from brain.console import evidence, sending
from tests import people
from tests.security.figures import Record, attacked
from tests.security.test_connections import ELSEWHERE, come
from tests.security.test_door import console

PIECE = b"x" * 131_072
IN_KERNEL = 8 * 1024**2  # what the kernel takes for one connection, at most
MANY = 100


class Bundle:
    """Of the largest size; it counts what was read of it, and can break off."""

    size = MAX_BYTES

    def __init__(self, *, broken: bool = False) -> None:
        self.read = 0
        self._broken = broken

    async def pieces(self) -> AsyncIterator[bytes]:
        """A chunk after the other."""
        for _ in range(self.size // len(PIECE)):
            self.read += len(PIECE)
            yield PIECE
            if self._broken:
                raise ActionError("the oldest chunks were dropped")
            await asyncio.sleep(0)


USERS = {"bob": {"role": "viewer"}} | people.ANN["users"]


def ask_and_read_nothing(port: int, token: str) -> socket.socket:
    """A download that nobody takes."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.bind((ELSEWHERE, 0))
    one.connect(("127.0.0.1", port))
    head = f"GET /api/v1/evidence/n1/big HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
    one.sendall(head.encode())
    return one


async def test_who_reads_nothing_holds_no_bundle_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    """A bundle is read as it is taken, by few at a time; who takes nothing is cut off, and then others are served."""
    monkeypatch.setattr(sending, "PIECE_S", 1.0)
    monkeypatch.setattr(evidence, "WAIT_S", 20.0)
    ann, bob = (people.token_file(tmp_path, name) for name in ("ann", "bob"))
    async with console(tmp_path, users=USERS) as (url, view):
        bundle = Bundle()
        view.bundles = {"n1/big": bundle}
        port, token = int(url.rpartition(":")[2]), bob.read_text()
        opened = [ask_and_read_nothing(port, token) for _ in range(MANY)]
        try:
            async with asyncio.timeout(60):
                while not bundle.read:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            assert bundle.read <= evidence.OF_ONE * IN_KERNEL, "of so many downloads of 64 MB"
            async with (
                aiohttp.ClientSession(headers=people.bearer(ann)) as session,
                session.get(f"{url}/api/v1/evidence/n1/big") as answer,
            ):
                digest = hashlib.sha256()
                async for part in answer.content.iter_any():
                    digest.update(part)
            assert digest.digest() == hashlib.sha256(PIECE * (MAX_BYTES // len(PIECE))).digest()
            for one in opened:
                one.setblocking(False)
                with contextlib.suppress(OSError):
                    while one.recv(1_000_000):
                        pass
            await come(opened, MANY - evidence.OF_ONE)
        finally:
            for one in opened:
                one.close()
    attacked(record_property, MANY)


async def test_what_breaks_off_is_not_taken_for_whole(tmp_path: Path) -> None:
    """Chunks that go while they are sent end the connection before its length."""
    ann = people.token_file(tmp_path)
    async with console(tmp_path, users=USERS) as (url, view):
        view.bundles = {"n1/big": Bundle(broken=True)}
        async with (
            aiohttp.ClientSession(headers=people.bearer(ann)) as session,
            session.get(f"{url}/api/v1/evidence/n1/big") as answer,
        ):
            with pytest.raises(aiohttp.ClientError):
                await answer.read()
