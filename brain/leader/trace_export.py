"""Tells the way of each fault as an OpenTelemetry trace, while this brain leads.

The read model is the queue: what waits here are the ids of incidents of which something new was noted. From time to time the
spans of some of them are made from the read model, in a thread, and those that have ended and were not told yet are written. So
a collector that is away costs nothing but a list of ids, and gets what it has missed when it is back.

A new leader tells again what was noted shortly before it began, and all that has ended of an incident when the next thing ends:
under the same ids and with the same times.
"""

import asyncio
import itertools
import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from agent import __version__
from agent.contract.errors import ActionError, Refused
from agent.shared.tasks import Tasks
from brain.adapters.history_queries import HistoryQueries
from brain.adapters.readmodel import ReadModel
from brain.config import BrainConfig
from brain.console.reading import Rests
from brain.leader.trace_outputs import TraceOutput, outputs
from brain.outgoing import outgoing
from brain.traces import otlp
from brain.traces.ids import trace_id
from brain.traces.spans import Span, Value
from brain.traces.story import Told, root_of, spans

T = TypeVar("T")
_log = logging.getLogger(__name__)

GATHER_S = 1.0  # what is noted within it is told together
MOST_WAITING = 10_000  # incidents; beyond them the oldest is left out
MOST_AT_ONCE = 64  # incidents of one turn
MOST_SPANS = 512  # of one request
MOST_NOTES = 2_000  # of one incident: more than MAX_SPANS are made of
MOST_TOLD = 200_000  # spans that are remembered as told, of incidents that are not over
AGAIN_S = 300.0  # a new leader tells again what was noted so long before the newest note
AGAIN_NOTES = 20_000
RETRY_S = (1.0, 2.0, 5.0, 15.0, 30.0)  # pauses while the output fails
# What a row of the read model that another version has written may lead to.
_ODD = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
_Found = list[tuple[str, list[Span], str]]  # incident, what is new of it, its own span if that is among them


@dataclass(slots=True, kw_only=True)
class _Once:
    """What is said once, however often it happens: how often is a metric."""

    note: Callable[[str, str], None]
    said: bool = False

    def say(self, kind: str, text: str) -> None:
        if not self.said:
            self.said = True
            self.note(kind, text)


class TraceExport:
    """The traces of one output. It never raises what a collector, a disk or a row of the read model does."""

    def __init__(
        self,
        output: TraceOutput,
        *,
        reader: HistoryQueries,
        leads: Callable[[], bool],
        note: Callable[[str, str], None],
        resource: Mapping[str, Value],
    ) -> None:
        """`reader` is this export's own. `note(kind, text)` writes what people must be able to read later. `resource`: who tells
        it, as attributes.
        """
        self._output = output
        self._reader = reader
        self._leads = leads
        self._note = note
        self._resource = resource
        self._waiting: dict[str, None] = {}
        self._under_way: dict[str, None] = {}
        self._told: dict[str, set[str]] = {}  # of incidents that are not complete
        self._told_count = 0
        self._complete: dict[str, str] = {}  # incident -> the span of it with which all was told
        self._catching_up = False
        self._something = asyncio.Event()
        self._failing = False
        self._dropped_once = _Once(note=note)
        self._rejected_once = _Once(note=note)
        self._failures = 0
        self._thread = ThreadPoolExecutor(1, "traces")
        self._figures = {"spans": 0, "rejected": 0, "dropped": 0}

    @property
    def name(self) -> str:
        """The key of its output in `[traces]`."""
        return self._output.name

    @property
    def waiting(self) -> int:
        """Incidents of which something is still to be told."""
        return len(self._waiting) + len(self._under_way)

    @property
    def spans(self) -> int:
        """Spans that the output has taken since the start."""
        return self._figures["spans"]

    @property
    def rejected(self) -> int:
        """Spans that the output did not want."""
        return self._figures["rejected"]

    @property
    def dropped(self) -> int:
        """Incidents of which something could not be told: too many waited, or they could not be read."""
        return self._figures["dropped"]

    def changed(self, incident: str) -> None:
        """Something was noted of an incident. Costs the caller nothing, whatever the output does."""
        if not trace_id(incident):
            return
        if not self._leads():
            self._catching_up = True  # should it lead again
            return
        self._waiting[incident] = None
        if len(self._waiting) > MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
            self._drop(f"more than {MOST_WAITING:,} incidents wait: the oldest are left out")
        self._something.set()

    def begin(self) -> None:
        """This brain begins to lead."""
        self._told.clear()
        self._told_count = 0
        self._complete.clear()
        self._catching_up = True
        self._something.set()

    async def serve(self) -> None:
        """Tells, until cancelled."""
        while True:
            await self._something.wait()
            await asyncio.sleep(
                RETRY_S[min(self._failures, len(RETRY_S)) - 1] if self._failures else GATHER_S
            )
            if not self._leads():
                self._waiting.clear()
                self._catching_up = True
                self._something.clear()
                continue
            self._failures = 0 if await self._turn() else self._failures + 1
            if not self._waiting and not self._catching_up:
                self._something.clear()

    async def close(self) -> None:
        """Closes the output and the reader."""
        await self._output.close()
        self._thread.shutdown(cancel_futures=True)
        self._reader.close()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _turn(self) -> bool:
        """Tells of some incidents; False: the output, or the disk with the read model, fails."""
        try:
            if self._catching_up:
                for incident in await self._in_thread(self._lately):
                    self._waiting.setdefault(incident)
                self._catching_up = False
            self._under_way = dict.fromkeys(itertools.islice(self._waiting, MOST_AT_ONCE))
            for incident in self._under_way:
                del self._waiting[incident]
            found, odd = await self._in_thread(partial(self._new, list(self._under_way)))
            for why in odd:
                self._drop(why)
            self._under_way = {incident: None for incident, _, _ in found}
            for part in _parts(found):
                if not await self._write(part):
                    return False
                for incident, _, _ in part:
                    del self._under_way[incident]
        except sqlite3.Error as error:
            self._tell(f"the read model cannot be read: {error}")
            return False
        else:
            return True
        finally:  # those that were not told stand behind the others: one that nobody takes stops none
            self._waiting |= self._under_way
            self._under_way = {}

    async def _write(self, part: _Found) -> bool:
        count = sum(len(one) for _, one, _ in part)
        rejected, why = 0, ""
        if count:
            pairs = [(incident, span) for incident, own, _ in part for span in own]
            try:
                body = await self._in_thread(partial(otlp.request, pairs, self._resource, __version__))
                rejected, why = await self._output.write(body)
                rejected = min(max(rejected, 0), count)  # whatever a collector counts
            except _ODD as error:
                _log.exception("spans of %s cannot be written as JSON", ", ".join(one for one, _, _ in part))
                rejected, why = count, repr(error)
            except Refused as error:
                rejected, why = count, str(error)
            except ActionError as error:
                self._tell(str(error))
                return False
            self._figures["spans"] += count - rejected
            self._figures["rejected"] += rejected
            self._tell("")
            if rejected:
                self._rejected_once.say(
                    "traces.rejected", f"traces.{self.name}: {rejected} spans were rejected: {why}"
                )
        for incident, own, whole in part:
            self._remember(incident, own, whole)
        return True

    def _remember(self, incident: str, own: Sequence[Span], whole: str) -> None:
        known = self._told.pop(incident, set())
        self._told_count -= len(known)
        if whole:
            self._complete[incident] = whole
            if len(self._complete) > MOST_WAITING:
                del self._complete[next(iter(self._complete))]
            return
        known |= {span.id for span in own}
        self._told[incident] = known
        self._told_count += len(known)
        while self._told_count > MOST_TOLD:
            self._told_count -= len(self._told.pop(next(iter(self._told))))

    def _lately(self) -> list[str]:
        """The incidents of the newest notes, as a leader before this one may not have told of them. In a thread."""
        notes = [note for note in self._reader.newest_notes(AGAIN_NOTES) if trace_id(note["incident"])]
        since = notes[-1]["at"] - AGAIN_S if notes else 0.0
        return list(dict.fromkeys(note["incident"] for note in notes if note["at"] >= since))

    def _new(self, incidents: Sequence[str]) -> tuple[_Found, list[str]]:
        """What has ended of them and was not told yet, and why some have no trace. In a thread."""
        found: _Found = []
        odd: list[str] = []
        for incident in incidents:
            try:
                told = read(self._reader, incident)
                if told and self._complete.get(incident) == root_of(told.incident):
                    continue
                own = spans(told) if told else []
            except _ODD as error:
                _log.exception("the trace of %s cannot be made", incident)
                odd.append(f"the trace of {incident} cannot be made: {error!r}")
                continue
            known = self._told.get(incident, set())
            whole = own[-1].id if told and own and own[-1].id == root_of(told.incident) else ""
            found.append((incident, [span for span in own if span.id not in known], whole))
        return found, odd

    def _drop(self, why: str) -> None:
        self._figures["dropped"] += 1
        self._dropped_once.say("traces.dropped", f"traces.{self.name}: {why}")

    def _tell(self, why: str) -> None:
        """Notes a trouble when it begins and when it is over, however long it lasts."""
        if bool(why) == self._failing:
            return
        self._failing = bool(why)
        text = f"traces.{self.name}: {why}" if why else f"traces.{self.name} works again"
        self._note("traces.failing" if why else "traces.works", text)


def read(reader: HistoryQueries, incident: str) -> Told | None:
    """What the read model holds of an incident; None: nothing."""
    raw = reader.incident(incident)
    if raw is None:
        return None
    events = [fact["id"] for fact in raw["evidence"]]
    notes = reader.notes_of(incident, MOST_NOTES)
    return Told(
        incident=raw,
        runs=reader.runs_of(incident),
        notes=notes,
        cut=len(notes) == MOST_NOTES,
        symptom_notes=reader.symptom_notes(events) if events else [],
    )


def _parts(found: _Found) -> Iterator[_Found]:
    """Pieces of a bounded size; one incident's spans stay together."""
    part: _Found = []
    for one in found:
        if part and sum(len(own) for _, own, _ in part) + len(one[1]) > MOST_SPANS:
            yield part
            part = []
        part.append(one)
    if part:
        yield part


class TraceExports:
    """All outputs of `[traces]`."""

    def __init__(self, exports: Sequence[TraceExport]) -> None:
        self.exports = exports

    def changed(self, incident: str) -> None:
        """As of TraceExport."""
        for export in self.exports:
            export.changed(incident)

    def begin(self) -> None:
        """As of TraceExport."""
        for export in self.exports:
            export.begin()

    async def serve(self) -> None:
        """As of TraceExport, for each."""
        async with Tasks() as tasks:
            for export in self.exports:
                tasks.start(export.serve(), export.name)
            await tasks.wait()

    async def close(self) -> None:
        """As of TraceExport."""
        for export in self.exports:
            await export.close()


def trace_exports(
    config: BrainConfig,
    brain: str,
    readmodel: ReadModel,
    *,
    leads: Callable[[], bool],
    note: Callable[[str, str], None],
) -> TraceExports:
    """Builds what `[traces]` names, each with its own connection to the read model; ConfigError names the key."""
    resource: Mapping[str, Value] = {
        "service.name": "gpuward",
        "service.namespace": config.cell,
        "service.instance.id": brain,
        "service.version": __version__,
    }
    return TraceExports(
        [
            TraceExport(
                output, reader=readmodel.reader(Rests().pause), leads=leads, note=note, resource=resource
            )
            for output in outputs(config.traces, outgoing(config.outgoing))
        ]
    )
