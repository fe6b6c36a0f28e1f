"""The agent's supervisor: what breaks is said once per cause, tried again, and ends nothing else.

The only place in the agent that catches every exception.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence

from agent.collectors.base import Collector
from agent.collectors.readings import Line, Mark, Reading
from agent.contract import kinds
from agent.contract.components import NODE, check
from agent.contract.messages import Draft, Severity, clip
from agent.host import Host
from agent.tasks import end
from agent.uplink.spool import LINE, Spool

FIRST_PAUSE_S = 1.0  # before a broken source is opened again; doubled up to MAX_PAUSE_S
MAX_PAUSE_S = 60.0
WELL_S = 60.0  # a source that worked this long starts with a short pause again
MAX_CAUSES = 200  # remembered, so that a failure is said once and not each second

_log = logging.getLogger(__name__)


class Feeder:
    """Hands each reading to the collectors that want it; a collector that raises loses that reading, no
    more.
    """

    def __init__(
        self,
        host: Host,
        collectors: Sequence[Collector],
        spool: Spool,
        *,
        heard: Callable[[Sequence[Draft]], None] = lambda _: None,
    ) -> None:
        """`heard` is told what is in the spool now."""
        self._heard = heard
        self._host = host
        self._collectors = collectors
        self._wanting: dict[type, list[Collector]] = {}
        self._spool = spool
        self._boot = host.boot_id()
        self._line: int | None = None  # sequence number of the latest kernel log record
        self._marks: dict[str, str] = {}  # how far the other sources have read, where that is not kept yet
        self._said: set[tuple[str, str]] = set()

    def emit(self, reading: Reading) -> None:
        """One reading; its facts are in the spool when this returns."""
        kind = type(reading)
        if isinstance(reading, Mark):
            self._marks[reading.key] = reading.value
            return
        wanting = self._wanting.get(kind)
        if wanting is None:
            wanting = self._wanting[kind] = [one for one in self._collectors if issubclass(kind, one.wants)]
        if isinstance(reading, Line) and reading.seq >= 0:
            self._line = reading.seq
        now_s = self._host.mono_s()
        drafts: list[Draft] = []
        for collector in wanting:
            drafts += self._ask(collector, reading, now_s)
        if drafts:
            # Facts that a collector had held back come with a tick: they belong to lines up to here as well.
            line = {} if self._line is None else {LINE: f"{self._boot} {self._line}"}
            self._spool.put_all(drafts, now_s, self._marks | line)
            self._marks.clear()
            self._heard(drafts)

    def save_marks(self) -> bool:
        """Keeps how far was read where nothing was said (facts keep it themselves); was there anything? Seldom: collectors
        hold back for seconds what a line repeats.
        """
        if not self._marks:
            return False
        self._spool.save_marks(self._marks)
        self._marks.clear()
        return True

    def failed(self, source: str, reason: str, *, again: bool = False) -> None:
        """Reports `agent.source_failed`, once for each cause (`again`: it had worked in between)."""
        cause = (source, reason)
        if cause in self._said and not again:
            return
        if len(self._said) < MAX_CAUSES:
            self._said.add(cause)
        _log.warning("%s failed: %s", source, reason)
        draft = Draft(
            kind="agent.source_failed",
            component=NODE,
            severity=Severity.ERROR,
            data={"source": source, "reason": clip(reason)},
            evidence=clip(reason),
        )
        self._spool.put(draft, self._host.mono_s())

    def _ask(self, collector: Collector, reading: Reading, now_s: float) -> list[Draft]:
        try:
            drafts = list(collector.feed(reading, now_s))
            for draft in drafts:
                kinds.check(draft)
                check(draft.component)
            return drafts
        except Exception as error:  # noqa: BLE001 - the supervisor: a bug of one collector must not silence the others
            reason = f"{type(error).__name__}: {clip(str(error), 200)}"
            if (f"collector:{collector.name}", reason) not in self._said:
                _log.exception("collector %s dropped a %s", collector.name, type(reading).__name__)
            self.failed(f"collector:{collector.name}", reason)
            return []


def keep_going(
    undo: contextlib.AsyncExitStack,
    name: str,
    work: Callable[[], Awaitable[None]],
    feeder: Feeder,
    host: Host,
    *,
    needs: str = "",
) -> None:
    """Starts `work`, keeps it going, and ends it when the stack is undone."""
    task = asyncio.create_task(_keep(name, work, feeder, host, needs), name=name)

    undo.push_async_callback(end, task)


async def _keep(
    name: str, work: Callable[[], Awaitable[None]], feeder: Feeder, host: Host, needs: str
) -> None:
    """Runs `work` again and again; what ended it is said once per cause."""
    pause_s = FIRST_PAUSE_S
    while True:
        began_s = host.mono_s()
        try:
            await work()
            reason = "it ended"
        except OSError as error:
            reason = error.strerror or str(error)
            if needs:
                reason = f"{reason} (needs {needs})"
        except Exception as error:  # noqa: BLE001 - the supervisor: a bug in one part must not end the others
            _log.exception("%s failed", name)
            reason = f"{type(error).__name__}: {error}"
        well = host.mono_s() - began_s > WELL_S
        feeder.failed(name, reason, again=well)
        pause_s = FIRST_PAUSE_S if well else pause_s
        await asyncio.sleep(pause_s)
        pause_s = min(MAX_PAUSE_S, pause_s * 2)
