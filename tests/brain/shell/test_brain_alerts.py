"""Pages about the brain itself: once for each trouble, until a channel takes it, and again after it was over."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.contract.errors import Unreachable
from agent.shared.tasks import Tasks
from brain.adapters.log import LogClock
from brain.adapters.readmodel import ReadModel
from brain.console.feed import Feed
from brain.leader import brain_alerts
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.history import HistoryWriter
from brain.leader.notes import BrainNotes
from brain.notify.message import PageMessage
from brain.notify.notifier import Notifier


class Pager:
    """A channel that refuses the first few pages, and all of one cause."""

    name = "pager"

    def __init__(self) -> None:
        self.refuses = 0
        self.refuses_cause = ""
        self.refused = 0
        self.pages: list[PageMessage] = []

    async def send(self, message: PageMessage) -> None:
        """As Channel.send."""
        if self.refuses or message.cause == self.refuses_cause:
            self.refuses = max(0, self.refuses - 1)
            self.refused += 1
            raise Unreachable("away")
        self.pages.append(message)

    async def reach(self) -> str:
        """As Channel.reach."""
        return self.name

    async def close(self) -> None:
        """As Channel.close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A brain's alerts, and where they arrive."""

    alerts: BrainAlerts
    pager: Pager
    readmodel: ReadModel
    history: HistoryWriter

    def causes(self) -> list[str]:
        """Of the pages that arrived."""
        return [page.cause for page in self.pager.pages]

    def notes(self) -> list[str]:
        """Their kinds."""
        assert self.history.flush()
        return [note["kind"] for note in self.readmodel.newest_notes(100)]


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """With one channel for the people on call."""
    monkeypatch.setattr(brain_alerts, "FIRST_PAUSE_S", 0.01)
    readmodel, pager = ReadModel(tmp_path / "history.sqlite"), Pager()
    readmodel.begin("log-1")
    history = HistoryWriter(readmodel, Feed())
    notes = BrainNotes("b1", LogClock(), history)
    async with Tasks() as background:
        notifier = Notifier({"pager": pager}, {"oncall": ["pager"]})
        alerts = BrainAlerts(
            brain="b1", notifier=notifier, notes=notes, background=background, file=tmp_path / "alerts.json"
        )
        yield Site(alerts=alerts, pager=pager, readmodel=readmodel, history=history)
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
    await until(lambda: len(site.pager.pages) == 3)
    assert sorted(page.what for page in site.pager.pages) == ["open", "open", "resolve"]
    assert site.notes() == ["brain.rules", "brain.rules.over", "brain.rules"]


async def test_a_page_that_no_channel_takes_is_sent_again(site: Site) -> None:
    """For as long as it takes: nothing else repeats it. Another trouble does not wait for it."""
    site.pager.refuses = 3
    site.alerts.open("brain_bug", "an invariant is broken")
    site.alerts.open("brain_failing", "it fails again and again")
    await until(lambda: len(site.pager.pages) == 2)
    assert sorted(site.causes()) == ["brain_bug", "brain_failing"]


async def test_people_hear_that_it_is_over(site: Site) -> None:
    """By the channel that told them, under the same alert; and an alert that lasts is told again."""
    site.alerts.open("brain_rules", "no rules are in force")
    await until(lambda: len(site.pager.pages) == 1)
    site.alerts.clear("brain_rules")
    await until(lambda: len(site.pager.pages) == 2)
    opened, over = site.pager.pages
    assert (over.what, over.status, over.dedup_key) == ("resolve", "resolve", opened.dedup_key)
    assert site.notes() == ["brain.rules", "brain.rules.over"]


async def test_an_alert_that_lasts_is_repeated(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some receivers close what is not refreshed."""
    monkeypatch.setattr(brain_alerts, "REPEAT_S", 0.05)
    site.alerts.open("brain_rules", "no rules are in force")
    await until(lambda: len(site.pager.pages) >= 3)
    site.alerts.clear("brain_rules")
    await until(lambda: site.pager.pages[-1].what == "resolve")
    assert [page.what for page in site.pager.pages[:3]] == ["open", "repeat", "repeat"]
    assert len({page.dedup_key for page in site.pager.pages}) == 1


async def test_what_nobody_heard_of_is_not_resolved(site: Site) -> None:
    """It was over before a channel took it: no page at all."""
    site.pager.refuses_cause = "brain_rules"  # also a page that is under way when it is over
    site.alerts.open("brain_rules", "no rules are in force")
    await until(lambda: site.pager.refused > 0)
    site.alerts.clear("brain_rules")
    site.alerts.open("brain_failing", "it fails again and again")
    await until(lambda: bool(site.pager.pages))
    assert site.causes() == ["brain_failing"]
    assert [alert.cause for alert in site.alerts.open_now] == ["brain_failing"]


async def test_a_page_says_what_to_do(site: Site) -> None:
    """Whatever the trouble is."""
    for cause in ("brain_rules", "brain_other"):
        site.alerts.open(cause, "no rules are in force")
    await until(lambda: len(site.pager.pages) == 2)
    assert all("what to do" in page.to_text() for page in site.pager.pages)


async def test_what_an_earlier_run_has_paged_is_resolved(tmp_path: Path) -> None:
    """Also when the reason is another one now: it is one trouble, told once, and over once."""
    readmodel, pager = ReadModel(tmp_path / "history.sqlite"), Pager()
    readmodel.begin("log-1")
    notes, notifier = (
        BrainNotes("b1", LogClock(), HistoryWriter(readmodel, Feed())),
        Notifier({"pager": pager}, {"oncall": ["pager"]}),
    )
    for reason in ("the folder is missing", "rules/a.yaml:1: not YAML"):
        async with Tasks() as background:
            alerts = BrainAlerts(
                brain="b1",
                notifier=notifier,
                notes=notes,
                background=background,
                file=tmp_path / "alerts.json",
            )
            alerts.resume(alerts.kept())
            alerts.open("brain_rules", reason)
            await until((tmp_path / "alerts.json").exists)
            if reason.startswith("rules/"):
                alerts.clear("brain_rules")
                await until(lambda: len(pager.pages) == 2)
    assert [page.what for page in pager.pages] == ["open", "resolve"]
    assert len({page.dedup_key for page in pager.pages}) == 1
    assert "rules/a.yaml" in pager.pages[1].why_now
    assert (tmp_path / "alerts.json").read_text() == "[]"
    readmodel.close()
