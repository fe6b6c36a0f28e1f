"""Server-sent events of a real brain: connections are cut, the brain is killed in between, and nothing is missed or doubled."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import orjson
import pytest

from brain.console.api.endpoint import PREFIX
from tests import people
from tests.real.brain_kit import Lab, lab

pytestmark = pytest.mark.component("nats-server")


@dataclass(slots=True)
class Watcher:
    """A client as browsers have it: it comes again with the id of the last event that it got."""

    whole: Lab
    since: str = ""
    notes: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    connections: int = 0
    got: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Until cancelled. A brain that does not answer is asked again."""
        while True:
            with contextlib.suppress(aiohttp.ClientError, ConnectionError):
                await self.once()
            await asyncio.sleep(0.05)

    async def once(self, most: int = 1_000_000) -> None:
        """One connection, cut after so many events."""
        assert self.whole.running is not None
        headers = people.bearer(self.whole.ann) | ({"Last-Event-ID": self.since} if self.since else {})
        async with (
            aiohttp.ClientSession(self.whole.running.console_url, headers=headers) as session,
            session.get(f"{PREFIX}/watch", timeout=aiohttp.ClientTimeout(total=None)) as answer,
        ):
            assert answer.content_type == "text/event-stream"
            self.connections += 1
            id_ = kind = ""
            async for raw in answer.content:
                name, _, value = raw.decode().rstrip("\n").partition(": ")
                match name:
                    case "id":
                        id_ = value
                    case "event":
                        kind = value
                    case "data":
                        self.since = id_ or self.since
                        self.kinds.append(kind)
                        if kind == "note":
                            self.notes.append(orjson.loads(value)["id"])
                        self.got.set()
                        if (most := most - 1) <= 0:
                            return

    async def has(self, note: str) -> None:
        """Waits until it got a note."""
        async with asyncio.timeout(60):
            while note not in self.notes:
                self.got.clear()
                await self.got.wait()


async def newest(whole: Lab) -> str:
    """The newest note of the engine."""
    notes = (await whole.get(f"{PREFIX}/notes?limit=50"))["notes"]
    return str(next(one["id"] for one in notes if not one["id"].startswith("brain:")))


async def every(whole: Lab) -> list[str]:
    """All notes of the history, in order."""
    return [one["id"] for one in reversed((await whole.get(f"{PREFIX}/notes?limit=1000"))["notes"])]


async def test_connections_and_the_brain_end_and_nothing_is_missed_or_doubled(tmp_path: Path) -> None:
    """A watcher whose connection is cut after each third event, one that stays until the brain is killed, and one that is away
    while the brain handles what came meanwhile: each has every note from its beginning, once, in order.
    """
    async with lab(tmp_path) as whole:
        cut, stays, away = Watcher(whole), Watcher(whole), Watcher(whole)
        for one in (cut, stays, away):
            await one.once(1)
            assert one.kinds == ["begin"]
        tasks = [asyncio.create_task(stays.run()), asyncio.create_task(_cut(cut))]
        for number in range(8):
            await whole.say("hold", scope="all", why=f"a look {number}")
            await whole.say("release", scope="all")
        await whole.stop()
        await whole.start()
        for number in range(8):
            await whole.say("hold", scope="all", why=f"another look {number}")
            await whole.say("release", scope="all")
        last = await newest(whole)
        tasks.append(asyncio.create_task(away.run()))
        for one in (cut, stays, away):
            await one.has(last)
        whole_history = await every(whole)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in (cut, stays, away):
            first = whole_history.index(one.notes[0])
            assert one.notes == whole_history[first : first + len(one.notes)], "in order, each once"
            said = [note for note in whole_history if note.startswith("s:")]
            assert [note for note in one.notes if note.startswith("s:")] == said
            assert "lost" not in one.kinds
        assert len(said) >= 32
        assert cut.connections > 8


async def _cut(watcher: Watcher) -> None:
    while True:
        with contextlib.suppress(aiohttp.ClientError, ConnectionError):
            await watcher.once(3)
        await asyncio.sleep(0.05)


async def test_a_watcher_goes_on_at_a_history_that_was_made_again(tmp_path: Path) -> None:
    """`history.sqlite` is deleted while the brain is down: its notes have other places then, at the same positions of the log."""
    async with lab(tmp_path) as whole:
        watcher = Watcher(whole)
        await watcher.once(1)
        for number in range(4):
            await whole.say("hold", scope="all", why=f"a look {number}")
        await watcher.once(3)
        await whole.stop()
        for file in whole.config.data_dir.glob("history.sqlite*"):
            file.unlink()
        for file in whole.config.data_dir.glob("state.snapshot*"):
            file.unlink()
        await whole.start()
        await whole.say("hold", scope="all", why="the last look")
        last = await newest(whole)
        task = asyncio.create_task(watcher.run())
        await watcher.has(last)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        got = [one for one in watcher.notes if not one.startswith("brain:")]
        engine = [one for one in await every(whole) if not one.startswith("brain:")]
        assert got == engine[engine.index(got[0]) :]
        assert len(got) == len(set(got)) >= 5


async def test_what_is_no_id_of_ours_is_told_as_lost(tmp_path: Path) -> None:
    """And the watcher is told where it is, to go on from there."""
    async with lab(tmp_path) as whole:
        watcher = Watcher(whole, since="brain:b1:123")
        await watcher.once(2)
        assert (watcher.kinds, watcher.since.count("/")) == (["lost", "begin"], 3)
