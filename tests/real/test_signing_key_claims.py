"""Two brains with a key each: every combination of a brain's key, what its cell has seen of it, and what the log says."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
from nats.js.errors import NotFoundError

from agent.contract import subjects
from agent.contract.errors import ConfigError
from agent.shared.tasks import Tasks
from brain.adapters import keys, log, signing_key, signing_key_log
from brain.adapters.log import LogClock
from brain.adapters.rotation import KeyRotation
from brain.adapters.signing_key_log import Claim
from brain.cell.registry import CellRegistry
from brain.cell.trust import KeyKind
from brain.cli import cell_shared
from brain.config import BrainConfig
from brain.leader import key_claim
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.key_claim import TWO_KEYS, KeyClaim
from brain.leader.notes import BrainNotes
from brain.notify.notifier import build
from tests.real.brain_kit import Lab
from tests.real.nats import NatsServer, client, nats_server
from tests.real.test_nobody_leads import outside, told
from tests.real.test_signing_key_log import of, pulse, settled

pytestmark = pytest.mark.component("nats-server")

LOGS = ("empty", "purged", "mine", "another's", "without a claim")
SEEN = ("new", "joined", "rotated")


@pytest.fixture(name="server", scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with nats_server(tmp_path_factory.mktemp("claims")) as server:
        yield server


@pytest.fixture(name="alerts")
async def _alerts(tmp_path: Path) -> AsyncIterator[BrainAlerts]:
    async with Tasks() as background:
        yield BrainAlerts(
            brain="b1",
            notifier=build({}, {}, tmp_path),
            notes=BrainNotes("b1", LogClock()),
            background=background,
            file=tmp_path / "alerts.json",
        )


def joined(brain: BrainConfig, folder: Path) -> None:
    """A node has joined at this brain."""
    brain.cell_dir.mkdir(parents=True, exist_ok=True)
    registry = CellRegistry(brain.registry_file)
    id_, secret = registry.make_token("*", count=1, now=0, lasts_s=60)
    registry.join(id_, secret, "n1", keys.load_nkey(folder / "n1.nk"), now=1)


def rotated(brain: BrainConfig) -> None:
    """Nodes were told of a key more."""
    brain.cell_dir.mkdir(parents=True, exist_ok=True)
    KeyRotation(brain).begin(KeyKind.SIGNING, now=time.time(), overlap_s=3600)


async def prepared(server: NatsServer, brain: BrainConfig, state: str, own: str) -> None:
    """The log is so. `own`: the id of this brain's key."""
    async with client(server.url) as asked:
        await log.ensure(asked, brain.cell, brain.log)
        if state == "mine":
            claim = Claim(brain="b1", key_id=own)
            await signing_key_log.claim(asked, brain.cell, claim, after=0)
        elif state == "another's":
            claim = Claim(brain="b2", key_id="0123456789ab")
            await signing_key_log.claim(asked, brain.cell, claim, after=0)
        elif state in ("purged", "without a claim"):
            for number in range(3):
                subject, body = pulse(brain.cell, f"x{number}")
                await asked.jetstream().publish(subject, body)
        if state == "purged":
            await asked.jsm().purge_stream(subjects.stream(brain.cell))


async def first_claim(server: NatsServer, brain: BrainConfig) -> str:
    """The id of the key that the log names; empty: none."""
    async with client(server.url) as asked:
        extent = await log.info(asked, brain.cell)
        found = await signing_key_log.claim_of(asked, brain.cell, extent)
    return found.key_id if found else ""


async def answer_to_join(brain: Lab) -> int:
    """What a node hears that joins there with a good token."""
    assert brain.running is not None
    brain.config.cell_dir.mkdir(exist_ok=True)
    id_, secret = CellRegistry(brain.config.registry_file).make_token(
        "*", count=1, now=time.time(), lasts_s=60
    )
    body = {"id": id_, "secret": secret, "node": "n1", "public": keys.load_nkey(brain.folder / "n1.nk")}
    url = f"{brain.running.console_url}/api/join"
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
        return answer.status


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("state", LOGS)
async def test_a_brain_with_a_key(
    tmp_path: Path, server: NatsServer, alerts: BrainAlerts, state: str, seen: str
) -> None:
    """It claims a log that has no message. Where another key was claimed, it says so, and leaves the lead to that one's brain
    unless nodes have joined under its own; after a rotation another key is what the log has to name.
    """
    brain = of(tmp_path / "b1", server, f"{state}-{seen}".replace(" ", "-").replace("'", ""))
    own = keys.load_signer(brain.signing_key).key_id
    if seen == "joined":
        joined(brain, tmp_path)
    if seen == "rotated":
        rotated(brain)
    await prepared(server, brain, state, own)
    claim = KeyClaim(brain, brain="b1", alerts=alerts)
    async with client(server.url) as asked:
        await claim.settle(asked, await log.info(asked, brain.cell))
    named = {"another's": "0123456789ab", "without a claim": ""}.get(state, own)
    assert await first_claim(server, brain) == named
    wrong = state == "another's" and seen != "rotated"
    assert [one.cause for one in alerts.open_now] == [TWO_KEYS] * wrong
    assert claim.fits is not (wrong and seen == "new")
    if wrong:
        (alert,) = alerts.open_now
        assert f"brain b2, whose key is 0123456789ab, and this brain's is {own}" in alert.text
        assert ("1 node joined here" in alert.text) is (seen == "joined")
        assert "gpuward cell share FILE" in alert.text
        assert "gpuward cell rotate signing" in alert.text
    async with client(server.url) as asked:
        await asked.jsm().delete_stream(subjects.stream(brain.cell))


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("state", LOGS)
async def test_a_brain_without_a_key(tmp_path: Path, server: NatsServer, state: str, seen: str) -> None:
    """It makes one only for a log that has never had a message, or that names the one that it has begun to make; where nodes obey
    a key that is gone, for none.
    """
    brain = of(tmp_path / "b1", server, f"no-key-{state}-{seen}".replace(" ", "-").replace("'", ""))
    if seen == "joined":
        joined(brain, tmp_path)
    if seen == "rotated":
        rotated(brain)
        for file in brain.data_dir.glob("signing.key*"):
            file.unlink()
    first = keys.make_first(brain.signing_key).key_id if state == "mine" else ""
    await prepared(server, brain, state, first)
    if seen != "new":
        with pytest.raises(ConfigError, match="is gone"):
            signing_key.check(brain)
    else:
        signing_key.check(brain)
        said = await settled(brain, "b1")
        makes = state in ("empty", "mine")
        assert brain.signing_key.exists() is makes
        assert (said == await first_claim(server, brain)) is makes
        words = {
            "another's": "brain b2 has written the log of cell no-key-anothers-new: its key is 0123456789ab",
            "without a claim": "and another brain has written the log",
            "purged": "has lost its beginning, the messages before 4",
        }
        assert words.get(state, said) in said
    async with client(server.url) as asked:
        await asked.jsm().delete_stream(subjects.stream(brain.cell))


async def test_two_keys_are_told_until_one_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second brain's key was made by hand (`gpuward cell share`) while the first one claimed the log: the second one leaves
    the lead, lets no node join, and says what to do by whom; when that is done, it is over.
    """
    monkeypatch.setattr(key_claim, "CHECK_S", 0.2)
    with nats_server(tmp_path / "nats") as server:
        async with outside() as out:
            more = {"nats": {"url": server.url}} | out.config
            first = Lab(tmp_path / "b1", more | {"brain": "b1"})
            second = Lab(tmp_path / "b2", more | {"brain": "b2"})
            keys.load_signer(second.config.signing_key)
            await first.start()
            await second.start(leads=False)
            await told(out, TWO_KEYS)
            (page,) = [page for page in out.pages if page["cause"] == TWO_KEYS]
            assert "brain b1, whose key is" in page["why_now"]
            assert "lets no node join" in page["why_now"]
            assert second.running is not None
            assert await answer_to_join(second) == 503
            await first.stop()
            await second.until(lambda status: status["leads"], "alone it pages what nodes report")
            await first.start()
            assert first.running is not None
            shared = cell_shared.gathered(first.config)
            for file in second.config.data_dir.glob("signing.key*"):
                file.rename(tmp_path / file.name)
            cell_shared.take(second.config, shared, time.time())
            await told(out, TWO_KEYS, "resolve")
            assert await answer_to_join(second) == 200
            assert out.told(TWO_KEYS) == ["open", "resolve"]
            await second.stop()
            await first.stop()


async def test_a_brain_with_a_key_claims_the_log_that_has_come_in_the_place_of_its_own(
    tmp_path: Path,
) -> None:
    """The log was deleted under it: a second brain that is started then makes no key."""
    with nats_server(tmp_path / "nats") as server:
        first = Lab(tmp_path / "b1", {"nats": {"url": server.url}, "brain": "b1"})
        await first.start()
        assert first.running is not None
        async with client(server.url) as asked:
            await asked.jsm().delete_stream(subjects.stream("default"))
        key = first.running.signer.key_id

        async def claimed() -> bool:
            async with client(server.url) as asked:
                try:
                    extent = await log.info(asked, "default")
                except NotFoundError:  # there is no log yet
                    return False
                found = await signing_key_log.claim_of(asked, "default", extent)
                return found is not None and found.key_id == key

        async with asyncio.timeout(60):
            while not await claimed():
                await asyncio.sleep(0.1)
        second = Lab(tmp_path / "b2", {"nats": {"url": server.url}, "brain": "b2"})
        with pytest.raises(ConfigError, match="brain b1 has written the log"):
            await second.start(leads=False)
        await first.stop()
