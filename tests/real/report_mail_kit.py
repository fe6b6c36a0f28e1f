"""Brains that mail reports, as far as that takes: for tests with a real NATS, a real mail server and a real history."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast

import nats
from nats.aio.client import Client

from agent.contract.errors import Unreachable
from agent.shared.tasks import end
from brain import config
from brain.adapters import sent_reports
from brain.adapters.readmodel import ReadModel
from brain.adapters.sent_reports import SentReport
from brain.core.state import State
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.current_client import CurrentClient
from brain.leader.history import HistoryWriter
from brain.leader.leadership import Leadership
from brain.leader.notes import BrainNotes
from brain.leader.replica import Replica
from brain.leader.report_mail import ReportMail, scheduled_reports

DAY_S = 86_400.0
SHIFT: dict[str, Any] = {
    "name": "shift",
    "what": "shift",
    "at": ["08:00", "20:00"],
    "to": ["ann@example.com", "bob@example.com"],
}
AT_8 = 20_000 * DAY_S + 8 * 3600


class Brains:
    """Whom several brains of one cell share: NATS, the time, and what each is told to do."""

    def __init__(self, folder: Path, url: str, model: ReadModel) -> None:
        self.folder = folder
        self.url = url
        self.model = model
        self.now = AT_8 - 3600
        self.leader = ""
        self.noted: list[str] = []
        self.alerts: dict[str, str] = {}  # brain -> what it tells people
        self.behind = False

    @property
    def alert(self) -> str:
        """What whoever leads tells people."""
        return self.alerts.get(self.leader, "")

    def brain(self, name: str, mail_url: str, *tables: dict[str, Any]) -> "OneBrain":
        """Another one."""
        file = self.folder / f"{name}.url"
        file.write_text(mail_url + "\n")
        given = [{"url_file": str(file)} | table for table in tables or (SHIFT,)]
        return OneBrain(self, name, config.parse({"reports": given}, "test", self.folder))


class OneBrain:
    """What a brain that mails reports consists of, without the rest."""

    epoch = 1
    seq = 1
    caught_up = True

    def __init__(self, brains: Brains, name: str, given: config.BrainConfig) -> None:
        self.brains = brains
        self.name = name
        self.config = given
        self.state = State()
        self.state.now = brains.now
        self.client: Client | None = None

    def leads(self) -> bool:
        """As in Leadership."""
        return self.brains.leader == self.name

    async def confirm(self, _: int) -> bool:
        """As in Leadership."""
        return self.leads()

    async def reached(self, _: int, __: float) -> bool:
        """As in HistoryWriter."""
        return not self.brains.behind

    def write(self, kind: str, text: str) -> None:
        """As in BrainNotes."""
        self.brains.noted.append(f"{self.name} {kind}: {text}")

    def of(self, _: str) -> Any:
        """As in BrainAlerts."""
        told = self.brains.alerts
        return lambda text: told.update({self.name: text}) if self.leads() or not text else None

    def required(self) -> Any:
        """As in CurrentClient."""
        if self.client is None:
            raise Unreachable("there is no connection to NATS")
        return self.client

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[ReportMail]:
        """It runs."""
        self.client = await nats.connect(self.brains.url)
        own: Any = self
        it = ReportMail(
            scheduled_reports(self.config),
            config=self.config,
            nats=cast(CurrentClient, own),
            leadership=cast(Leadership, own),
            replica=cast(Replica, own),
            history=cast(HistoryWriter, own),
            reader=self.brains.model.reader(lambda: None),
            notes=cast(BrainNotes, own),
            alerts=cast(BrainAlerts, own),
            now=lambda: self.brains.now,
        )
        task = asyncio.create_task(it.serve())
        try:
            yield it
        finally:
            assert not task.done(), task.exception()
            await end(task)
            await self.client.close()
            self.client = None

    async def sent(self, name: str = "shift") -> SentReport | None:
        """What stands in NATS."""
        client = await nats.connect(self.brains.url)
        try:
            return await sent_reports.read(client, "default", name)
        finally:
            await client.close()


async def until(look: Any, what: str) -> Any:
    """The first true answer; fails when there is none in time."""
    deadline = time.monotonic() + 60
    while True:
        found = look()
        found = await found if asyncio.iscoroutine(found) else found
        if found:
            return found
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.02)


async def looked() -> None:
    """Long enough for several looks."""
    await asyncio.sleep(0.5)


def plain(message: EmailMessage) -> str:
    """The text of a mail."""
    body = message.get_body(("plain",))
    assert body is not None
    return str(body.get_content())
