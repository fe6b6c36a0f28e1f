"""Mails the reports of `[[reports]]`, while this brain leads.

When one is due follows from the log's time; which were mailed stands in NATS (brain/adapters/sent_reports.py), where every
brain finds it. So each is mailed once over restarts and changes of the leader, as far as that can be: one that dies between the
mail server's yes and the note of it mails it again, under the same Message-ID (decision 74).
"""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.contract.errors import ActionError, Refused, Unreachable
from agent.shared.nats_connection import LOST
from agent.shared.tasks import abandonable
from brain.adapters import sent_reports
from brain.adapters.history_queries import HistoryQueries
from brain.adapters.sent_reports import SentReport
from brain.config import BrainConfig
from brain.console.counters.energy import EnergyMeter
from brain.console.fleet.columns import gpus_of
from brain.console.reading import Rests
from brain.console.reports import gather, mail, schedule
from brain.console.reports.mail import Envelope
from brain.console.reports.page import ReportPage
from brain.console.reports.schedule import DueReport
from brain.console.speech import in_language
from brain.console.words import Words
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.current_client import CurrentClient
from brain.leader.history import HistoryWriter
from brain.leader.leadership import Leadership
from brain.leader.notes import BrainNotes
from brain.leader.replica import Replica
from brain.notify.mail import Mailer, of_file
from brain.options import FOLDER
from brain.outgoing import outgoing
from brain.reports_config import ReportConfig

_log = logging.getLogger(__name__)
CHECK_S = 1.0
FIRST_PAUSE_S = 60.0  # after a mail that was not taken; doubled with each further one
MAX_PAUSE_S = 1800.0
TOLD_AFTER_S = 3600.0  # people are paged when one could not be mailed for so long; at once where a person must correct something
UNSENT = "report_unsent"
_SETTLED_S = 60.0  # for the history to have what was handled


@dataclass(slots=True, kw_only=True)
class ScheduledReport:
    """One table of `[[reports]]`, and how its newest attempt went."""

    want: ReportConfig
    zone: ZoneInfo
    mailer: Mailer
    page: ReportPage
    # what NATS is known to have; None: this brain has to look
    sent: SentReport | None = None
    # NATS has not taken it yet
    unkept: bool = False
    # attempts at the one that is due, and by the monotonic clock the first one and the next
    tries: int = 0
    first_s: float = 0.0
    next_s: float = 0.0
    # what people are told; empty: nothing
    trouble: str = ""

    @property
    def to(self) -> tuple[str, ...]:
        """Who gets it."""
        return self.want.to or self.mailer.to


def scheduled_reports(config: BrainConfig) -> list[ScheduledReport]:
    """Those of a configuration. ConfigError: one of their mail servers cannot be used."""
    found = []
    for number, want in enumerate(config.reports):
        url_file, where = want.url_file, f"reports.{number}.url_file"
        if url_file is None:
            table = config.channels[want.channel]
            url_file, where = (
                Path(table.get(FOLDER, ".")) / str(table.get("url_file", "")),
                f"reports.{number}.channel",
            )
        zone = schedule.zone_of(want, config.settings.zone)
        page = ReportPage(
            words=Words(want.language), zone=zone, cell=config.cell, console_url=want.console_url.rstrip("/")
        )
        found.append(ScheduledReport(want=want, zone=zone, mailer=of_file(url_file, where), page=page))
    return found


class ReportMail:
    """Mails what is due, again and again."""

    def __init__(
        self,
        reports: Sequence[ScheduledReport],
        *,
        config: BrainConfig,
        nats: CurrentClient,
        leadership: Leadership,
        replica: Replica,
        history: HistoryWriter,
        reader: HistoryQueries,
        notes: BrainNotes,
        alerts: BrainAlerts,
        now: Callable[[], float],
    ) -> None:
        """`reader`: one that nobody else uses. `now`: the log's time."""
        self._reports = reports
        self._cell = config.cell
        self._people_s = config.console.people_begin_s
        self._replicas = config.nats.replicas
        self._nats = nats
        self._leadership = leadership
        self._replica = replica
        self._history = history
        self._reader = reader
        self._notes = notes
        self._tell = alerts.of(UNSENT)
        self._now = now
        self._rests = Rests()
        self._meter = EnergyMeter(config.console.prometheus, outgoing(config.outgoing))

    async def serve(self) -> None:
        """Until cancelled. What goes wrong with a report ends nothing else."""
        while True:
            await asyncio.sleep(CHECK_S)
            if not (self._leadership.leads() and self._replica.caught_up):
                self._forget()
                continue
            for one in self._reports:
                if time.monotonic() >= one.next_s:
                    await self._look(one)
            if not any(one.tries for one in self._reports):
                self._tell("")
            elif told := "; ".join(one.trouble for one in self._reports if one.trouble):
                self._tell(told)

    def _forget(self) -> None:
        """Another brain leads: it knows better by now, and tells what is wrong."""
        for one in self._reports:
            one.sent, one.tries, one.next_s, one.trouble = None, 0, 0.0, ""
        self._tell("")

    async def _look(self, one: ScheduledReport) -> None:
        (failed,) = await asyncio.gather(self._attempt(one), return_exceptions=True)
        if failed is None:
            one.tries, one.next_s, one.trouble = 0, 0.0, ""
        elif isinstance(failed, Exception):
            if not isinstance(failed, (ActionError, sqlite3.Error, *LOST)):
                _log.error("report %s: a bug", one.want.name, exc_info=failed)
            self._failed(one, failed)
        else:
            raise failed

    def _failed(self, one: ScheduledReport, error: Exception) -> None:
        now_s = time.monotonic()
        one.first_s = one.first_s if one.tries else now_s
        pause_s = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2**one.tries)
        one.tries += 1
        one.next_s = now_s + pause_s
        text = f"report {one.want.name} could not be mailed: {error or type(error).__name__}"
        if one.tries == 1:
            self._notes.write("report.unsent", f"{text}; it is tried again")
        if isinstance(error, Refused) or one.trouble or now_s - one.first_s >= TOLD_AFTER_S:
            one.trouble = text

    async def _attempt(self, one: ScheduledReport) -> None:
        """Returns when nothing is due any more, else raises why."""
        now = self._now()
        if one.unkept and one.sent is not None:
            await self._keep(one, one.sent)
        if one.sent is None:
            one.sent = await sent_reports.read(self._nats.required(), self._cell, one.want.name)
        if one.sent is None:  # it is new: it begins with the next one
            await self._keep(one, SentReport(mailed=schedule.newest(one.want, one.zone, now) or now))
            return
        due = schedule.due(one.want, one.zone, now, one.sent.mailed)
        if (
            due is not None and one.sent.mailed < one.sent.begun < due.at
        ):  # some have got the one before it: none was missed
            due = schedule.due(one.want, one.zone, now, one.sent.begun)
        if due is not None:
            await self._mail(one, one.sent, due, now)

    async def _mail(self, one: ScheduledReport, sent: SentReport, due: DueReport, now: float) -> None:
        took = sent.took if sent.begun == due.at else ()
        message = await self._made(one, due, now)
        if not await self._leadership.confirm(self._leadership.epoch):
            return
        outcome = await one.mailer.send(message, [address for address in one.to if address not in took])
        took = (*took, *outcome.took)
        if outcome.never or outcome.later:
            if outcome.took:
                await self._keep(one, SentReport(mailed=sent.mailed, begun=due.at, took=took))
            said = ", ".join(
                f"{address} ({text})" for address, text in {**outcome.never, **outcome.later}.items()
            )
            raise (Refused if outcome.never else Unreachable)(
                f"{one.mailer.host} does not take it for {said}"
            )
        late = f", late: it was due at {one.page.moment(due.at)}" if now - due.at >= mail.LATE_S else ""
        self._notes.write("report.sent", f"report {one.want.name} was mailed to {', '.join(took)}{late}")
        await self._keep(one, SentReport(mailed=due.at))

    async def _made(self, one: ScheduledReport, due: DueReport, now: float) -> EmailMessage:
        if not await self._history.reached(self._replica.seq, _SETTLED_S):
            raise Unreachable("the history is behind: this brain's disk does not take it")
        with in_language(one.want.language):
            standing = await gather.standing_now(self._replica.state) if one.want.what == "shift" else None
        energy = await self._meter.measured(due.since, due.at, gpus_of(self._replica.state))
        envelope = Envelope(sender=one.mailer.sender, to=one.to, now=now)

        def work() -> EmailMessage:
            with in_language(one.want.language):
                told = gather.told(
                    self._reader, due.since, due.at, self._rests.pause, standing, energy, self._people_s
                )
            return mail.composed(one.want, due, one.page, told, envelope)

        try:
            return await abandonable(work, "report-mail")
        except sqlite3.Error as error:
            self._reader.failed(error)
            raise

    async def _keep(self, one: ScheduledReport, sent: SentReport) -> None:
        """What has gone out is never forgotten by this brain, also where NATS does not take it yet."""
        one.sent, one.unkept = sent, True
        await sent_reports.write(self._nats.required(), self._cell, one.want.name, sent, self._replicas)
        one.unkept = False
