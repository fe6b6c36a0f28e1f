"""One key is made for a log, whoever is started: real claims on a real server."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.contract import subjects
from agent.contract.errors import ConfigError
from brain import config
from brain.adapters import keys, signing_key_log
from brain.adapters.broker import brain_connection
from brain.config import BrainConfig
from tests.real.nats import NatsServer, client, nats_server, whole_log

pytestmark = pytest.mark.component("nats-server")

ROUNDS = 20


@pytest.fixture(name="server", scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with nats_server(tmp_path_factory.mktemp("claims")) as server:
        yield server


def of(folder: Path, server: NatsServer, cell: str) -> BrainConfig:
    """A brain's configuration with a folder of its own."""
    folder.mkdir(exist_ok=True)
    given = {"data_dir": str(folder), "cell": cell, "nats": {"url": server.url}, "log": {"max_bytes": 2**26}}
    return config.parse(given, "test", folder)


async def settled(brain: BrainConfig, name: str) -> str:
    """Which key it has then; an error's text, where it has none."""
    connection = brain_connection(brain.nats, name=name)
    try:
        assert await signing_key_log.settle(brain, connection, name, asyncio.Event())
    except ConfigError as error:
        return str(error)
    return keys.read_signer(brain.signing_key).key_id


async def without_log(server: NatsServer, cell: str) -> None:
    """The servers have no log of it any more."""
    async with client(server.url) as asked:
        await asked.jsm().delete_stream(subjects.stream(cell))


async def test_of_two_claims_at_once_one_makes_the_key(tmp_path: Path, server: NatsServer) -> None:
    """However often: the other one has no key, and is told whose it is."""
    for number in range(ROUNDS):
        cell = f"c{number}"
        both = {name: of(tmp_path / f"{name}-{number}", server, cell) for name in ("b1", "b2")}
        said = await asyncio.gather(*(settled(brain, name) for name, brain in both.items()))
        (made,) = [name for name, brain in both.items() if brain.signing_key.exists()]
        (left,) = both.keys() - {made}
        told = said[list(both).index(left)]
        assert f"brain {made} has written the log of cell {cell}" in told
        assert not list(both[left].data_dir.iterdir()), "nothing is left of a key that nobody obeys"
        (claim,) = await whole_log(server.url, cell)
        assert said[list(both).index(made)] in claim.decode()
        await without_log(server, cell)


async def test_a_claim_outlives_a_crash(
    tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The brain ended between its claim and its key: it goes on with the key that it has claimed, also under another name."""
    brain = of(tmp_path / "b1", server, "crashed")
    with monkeypatch.context() as patched:
        patched.setattr(keys, "put_first", lambda _: pytest.fail("the machine is lost"))
        with pytest.raises(pytest.fail.Exception):
            await settled(brain, "b1")
    claimed = keys.make_first(brain.signing_key).key_id
    assert "brain b1 has written the log" in await settled(of(tmp_path / "b2", server, "crashed"), "b2")
    assert await settled(brain, "renamed") == claimed
    await without_log(server, "crashed")


async def test_a_log_that_others_have_begun_takes_no_claim(tmp_path: Path, server: NatsServer) -> None:
    """Those had their key before: nobody can say who they were."""
    brain = of(tmp_path / "b1", server, "begun")
    assert await settled(brain, "b1") == keys.read_signer(brain.signing_key).key_id
    async with client(server.url) as asked:
        await asked.jsm().purge_stream(subjects.stream("begun"))
    assert "and another brain has written" in await settled(of(tmp_path / "b2", server, "begun"), "b2")
