"""Pages about the brain itself. They need neither the log nor the lease."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import orjson

from agent.shared import files
from agent.shared.latest_write import LatestWrite
from agent.shared.tasks import Tasks
from brain.core.effects import PageSubject, SendPage
from brain.core.pack.spec import Priority
from brain.core.state import IncidentState
from brain.leader.brain_knowledge import KNOWN, OTHERS
from brain.leader.notes import BrainNotes
from brain.notify.compose import compose
from brain.notify.notifier import ONCALL, Notifier

FIRST_PAUSE_S = 5.0  # after a page that no channel took
MAX_PAUSE_S = 300.0
# Troubles that lie outside of this process: each run of the brain looks whether they are over, and clears them.
LASTING = (
    "brain_rules",
    "brain_disconnected",
    "nobody_leads",
    "log_refuses",
    "certificate_ends",
    "registry_unreadable",
    "trust_unreadable",
    "tokens_unreadable",
    "people_unreadable",
    "keys_behind",
    "two_keys",
    "scheduler_rights",
    "log_time",
    "archive_behind",
    "brain_disk",
    "report_unsent",
    "history_unwritten",  # the name of "brain_disk" until 0.2
)
_KEPT = {"cause", "text", "since", "took"}  # of an alert, on disk
PageWhat = Literal["open", "repeat", "resolve"]
REPEAT_S = 900.0  # an alert that is still open is sent again: some receivers close what is not refreshed


@dataclass(slots=True, kw_only=True)
class BrainAlert:
    """One trouble of this brain, until it is over."""

    cause: str
    text: str
    since: float
    over: asyncio.Event = field(default_factory=asyncio.Event)
    # channels that took it
    took: list[str] = field(default_factory=list)


class BrainAlerts:
    """Opens one alert for each cause, and resolves it when that is cleared."""

    def __init__(
        self,
        *,
        brain: str,
        notifier: Notifier,
        notes: BrainNotes,
        background: Tasks,
        file: Path,
        spare: Path | None = None,
    ) -> None:
        """`file`: what people were told and is not over; it outlives this process. `spare`: a file in memory, which has it while
        the disk of the first takes nothing, so that whoever starts the brain again is not told anew, and hears of the end.
        """
        self._file = file
        self._spare = spare
        self._kept = LatestWrite(self._write)
        self._brain = brain
        self._notifier = notifier
        self._notes = notes
        self._background = background
        self._open: dict[str, BrainAlert] = {}

    @property
    def open_now(self) -> Sequence[BrainAlert]:
        """The alerts that are open, oldest first."""
        return list(self._open.values())

    def kept(self) -> Sequence[object]:
        """What an earlier run of this brain has left on disk, or in memory; it may hang as the disk does."""
        found, spare = files.read_json(self._file), files.read_json(self._spare) if self._spare else None
        # A folder in memory may be found by whoever has the same inode later.
        if isinstance(spare, dict) and spare.get("file") == str(self._file):
            found = spare.get("alerts")
        return found if isinstance(found, list) else ()

    def resume(self, kept: Sequence[object]) -> None:
        """Takes over what an earlier run of this brain has paged: it is over when that is seen, and then people hear of it. What
        is open already stays as it is.
        """
        for one in kept:
            if not isinstance(one, dict) or one.keys() != _KEPT:
                continue  # of another version
            alert = BrainAlert(**one)
            if alert.cause in self._open:
                continue
            self._open[alert.cause] = alert
            self._background.start(self._tell(alert), alert.cause)

    def open(self, cause: str, text: str) -> None:
        """Pages the people on call, unless they were paged for this cause since it was last cleared."""
        if (known := self._open.get(cause)) is not None:
            known.text = text  # its next page says it
            return
        alert = self._open[cause] = BrainAlert(cause=cause, text=text, since=time.time())
        self._notes.write(cause.replace("brain_", "brain."), text)
        self._background.start(self._tell(alert), cause)

    def of(self, cause: str) -> Callable[[str], None]:
        """What opens it with a text, and clears it with an empty one."""
        return lambda text: self.open(cause, text) if text else self.clear(cause)

    def tell(self, cause: str, text: str) -> None:
        """Pages the people on call once: something has happened, and will not be over by itself."""
        self._notes.write(cause, text)
        alert = BrainAlert(cause=cause, text=text, since=time.time())
        self._background.start(_until_done(lambda: self._send(alert, "open", ()), alert.over), cause)

    def clear(self, cause: str) -> None:
        """The cause is gone: people who were paged are told so, and the next time they are paged again."""
        alert = self._open.pop(cause, None)
        if alert is not None:
            self._notes.write(f"{cause.replace('brain_', 'brain.')}.over", f"over: {alert.text}")
            alert.over.set()
            self._keep()

    async def _tell(self, alert: BrainAlert) -> None:
        """Pages until a channel takes it or it is over; then, when it is over, says that to whom it told."""
        if not alert.took:
            alert.took = await _until_done(lambda: self._send(alert, "open", ()), alert.over)
            if not alert.took:
                return  # nobody has heard of it
            self._keep()
        while not alert.over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(REPEAT_S):
                    await alert.over.wait()
                break
            alert.took = await self._send(alert, "repeat", ()) or alert.took
        await _until_done(lambda: self._send(alert, "resolve", alert.took), asyncio.Event())

    def _keep(self) -> None:
        """Writes what is open, somebody has heard of, and any run sees the end of. A disk that takes nothing keeps no page
        back.
        """
        told = [one for one in self._open.values() if one.took and one.cause in LASTING]
        self._kept.put(
            orjson.dumps(
                [{"cause": one.cause, "text": one.text, "since": one.since, "took": one.took} for one in told]
            )
        )

    def _write(self, content: bytes) -> None:
        """OSError: it is at most in the spare file."""
        try:
            files.write(self._file, content)
        except OSError:
            if self._spare is not None:
                alerts = orjson.Fragment(content)
                files.write(self._spare, orjson.dumps({"file": str(self._file), "alerts": alerts}))
            raise
        if self._spare is not None:
            self._spare.unlink(missing_ok=True)

    async def _send(self, alert: BrainAlert, what: PageWhat, alerted: Sequence[str]) -> list[str]:
        """Sends one page; the channels that took it. `alerted`: those that took the alert."""
        subject = PageSubject(
            id=f"{alert.cause}-{self._brain}-{int(alert.since * 1000)}",
            severity=Priority.P1,
            cause=alert.cause,
            state=IncidentState.NEEDS_HUMAN if what != "resolve" else IncidentState.CLOSED,
            scope="cell",
            node="",
            because=alert.text,
            since=alert.since,
        )
        text = alert.text if what != "resolve" else f"over since {self._brain} looked last: {alert.text}"
        page = SendPage(
            id=f"{subject.id}.{what}",
            subject=subject,
            what=what,
            to=ONCALL,
            text=text,
            alerted=tuple(alerted),
        )
        message = compose(page, knowledge=KNOWN.get(alert.cause, OTHERS))
        sent = await self._notifier.send(message, alerted)
        return sent.channels.split(", ") if sent.delivered else []


async def _until_done(attempt: Callable[[], Awaitable[list[str]]], give_up: asyncio.Event) -> list[str]:
    """Tries until it succeeds, with growing pauses; an empty list: it was given up first."""
    pause_s = FIRST_PAUSE_S
    while not (done := await attempt()):
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await give_up.wait()
            return []
        pause_s = min(MAX_PAUSE_S, pause_s * 2)
    return done
