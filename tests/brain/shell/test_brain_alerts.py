"""Pages about the brain itself: once for each trouble, until a channel takes it, and again after it was over."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.contract.errors import Unreachable
from agent.shared.tasks import Tasks
from brain.adapters.broker import brain_connection
from brain.adapters.log import LogClock
from brain.adapters.readmodel import ReadModel
from brain.config import NatsConfig
from brain.console.feed import Feed
from brain.leader import brain_alerts, connection_watch
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.connection_watch import ConnectionWatch
from brain.leader.notes import BrainNotes
from brain.notify.message import PageMessage
from brain.notify.notifier import Notifier


class Pager:
    """A channel that refuses the first few pages."""

    name = "pager"

    def __init__(self) -> None:
        self.refuses = 0
        self.pages: list[PageMessage] = []

    async def send(self, message: PageMessage) -> None:
        """As Channel.send."""
        if self.refuses:
            self.refuses -= 1
            raise Unreachable("away")
        self.pages.append(message)

    async def close(self) -> None:
        """As Channel.close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A brain's alerts, and where they arrive."""

    alerts: BrainAlerts
    pager: Pager
    readmodel: ReadModel

    def causes(self) -> list[str]:
        """Of the pages that arrived."""
        return [page.cause for page in self.pager.pages]

    def notes(self) -> list[str]:
        """Their kinds."""
        return [note["kind"] for note in self.readmodel.newest_notes(100)]


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """With one channel for the people on call."""
    monkeypatch.setattr(brain_alerts, "FIRST_PAUSE_S", 0.01)
    readmodel, pager = ReadModel(tmp_path / "history.sqlite"), Pager()
    readmodel.begin("log-1")
    notes = BrainNotes("b1", LogClock(), readmodel, Feed())
    async with Tasks() as background:
        notifier = Notifier({"pager": pager}, {"oncall": ["pager"]})
        alerts = BrainAlerts(brain="b1", notifier=notifier, notes=notes, background=background)
        yield Site(alerts=alerts, pager=pager, readmodel=readmodel)
    readmodel.close()


async def until(look: Callable[[], bool]) -> None:
    """Waits for a condition."""
    async with asyncio.timeout(60):
        while not look():
            await asyncio.sleep(0.005)


async def test_a_trouble_is_paged_once_until_it_is_over(site: Site) -> None:
    """However often it is reported; each time with a note."""
    for _ in range(3):
        site.alerts.open("brain_rules", "no rules are in force: rules/gpu.yaml:3: is missing")
    await until(lambda: len(site.pager.pages) == 1)
    (page,) = site.pager.pages
    assert (page.severity, page.scope, page.state, page.what) == ("P1", "cell", "needs_human", "open")
    assert "rules/gpu.yaml:3" in page.to_text()
    assert site.notes() == ["brain.rules"]
    site.alerts.clear("brain_rules")
    site.alerts.open("brain_rules", "again")
    await until(lambda: len(site.pager.pages) == 2)
    assert site.notes() == ["brain.rules"] * 2


async def test_a_page_that_no_channel_takes_is_sent_again(site: Site) -> None:
    """For as long as it takes: nothing else repeats it. Another trouble does not wait for it."""
    site.pager.refuses = 3
    site.alerts.open("brain_bug", "an invariant is broken")
    site.alerts.open("brain_failing", "it fails again and again")
    await until(lambda: len(site.pager.pages) == 2)
    assert sorted(site.causes()) == ["brain_bug", "brain_failing"]


async def test_a_long_absence_of_nats_is_paged(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a short one; and after NATS was back the next one is paged again."""
    monkeypatch.setattr(connection_watch, "CHECK_S", 0.01)
    monkeypatch.setattr(connection_watch, "ALERT_AFTER_S", 0.2)
    connection = brain_connection(NatsConfig(), name="b1", url="nats://127.0.0.1:1")
    connection.connected = True
    watch = asyncio.create_task(ConnectionWatch(connection, site.alerts).serve())
    await asyncio.sleep(0.3)  # longer than an absence that is paged
    assert site.notes() == []
    async with asyncio.timeout(20):
        while len(site.pager.pages) < 2:
            connection.connected = not connection.connected
            await asyncio.sleep(0.3)
    assert site.causes() == ["brain_disconnected"] * 2
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
