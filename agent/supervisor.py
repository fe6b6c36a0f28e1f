"""The agent's supervisor: what breaks is reported once per cause and started again, and nothing else ends with it.

The only place in the agent that catches every exception.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.collectors.base import Collector
from agent.collectors.samples import Checkpoint, Line, Sample
from agent.contract import kinds
from agent.contract.components import NODE, check
from agent.contract.look import RESTATED
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip
from agent.host import Host
from agent.shared.tasks import end
from agent.uplink.spool import LINE, Spool

FIRST_PAUSE_S = 1.0  # before a broken source is opened again; doubled up to MAX_PAUSE_S
MAX_PAUSE_S = 60.0
WELL_S = 60.0  # a source that worked this long starts with a short pause again
MAX_CAUSES = 200  # remembered, so that a failure is reported once and not each second

_log = logging.getLogger(__name__)


class Feeder:
    """Hands each sample to the collectors that want it; a collector that raises loses that sample and nothing else."""

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
        # Source, collector or other part -> how often it has failed, each cause once; for the metrics.
        self.failures: dict[str, int] = {}
        # When something failed last, or all began; None: what failed since has been told to be over.
        self._well_since_s: float | None = host.mono_s()
        # A collector has raised: it may do so again with the next such sample, however long all runs well.
        self._dropped_samples = False
        # Set whenever a collector has told something.
        self.told = asyncio.Event()

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
            # What a collector has held back comes with a tick; it belongs to lines before this one too.
            line = {} if self._line is None else {LINE: f"{self._boot} {self._line}"}
            self._spool.put_all(unsent_events, now_s, self._checkpoints | line)
            self._checkpoints.clear()
            self._on_stored(unsent_events)
            self.told.set()

    def restate(
        self,
        samples: Sequence[Sample],
        concerns: Callable[[str], bool] = lambda _: True,
        of_kinds: Container[str] = RESTATED,
    ) -> list[UnsentEvent]:
        """Tells the lasting conditions that these samples show again, present ones and well ones; each that `concerns`
        wants, a component's, and of these kinds. They are in the spool when this returns.

        A collector tells nothing well of a component of which it tells a present condition: a symptom may end by any of
        several kinds, and must not for a moment while one of them is present.
        """
        now_s = self._host.mono_s()
        told: list[UnsentEvent] = []
        for collector in self._collectors:
            found: dict[tuple[str, str, tuple[tuple[str, Scalar], ...]], UnsentEvent] = {}
            for sample in samples:
                if isinstance(sample, collector.wants):
                    for unsent in self._checked(collector, collector.restate, sample, now_s):
                        if concerns(unsent.component):
                            found[unsent.kind, unsent.component, tuple(unsent.data.items())] = unsent
            ill = {unsent.component for unsent in found.values() if is_present(unsent)}
            told += [
                one
                for one in found.values()
                if one.kind in of_kinds and (is_present(one) or one.component not in ill)
            ]
        if told:
            self._spool.put_all(told, now_s, {})
            self._on_stored(told)
        return told

    def save_checkpoints(self) -> bool:
        """Stores how far sources have read without an event (events store it themselves). Whether there was anything to store.

        Not often: collectors hold back repeats for some seconds.
        """
        if not self._checkpoints:
            return False
        self._spool.save_checkpoints(self._checkpoints)
        self._checkpoints.clear()
        return True

    def failed(self, source: str, reason: str, *, again: bool = False) -> None:
        """Reports `agent.source_failed`, once for each cause (`again`: it had worked in between)."""
        self._well_since_s = self._host.mono_s()
        cause = (source, reason)
        if cause in self._reported and not again:
            return
        if len(self._reported) < MAX_CAUSES:
            self._reported.add(cause)
        self.failures[source] = self.failures.get(source, 0) + 1
        _log.warning("%s failed: %s", source, reason)
        unsent = UnsentEvent(
            kind="agent.source_failed",
            component=NODE,
            severity=Severity.ERROR,
            data={"source": source, "reason": clip(reason)},
            evidence=clip(reason),
        )
        self._spool.put(unsent, self._host.mono_s())

    def tell_well(self, sources: Mapping[str, "Kept"]) -> None:
        """Tells `agent.sources_run` when every source has run for WELL_S and nothing else has failed in that time: once after the
        start, since an earlier run of the agent may have told a failure, and once after each failure of this one.
        """
        now_s = self._host.mono_s()
        if self._well_since_s is None or self._dropped_samples:
            return
        if any(kept.down for kept in sources.values()):
            self._well_since_s = now_s
        elif now_s - self._well_since_s >= WELL_S:
            self._well_since_s = None
            told = UnsentEvent(
                kind="agent.sources_run",
                component=NODE,
                severity=Severity.INFO,
                data={"sources": len(sources)},
            )
            self._spool.put(told, now_s)

    def _collect(self, collector: Collector, sample: Sample, now_s: float) -> list[UnsentEvent]:
        return self._checked(collector, collector.feed, sample, now_s)

    def _checked(
        self,
        collector: Collector,
        ask: Callable[[Sample, float], Iterable[UnsentEvent]],
        sample: Sample,
        now_s: float,
    ) -> list[UnsentEvent]:
        try:
            unsent_events = list(ask(sample, now_s))
            for unsent in unsent_events:
                kinds.check(unsent)
                check(unsent.component)
            return unsent_events
        except Exception as error:  # noqa: BLE001 - the supervisor: a bug of one collector must not stop the others
            reason = f"{type(error).__name__}: {clip(str(error), 200)}"
            if (f"collector:{collector.name}", reason) not in self._reported:
                _log.exception("collector %s dropped a %s", collector.name, type(sample).__name__)
            self._dropped_samples = True
            self.failed(f"collector:{collector.name}", reason)
            return []


def is_present(unsent: UnsentEvent) -> bool:
    """Whether it is about something that is wrong."""
    return unsent.severity is not Severity.INFO


@dataclass(slots=True)
class Kept:
    """Work that is kept going."""

    # Why it does not run now; empty: it runs.
    down: str = "it has not begun"


def keep_going(
    undo: contextlib.AsyncExitStack,
    name: str,
    work: Callable[[], Awaitable[None]],
    feeder: Feeder,
    host: Host,
    *,
    needs: str = "",
) -> Kept:
    """Starts `work`, keeps it going, and ends it when the stack is undone. What it returns says whether the work runs."""
    kept = Kept()
    task = asyncio.create_task(_keep(name, work, feeder, host, needs, kept), name=name)

    undo.push_async_callback(end, task)
    return kept


async def _keep(
    name: str, work: Callable[[], Awaitable[None]], feeder: Feeder, host: Host, needs: str, kept: Kept
) -> None:
    """Runs `work` again and again; what ended it is reported once per cause."""
    pause_s = FIRST_PAUSE_S
    while True:
        began_s = host.mono_s()
        kept.down = ""
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
        kept.down = reason
        well = host.mono_s() - began_s > WELL_S
        feeder.failed(name, reason, again=well)
        pause_s = FIRST_PAUSE_S if well else pause_s
        await asyncio.sleep(pause_s)
        pause_s = min(MAX_PAUSE_S, pause_s * 2)
