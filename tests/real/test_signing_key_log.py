"""One key is made for a log, whoever is started: real claims on a real server."""

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.contract import subjects
from agent.contract.errors import ConfigError
from brain import config
from brain.adapters import keys, signing_key_log
from brain.adapters.broker import brain_connection
from brain.adapters.codec import Codec
from brain.config import BrainConfig
from brain.core.inputs import Pulse
from tests.real.nats import NatsServer, client, nats_server, whole_log

pytestmark = pytest.mark.component("nats-server")

ROUNDS = 20
GPUWARD = Path(sys.executable).with_name("gpuward")


@pytest.fixture(name="server", scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with nats_server(tmp_path_factory.mktemp("claims")) as server:
        yield server


def of(folder: Path, server: NatsServer, cell: str, **more: Any) -> BrainConfig:
    """A brain's configuration with a folder of its own."""
    folder.mkdir(exist_ok=True)
    given = {"data_dir": str(folder), "cell": cell, "nats": {"url": server.url}, "log": {"max_bytes": 2**26}}
    return config.parse(given | more, "test", folder)


def written(brain: BrainConfig) -> Path:
    """This configuration as a file."""
    file = brain.data_dir.with_suffix(".toml")
    file.write_text(
        f'data_dir = "{brain.data_dir}"\ncell = "{brain.cell}"\n[nats]\nurl = "{brain.nats.url}"\n'
    )
    return file


def pulse(cell: str, id_: str) -> tuple[str, bytes]:
    """What a brain that leads writes: its subject and body."""
    what, body = Codec(cell).encode(Pulse(id=id_))
    return subjects.brain_input(cell, what), body


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
    assert "has lost its beginning" in await settled(of(tmp_path / "b2", server, "begun"), "b2")


async def test_a_key_that_is_brought_to_a_brain_that_waits_stays(tmp_path: Path, server: NatsServer) -> None:
    """`gpuward cell take` while the servers are away, or between the claim and the key: nodes obey that one."""
    for cell, when, then in (
        ("waiting", "make_first", keys.make_first),
        ("claiming", "put_first", keys.put_first),
    ):
        brain = of(tmp_path / cell, server, cell)
        brought: list[keys.Signer] = []

        def bring(key: Path, then: Any = then, brought: Any = brought) -> Any:
            brought.append(keys.load_signer(tmp_path / "other.key"))
            key.write_bytes((tmp_path / "other.key").read_bytes())
            return then(key)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(keys, when, bring)
            assert await settled(brain, "b1") == brought[0].key_id
        assert {file.name for file in brain.data_dir.iterdir()} == {"signing.key"}
        await without_log(server, cell)


async def test_brains_with_one_file_for_their_key_have_one_key(tmp_path: Path, server: NatsServer) -> None:
    """On a file server, say: whoever is faster, the key that was claimed lies there, and all have it."""
    for number in range(5):
        cell, key = f"shared{number}", tmp_path / f"{number}.key"
        names = ("b1", "b2", "b3")
        brains = [of(tmp_path / f"{name}-{cell}", server, cell, signing_key_file=str(key)) for name in names]
        said = await asyncio.gather(*(settled(*one) for one in zip(brains, names, strict=True)))
        (claim,) = await whole_log(server.url, cell)
        (made,) = {keys.read_signer(key).key_id, *said}
        assert made in claim.decode()
        assert [file.name for file in tmp_path.glob(f"{number}.key*")] == [key.name]
        await without_log(server, cell)


async def test_a_brain_that_has_lost_its_folder_is_told_so(tmp_path: Path, server: NatsServer) -> None:
    """Its disk is not mounted: nobody else has the key that it is to bring."""
    await settled(of(tmp_path / "b1", server, "unmounted"), "b1")
    told = await settled(of(tmp_path / "empty", server, "unmounted"), "b1")
    assert f"mount the disk of {tmp_path / 'empty'}, or put the folder back from your backup" in told
    await without_log(server, "unmounted")


async def test_a_key_that_cannot_be_written_is_no_matter_of_the_servers(
    tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for its folder waits for this, too (brain/leader/start_folder.py)."""
    brain = of(tmp_path / "b1", server, "full")
    with monkeypatch.context() as patched:

        def refuse(_: Path) -> bool:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patched.setattr(keys, "put_first", refuse)
        assert "cannot be made: No space left on device" in await settled(brain, "b1")
    assert await settled(brain, "b1") == keys.read_signer(brain.signing_key).key_id
    await without_log(server, "full")


async def crashed(brain: BrainConfig) -> str:
    """The machine is lost between the claim and the key; which key was claimed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keys, "put_first", lambda *_: pytest.fail("the machine is lost"))
        with pytest.raises(pytest.fail.Exception):
            await settled(brain, "b1")
    return keys.read_signer(keys.beside(brain.signing_key, keys.FIRST)).key_id


async def test_a_claim_that_has_gone_before_anybody_led_is_made_again(
    tmp_path: Path, server: NatsServer
) -> None:
    """It was purged, or has expired: nobody has a key yet, and no other brain is blamed."""
    brain = of(tmp_path / "b1", server, "gone")
    claimed = await crashed(brain)
    async with client(server.url) as asked:
        await asked.jsm().purge_stream(subjects.stream("gone"))
    assert await settled(brain, "b1") == claimed
    (claim,) = await whole_log(server.url, "gone")
    assert claimed in claim.decode()
    assert f"brain b1 has written the log of cell gone: its key is {claimed}" in await settled(
        of(tmp_path / "b2", server, "gone"), "b2"
    )
    await without_log(server, "gone")


async def test_a_log_whose_beginning_has_gone_tells_nobody_whose_key_it_was(
    tmp_path: Path, server: NatsServer
) -> None:
    """The key that was perhaps claimed stays beside its place, and that is what is said."""
    brain = of(tmp_path / "b1", server, "begun-again")
    claimed = await crashed(brain)
    async with client(server.url) as asked:
        for number in range(3):
            subject, body = pulse("begun-again", f"x{number}")
            await asked.jetstream().publish(subject, body)
        await asked.jsm().purge_stream(subjects.stream("begun-again"), seq=3)
    told = await settled(brain, "b1")
    assert "has lost its beginning, the messages before 3" in told, told
    assert "nobody can tell from it which brain has a key" in told
    assert "another brain has written" not in told
    assert keys.read_signer(keys.beside(brain.signing_key, keys.FIRST)).key_id == claimed
    assert keys.load_signer(brain.signing_key).key_id == claimed, "who makes it by hand has the claimed one"
    assert await settled(brain, "b1") == claimed
    await without_log(server, "begun-again")


@pytest.mark.parametrize("damage", ["", "no key", "AAAA\n"])
async def test_a_damaged_first_key_is_made_anew(tmp_path: Path, server: NatsServer, damage: str) -> None:
    """Nothing was ever signed with it: nobody is told of a key that is lost."""
    brain = of(tmp_path / "b1", server, "damaged")
    keys.beside(brain.signing_key, keys.FIRST).write_text(damage)
    assert await settled(brain, "b1") == keys.read_signer(brain.signing_key).key_id
    assert [file.name for file in brain.data_dir.iterdir()] == ["signing.key"]
    await without_log(server, "damaged")


async def test_a_first_key_that_is_damaged_after_its_claim_has_a_way_out(
    tmp_path: Path, server: NatsServer
) -> None:
    """Nobody has the key that the log names: what is said ends in a key that this brain leads with."""
    brain = of(tmp_path / "b1", server, "claimed-damaged")
    await crashed(brain)
    keys.beside(brain.signing_key, keys.FIRST).write_text("AAAA")
    assert "`gpuward cell rotate signing --compromised`" in await settled(brain, "b1")
    said = ["cell", "rotate", "signing", "--compromised", "--config", str(written(brain))]
    subprocess.run([GPUWARD, *said], check=True, capture_output=True)
    assert await settled(brain, "b1") == keys.read_signer(brain.signing_key).key_id
    await without_log(server, "claimed-damaged")
