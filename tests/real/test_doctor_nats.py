"""`gpuward doctor` of the NATS servers of a site: how many there are, who sets them up, and why one cannot be reached."""

import asyncio
import errno
import os
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from nats.aio.client import Client

from agent.shared.nats_connection import NatsConnection
from agent.shared.tasks import end
from brain.adapters import brain_settings, evidence, log
from brain.cell.authority import Authority
from brain.cli.checkup import broker
from brain.cli.checkup.installation import Installation
from brain.cli.checkup.lines import Health, HealthLine
from tests.real.nats import client, nats_server
from tests.real.test_doctor import site

pytestmark = pytest.mark.component("nats-server")
NOBODY = "nats://127.0.0.1:1"
OTHERS = f",{NOBODY},nats://127.0.0.1:2"


async def of_copies(folder: Path, **nats: object) -> list[HealthLine]:
    """What it says of the copies with this [nats]."""
    return [line async for line in broker.broker(site(folder, nats=nats)) if line.check == "copies on NATS"]


async def test_as_many_copies_as_servers(tmp_path: Path) -> None:
    """Three servers and one copy: the cell ends with one of them. One server and three copies: there is no log at all."""
    with nats_server(tmp_path) as server:
        assert await of_copies(tmp_path, url=server.url) == []
        (line,) = await of_copies(tmp_path, url=server.url, replicas=3)
        assert line.health is Health.FAIL
        assert line.text == "nats.replicas is 3, of 1 NATS server: the brain cannot make its log"
        assert line.action.startswith("write `replicas = 1` under [nats] of brain.toml, or add servers")
        async with client(server.url) as connection:
            found = site(tmp_path, nats={"url": server.url})
            await log.ensure(connection, "default", found.config.log)
        for copies in (1, 2):
            (line,) = await of_copies(tmp_path, url=server.url + OTHERS, replicas=copies)
            assert line.health is Health.WARN
            assert line.text.startswith(f"nats.url names 3 servers, and nats.replicas is {copies}: when a")
            assert line.action.startswith(
                "write `replicas = 3` under [nats] of each brain's brain.toml, then"
            )
            assert "`systemctl restart gpuward`" in line.action
        (line,) = await of_copies(tmp_path, url=server.url + OTHERS, replicas=5)
        assert line.health is Health.WARN
        assert line.text == "nats.replicas is 5, of 3 NATS servers"
        assert line.action.startswith("write `replicas = 3`")


async def test_brains_that_want_different_limits(tmp_path: Path) -> None:
    """Each one's doctor names the other with both values, also that of the brain whose larger limits are in force; where they are
    the same it says so.
    """
    less = {"log": {"max_bytes": 64 * 1024**2}, "evidence": {"keep_s": 86400, "max_bytes": 16 * 1024**2}}
    with nats_server(tmp_path) as server:
        most = site(tmp_path, nats={"url": server.url})
        small = site(tmp_path, nats={"url": server.url}, log=less["log"], evidence=less["evidence"])
        async with client(server.url) as c1, client(server.url) as c2, AsyncExitStack() as running:

            async def runs(connection: Client, of: Installation, brain: str) -> None:
                task = asyncio.ensure_future(brain_settings.tell(connection, of.config, brain))
                running.push_async_callback(end, task)
                await evidence.ensure(connection, "default", of.config.evidence)

            await runs(c1, most, "b1")
            await until_told(c1, ["b1"])
            assert [line for line in await said(most) if line.check in ("brains", "evidence")] == []
            await runs(c2, most, "b2")
            await until_told(c1, ["b1", "b2"])
            (line,) = [line for line in await said(most) if line.check == "brains"]
            assert (line.health, line.text) == (
                Health.OK, "b1, b2 have the same [log], [evidence] and nats.replicas",
            )  # fmt: skip
            await runs(c2, small, "b3")
            await until_told(c1, ["b1", "b2", "b3"])
            (line,) = [line for line in await said(most) if line.check == "brains"]
            assert line.health is Health.WARN
            assert line.text == (
                "b3 runs with log.max_bytes = 67108864, evidence.keep_s = 86400, evidence.max_bytes = 16777216, and this "
                "brain.toml says log.max_bytes = 8589934592, evidence.keep_s = 1209600, evidence.max_bytes = 1073741824"
            )
            of_small = await said(small)
            assert [line.text[:12] for line in of_small if line.check == "brains"] == [
                "b1 runs with",
                "b2 runs with",
            ]
            (line,) = [line for line in of_small if line.check == "evidence"]
            assert line.text == (
                "bundles may take 1.00 GiB and 14 days, and this brain.toml says less (0.02 GiB, 1 days): the larger is kept"
            )
            assert line.action.startswith("write the same [evidence] for each brain of the cell")


async def test_two_brains_of_one_name(tmp_path: Path) -> None:
    """One backup was restored on two machines, say: both are alike, and the doctor says that they are two."""
    with nats_server(tmp_path) as server:
        found = site(tmp_path, nats={"url": server.url})
        async with client(server.url) as c1, client(server.url) as c2, AsyncExitStack() as running:
            for connection in (c1, c2):
                task = asyncio.ensure_future(brain_settings.tell(connection, found.config, "b1"))
                running.push_async_callback(end, task)
            await until_told(c1, ["b1", "b1"])
            (line,) = [line for line in await said(found) if line.check == "brains"]
            assert (line.health, line.text) == (Health.WARN, "2 brains that run are called b1")
            assert "systemctl disable --now gpuward" in line.action


async def test_why_the_servers_are_not_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate of another authority, a server without TLS, and a host to which no way leads, each with who must do what; who
    is refused and where nobody listens: tests/real/test_doctor.py.
    """
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        Authority(tmp_path / name).make("default", ["127.0.0.1"], time.time())
    ours, theirs = (Authority(tmp_path / name) for name in ("ours", "theirs"))
    tls = f'tls {{ cert_file: "{ours.certificate_file}", key_file: "{ours.key_file}" }}\n'
    with nats_server(tmp_path, config=tls) as server:
        url = server.url.replace("nats://", "tls://")
        (line,) = await said(site(tmp_path, nats={"url": url, "ca_file": str(theirs.ca_file)}))
    assert "its certificate is not trusted (" in line.text
    assert line.action.startswith("give nats.ca_file the authority that has made its certificate; or it one")
    with nats_server(tmp_path) as server:
        url = server.url.replace("nats://", "tls://")
        (line,) = await said(site(tmp_path, nats={"url": url, "ca_file": str(ours.ca_file)}))
    assert "no TLS connection comes about there (the URL says tls://, and the server does not" in line.text
    assert line.action == "write the scheme in nats.url that it speaks there, TLS or not"

    async def no_way(_: NatsConnection) -> Client:
        raise OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))

    monkeypatch.setattr(NatsConnection, "connect", no_way)
    (line,) = await said(site(tmp_path, nats={"url": NOBODY}))
    assert line.text == f"{NOBODY}: no way leads to that host (No route to host)"
    assert (
        "the routes and firewalls between it and this machine; or correct the host in nats.url" in line.action
    )


async def said(found: Installation) -> list[HealthLine]:
    """What the doctor says of NATS."""
    return [line async for line in broker.broker(found)]


async def until_told(connection: Client, brains: list[str]) -> None:
    """These brains answer."""
    async with asyncio.timeout(60):
        while True:
            if (
                sorted(one for one, _ in await brain_settings.told(connection, "default", within_s=0.3))
                == brains
            ):
                return
