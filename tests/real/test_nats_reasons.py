"""Why there is no connection to NATS: once, true, and with what to do. Real servers and certificates."""

import asyncio
import logging
import socket
import ssl
import time
from functools import partial
from pathlib import Path

import nkeys
import pytest

from agent.shared import reasons
from agent.shared.nats_connection import Identity, NatsConnection, TlsContexts
from agent.shared.tasks import end
from brain.cell.authority import Authority
from tests.real.nats import nats_server

pytestmark = pytest.mark.component("nats-server")
DAY_S = 86400.0


async def told(url: str, caplog: pytest.LogCaptureFixture, ca: str = "", seed: str = "") -> list[str]:
    """What is logged of five attempts."""
    contexts = TlsContexts([url], "ca")
    attempts = 0

    def identity() -> Identity:
        nonlocal attempts
        attempts += 1
        return Identity(seed=seed, tls=contexts.of(ca))

    async def session(_: object) -> None:
        raise AssertionError("it is connected")

    connection = NatsConnection([url], name="test", identity=identity)
    with caplog.at_level(logging.INFO):
        task = asyncio.create_task(connection.serve(session))
        async with asyncio.timeout(60):
            while attempts < 6:
                await asyncio.sleep(0.02)
        await end(task)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("made_days_ago", "names", "trusts", "says"),
    [
        pytest.param(700, ["127.0.0.1"], "its", "has expired by this machine's clock", id="expired"),
        pytest.param(
            -9, ["127.0.0.1"], "its", "not yet valid by this machine's clock, which says", id="clock"
        ),
        pytest.param(1, ["127.0.0.1"], "another", "does not vouch", id="another authority"),
        pytest.param(1, ["brain.example"], "its", "is for other names", id="another name"),
    ],
)
async def test_a_certificate_is_told_as_what_it_is(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    made_days_ago: float,
    names: list[str],
    trusts: str,
    says: str,
) -> None:
    """One line, however often it is tried, and never that there is no NATS server."""
    monkeypatch.setattr("brain.cell.authority.ALWAYS", ("localhost",))
    found = {}
    for which in ("its", "another"):
        (tmp_path / which).mkdir()
        found[which] = Authority(tmp_path / which)
        found[which].make("default", names, time.time() - made_days_ago * DAY_S)
    its = found["its"]
    tls = f'tls {{ cert_file: "{its.certificate_file}", key_file: "{its.key_file}" }}\n'
    with nats_server(tmp_path, config=tls) as server:
        url = server.url.replace("nats://", "tls://")
        lines = await told(url, caplog, ca=found[trusts].ca_file.read_text())
    assert len(lines) == 1, lines
    assert says in lines[0]


async def test_a_key_that_is_not_let_in(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Revoked, or never let in: it joins again."""
    seeds = [nkeys.encode_seed(bytes([n]) * 32, nkeys.PREFIX_BYTE_USER).decode() for n in (1, 2)]
    public = nkeys.from_seed(bytearray(seeds[0].encode())).public_key.decode()
    users = f"authorization {{ users: [{{ nkey: {public} }}] }}\n"
    with nats_server(tmp_path, config=users) as server:
        lines = await told(server.url, caplog, seed=seeds[1])
    assert len(lines) == 1, lines
    assert "does not let this key in" in lines[0]
    assert "gpuward-agent join" in lines[0]


async def test_a_url_with_tls_says_nothing_in_plain_text() -> None:
    """Who stands between says that the server has no TLS: no key, name or event is told there."""
    heard = bytearray()
    ended = asyncio.Event()

    async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b'INFO {"server_id":"x","version":"2.12.0","auth_required":true,"nonce":"abc","max_payload":1}\r\n'
        )
        heard.extend(await reader.read())
        writer.close()
        ended.set()

    server = await asyncio.start_server(between, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        connection = NatsConnection([f"tls://me:secret@127.0.0.1:{port}"], name="test")
        with pytest.raises(ssl.SSLError, match="does not begin TLS") as found:
            await connection.connect()
        await asyncio.wait_for(ended.wait(), 60)
    assert heard == b""
    assert "do the servers speak TLS where the URL says tls://" in reasons.of_connection(found.value)


async def test_nobody_there(caplog: pytest.LogCaptureFixture) -> None:
    """It asks whether NATS runs."""
    (line,) = await told("nats://127.0.0.1:1", caplog)
    assert "nothing listens there" in line


def test_an_error_without_words_gets_some() -> None:
    """`TimeoutError: ` tells nobody anything."""
    assert "no answer in time" in reasons.of_connection(TimeoutError())
    with pytest.raises(OSError) as unknown:
        socket.getaddrinfo("no-such-host.invalid", 4222)
    assert "does not know that name" in reasons.of_connection(unknown.value)
    assert "DNS" in reasons.of_connection(unknown.value)
    assert "says nothing more" in reasons.of_connection(EOFError())


async def test_a_connection_knows_until_when_the_server_s_certificate_holds(tmp_path: Path) -> None:
    """Nobody else could tell a site when that of its own servers ends; without TLS there is none."""
    authority = Authority(tmp_path)
    authority.make("default", ["127.0.0.1"], time.time())
    tls = f'tls {{ cert_file: "{authority.certificate_file}", key_file: "{authority.key_file}" }}\n'
    ca = authority.ca_file.read_text()
    for name, config in (("tls", tls), ("plain", "")):
        (tmp_path / name).mkdir()
        with nats_server(tmp_path / name, config=config) as server:
            url = server.url.replace("nats://", "tls://") if config else server.url
            identity = partial(Identity, tls=TlsContexts([url], "ca").of(ca if config else ""))
            connection = NatsConnection([url], name="test", identity=identity)
            assert connection.certificate is None
            found = asyncio.Event()

            async def session(_: object, found: asyncio.Event = found) -> None:
                found.set()
                await asyncio.Event().wait()

            task = asyncio.create_task(connection.serve(session))
            await asyncio.wait_for(found.wait(), 60)
            since, until = connection.certificate or (0.0, 0.0)
            assert until == (authority.ends()[1] if config else 0.0)
            assert since <= time.time()
            await end(task)
