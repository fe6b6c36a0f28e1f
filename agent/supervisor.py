"""The agent's supervisor: what breaks is reported once per cause, tried again, and ends nothing else.

The only place in the agent that catches every exception.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence

from agent.collectors.base import Collector
from agent.collectors.samples import Checkpoint, Line, Sample
from agent.contract import kinds
from agent.contract.components import NODE, check
from agent.contract.messages import Severity, UnsentEvent, clip
from agent.host import Host
from agent.shared.tasks import end
from agent.uplink.spool import LINE, Spool

FIRST_PAUSE_S = 1.0  # before a broken source is opened again; doubled up to MAX_PAUSE_S
MAX_PAUSE_S = 60.0
WELL_S = 60.0  # a source that worked this long starts with a short pause again
MAX_CAUSES = 200  # remembered, so that a failure is reported once and not each second

_log = logging.getLogger(__name__)


class Feeder:
    """Hands each sample to the collectors that want it; a collector that raises loses that sample, no more."""

    def __init__(
        self,
        host: Host,
        collectors: Sequence[Collector],
        spool: Spool,
        *,
        on_stored: Callable[[Sequence[UnsentEvent]], None] = lambda _: None,
    ) -> None:
        """`on_stored` is called with the events that are in the spool now."""
        self._on_stored = on_stored
        self._host = host
        self._collectors = collectors
        self._wanting: dict[type, list[Collector]] = {}
        self._spool = spool
        self._boot = host.boot_id()
        # Sequence number of the latest kernel log record.
        self._line: int | None = None
        # How far the other sources have read, where that is not stored yet.
        self._checkpoints: dict[str, str] = {}
        self._reported: set[tuple[str, str]] = set()

    def emit(self, sample: Sample) -> None:
        """Takes one sample; its events are in the spool when this returns."""
        kind = type(sample)
        if isinstance(sample, Checkpoint):
            self._checkpoints[sample.key] = sample.value
            return
        wanting = self._wanting.get(kind)
        if wanting is None:
            wanting = self._wanting[kind] = [one for one in self._collectors if issubclass(kind, one.wants)]
        if isinstance(sample, Line) and sample.seq >= 0:
            self._line = sample.seq
        now_s = self._host.mono_s()
        unsent_events: list[UnsentEvent] = []
        for collector in wanting:
            unsent_events += self._collect(collector, sample, now_s)
        if unsent_events:
            # What a collector has held back comes with a tick: it belongs to lines up to here as well.
            line = {} if self._line is None else {LINE: f"{self._boot} {self._line}"}
            self._spool.put_all(unsent_events, now_s, self._checkpoints | line)
            self._checkpoints.clear()
            self._on_stored(unsent_events)

    def save_checkpoints(self) -> bool:
        """Stores how far sources have read without an event (events store it themselves); was there anything to store?

        Not often: collectors hold back repeats for some seconds.
        """
        if not self._checkpoints:
            return False
        self._spool.save_checkpoints(self._checkpoints)
        self._checkpoints.clear()
        return True

    def failed(self, source: str, reason: str, *, again: bool = False) -> None:
        """Reports `agent.source_failed`, once for each cause (`again`: it had worked in between)."""
        cause = (source, reason)
        if cause in self._reported and not again:
            return
        if len(self._reported) < MAX_CAUSES:
            self._reported.add(cause)
        _log.warning("%s failed: %s", source, reason)
        unsent = UnsentEvent(
            kind="agent.source_failed",
            component=NODE,
            severity=Severity.ERROR,
            data={"source": source, "reason": clip(reason)},
            evidence=clip(reason),
        )
        self._spool.put(unsent, self._host.mono_s())

    def _collect(self, collector: Collector, sample: Sample, now_s: float) -> list[UnsentEvent]:
        try:
            unsent_events = list(collector.feed(sample, now_s))
            for unsent in unsent_events:
                kinds.check(unsent)
                check(unsent.component)
            return unsent_events
        except Exception as error:  # noqa: BLE001 - the supervisor: a bug of one collector must not stop the others
            reason = f"{type(error).__name__}: {clip(str(error), 200)}"
            if (f"collector:{collector.name}", reason) not in self._reported:
                _log.exception("collector %s dropped a %s", collector.name, type(sample).__name__)
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
    """Runs `work` again and again; what ended it is reported once per cause."""
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
