"""The live loop's heart: batches of the log go through the engine, and its effects to where they belong.

Every brain of a cell does this; only the one that leads also acts. What is read again after a restart is not
done again: effects are performed only while `leads()` is true, and that begins with the engine handling this
brain's own `Leader` input, at which the engine asks anew for all that is outstanding.
"""

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from agent.contract.actions.spec import ActionSpec
from agent.contract.messages import Event
from brain.adapters.codec import Codec, malformed
from brain.adapters.log import LogClock, LogInfo, Record
from brain.adapters.poison import DEATHS, Poison
from brain.adapters.readmodel import ReadModel
from brain.adapters.snapshot import Snapshots, dump
from brain.adapters.timers import Timers
from brain.core.effects import (
    AskJobs,
    AskPlan,
    CancelStep,
    Effect,
    Note,
    Perform,
    SendPage,
    SetTimer,
    ShowIncident,
    ShowRun,
    Step,
    WriteIntent,
)
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, Input, Intent, Leader, Reported, TimerFired
from brain.core.state import Incident, Run, State

_log = logging.getLogger(__name__)

WRITE_AFTER_S = 0.02
WRITE_AGAIN_S = 1.0  # pause after the disk said no
EARLY_S = 1.0  # a timer's message may carry a stamp so much before its due time (clocks); it counts as due


class Hands(Protocol):
    """What the leader can do besides thinking. None of these waits."""

    def put(self, given: Input, *, keep: bool) -> None:
        """Puts an input on the log."""
        ...

    def perform(self, step: Step, epoch: int) -> None:
        """Begins a step; its result becomes an input."""
        ...

    def plan(self, step: Step) -> None:
        """Asks who would do the step what it would do; the answer becomes an input."""
        ...

    def cancel(self, step: Step, epoch: int, why: str) -> None:
        """Asks who does the step to stop; its result comes as for any other."""
        ...

    def ask_jobs(self, node: str) -> None:
        """Asks the scheduler what runs on a node; the answer becomes an input."""
        ...

    def heard(self, result: Event) -> None:
        """A node's command has ended: perhaps a part of one of our own steps waits for it."""
        ...

    def reported(self, report: Reported) -> None:
        """Another system's report is on the log: whoever listens to that system need not bring it again."""
        ...

    def page(self, page: SendPage) -> None:
        """Begins to tell people; the delivery becomes an input."""
        ...

    def page_own(self, cause: str, text: str) -> None:
        """Tells people of the brain's own trouble."""
        ...


class Live:
    """One engine on one log. `load` before the first batch; rebuilt by `load` after a failure."""

    def __init__(
        self,
        *,
        name: str,
        codec: Codec,
        actions: Mapping[str, ActionSpec],
        readmodel: ReadModel,
        snapshots: Snapshots,
        poison: Callable[[str], Poison],
        lease_epoch: Callable[[], int],
        clock: LogClock,
        hands: Hands,
        leading: Callable[[], None],
        publish: Callable[[Note], None],
    ) -> None:
        """`poison` opens the marker for a log's identity; `lease_epoch` is that of the lease held now, or 0;
        `leading` is called when this brain leads from here on.
        """
        self._name = name
        self._codec = codec
        self._actions = actions
        self._readmodel = readmodel
        self._snapshots = snapshots
        self._open_poison = poison
        self._poison: Poison | None = None
        self._lease_epoch = lease_epoch
        self._clock = clock
        self._hands = hands
        self._leading = leading
        self._publish = publish
        self.engine = Engine(actions=actions)
        self.timers = Timers(clock.now)
        self.inputs = 0  # handled so far
        self.busy_s = 0.0  # time spent in batches
        self.snapshot_s = 0.0  # how long the last snapshot held up the loop
        self.identity = ""
        self.seq = 0  # the last place on the log that was handled
        self.caught_up = False
        self.stopped = ""  # why it does not act any more
        self._shown = 0  # up to here the read model has everything already
        self._snapshot_seq = 0
        self._replayed_by_other_code = ""
        self._reached = asyncio.Event()
        self._batch = _Batch()  # not yet in the read model
        self._dirty = asyncio.Event()

    @property
    def state(self) -> State:
        """The engine's memory: to look at, not to change."""
        return self.engine.state

    def leads(self) -> bool:
        """May this brain act: does it hold the lease, and does the log say so with the same epoch?"""
        epoch = self._lease_epoch()
        return bool(epoch) and epoch == self.engine.state.epoch and not self.stopped

    def load(self, info: LogInfo) -> None:
        """A fresh engine: from the snapshot if it fits this log, else from the beginning."""
        self.close()
        self._batch = _Batch()
        self.engine = Engine(actions=self._actions)
        self._poison = self._open_poison(info.identity)
        state, seq, why = self._snapshots.load(info.identity)
        self._readmodel.begin(info.identity)
        self._shown = self._readmodel.position(info.identity)
        if state is not None and self._shown < seq and info.first_seq <= 1:
            # The read model was lost; the log still has everything that it is made from.
            state, seq, why = None, 0, "the read model is behind the snapshot: made again from the log"
            self._readmodel.clear()
            self._readmodel.begin(info.identity)
            self._shown = 0
        self._replayed_by_other_code = why if state is None and self._shown else ""
        if state is not None:
            self.engine.close()
            self.engine = Engine(state, actions=self._actions)
        self.identity, self.seq, self._snapshot_seq = info.identity, seq, seq
        self.caught_up = False
        _log.info("log %s: %s", info.identity, f"snapshot at {seq}" if state is not None else why)

    def attach(self, info: LogInfo) -> None:
        """A new connection: is it the log that we know, and does it go on where we stopped?"""
        if info.identity != self.identity:
            if self.identity:
                self.tell(
                    "log.changed", "NATS has another log than before: everything is read from its beginning"
                )
            self.load(info)
        if info.last_seq < self.seq:
            self.tell(
                "log.shortened",
                f"the log ends at {info.last_seq}, {self.seq} was read: NATS lost its newest messages",
            )
            self.seq = self._shown = info.last_seq
        elif info.first_seq > self.seq + 1 and self.seq:
            self.tell(
                "log.gap",
                f"messages {self.seq + 1} to {info.first_seq - 1} were removed before this brain read them",
            )
        self.caught_up = info.last_seq <= self.seq

    def take(self, records: list[Record]) -> None:
        """One batch, in order. What the engine raises comes out; what came before it is done."""
        began = time.perf_counter()
        done = self.seq
        try:
            for record in records:
                self._one(record)
                done = record.seq
        finally:
            self.seq = done
            self.busy_s += time.perf_counter() - began
            self._dirty.set()
        if records[-1].pending == 0:
            self._clock.heard(records[-1].at)
            if not self.caught_up:
                self._at_the_end()

    def _one(self, record: Record) -> None:
        assert self._poison is not None  # noqa: S101 - load() comes first
        if record.seq in self._poison.set_aside:
            given: Input = malformed(
                record.subject, "", f"set aside: handling it killed this brain {DEATHS} times", record.seq
            )
            if record.seq > self._shown:
                self._hands.page_own(
                    "brain_poison",
                    f"input {record.seq} ({record.subject}) killed the brain {DEATHS} times: set aside",
                )
        else:
            given = self._codec.decode(record.subject, record.body, record.seq)
        now = record.at
        if isinstance(given, TimerFired):
            now = max(now, min(given.due, now + EARLY_S))
        self._poison.begin(record.seq)
        effects = self.engine.handle(given, now)
        self._poison.end()
        self.inputs += 1
        if effects:
            self._effects(effects, record.seq)
        if isinstance(given, EventSeen) and given.event.kind == "command.result":
            self._hands.heard(given.event)
        elif isinstance(given, Reported):
            self._hands.reported(given)
        if isinstance(given, Leader) and self.leads():
            self.timers.reset(self.engine.state.timers)
            self._leading()

    def _effects(self, effects: list[Effect], seq: int) -> None:
        batch = self._batch
        leads = self.leads()
        for effect in effects:
            match effect:
                case Note():
                    batch.notes.append((seq, effect))
                case ShowIncident(incident=incident):
                    batch.incidents[incident.id] = incident
                case ShowRun(run=run):
                    batch.runs[run.id] = run
                case _ if not leads:
                    continue  # another brain does it, or did it when this was new
                case SetTimer(name=name, due=due):
                    self.timers.set(name, due)
                case WriteIntent(step=step):
                    epoch = self.engine.state.epoch
                    self._hands.put(
                        Intent(id=f"i:{step.id}:{epoch}", step=step.id, epoch=epoch, brain=self._name),
                        keep=False,
                    )
                case Perform(step=step):
                    self._hands.perform(step, self.engine.state.epoch)
                case AskPlan(step=step):
                    self._hands.plan(step)
                case CancelStep(step=step, why=why):
                    self._hands.cancel(step, self.engine.state.epoch, why)
                case AskJobs(node=node):
                    self._hands.ask_jobs(node)
                case SendPage():
                    self._hands.page(effect)

    async def write(self) -> None:
        """Keeps the read model up to date, until cancelled: a moment late, so that commands go out first."""
        while True:
            await self._dirty.wait()
            await asyncio.sleep(WRITE_AFTER_S)
            if not self.flush():
                await asyncio.sleep(WRITE_AGAIN_S)
                self._dirty.set()

    def flush(self) -> bool:
        """What was handled goes into the read model, unless it has it from before, and to those who watch.

        False when the disk says no: it is kept and tried again. Healing goes on without its history.
        """
        self._dirty.clear()
        batch = self._batch
        if self.seq > self._shown:
            notes = [pair for pair in batch.notes if pair[0] > self._shown]
            try:
                self._readmodel.write(self.seq, notes, batch.incidents.values(), batch.runs.values())
            except sqlite3.Error as error:
                _log.error("the read model cannot be written: %s", error)
                return False
            self._shown = self.seq
            for _, note in notes:
                self._publish(note)
        self._batch = _Batch()
        self._reached.set()
        return True

    def _at_the_end(self) -> None:
        """The replay is over."""
        self.flush()
        self.caught_up = True
        if self._replayed_by_other_code:
            state = self.engine.state
            why = "not known any more after a change of gpuward's code"
            self._readmodel.reconcile(
                list(state.incidents.values()), list(state.runs.values()), why, state.now
            )
            self._replayed_by_other_code = ""

    def tell(self, kind: str, text: str) -> None:
        """A note of the brain itself."""
        _log.warning("%s: %s", kind, text)
        at = self._clock.now()
        note = Note(id=f"brain:{self._name}:{time.time_ns()}", at=at, kind=kind, text=text)
        with contextlib.suppress(sqlite3.Error):  # a full disk: it stands in the log above
            self._readmodel.note(note)
        self._publish(note)

    async def reached(self, seq: int, timeout_s: float) -> bool:
        """Waits until the input at `seq` was handled."""
        deadline = time.monotonic() + timeout_s
        while min(self.seq, self._shown) < seq:
            self._reached.clear()
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self._reached.wait()
            except TimeoutError:
                return False
        return True

    async def snapshot(self) -> None:
        """Writes the state down, if something happened since the last time. OSError: the disk says no."""
        if self.seq == self._snapshot_seq or self.stopped or not self.identity:
            return
        if not self.flush():
            return  # a snapshot must never be ahead of the read model
        began = time.perf_counter()
        body, seq, identity = dump(self.engine.state), self.seq, self.identity
        self.snapshot_s = time.perf_counter() - began
        await asyncio.to_thread(self._snapshots.write, body, seq, identity)
        self._snapshot_seq = seq

    def close(self) -> None:
        """Writes down what is left; frees the engine and the marker."""
        self.flush()
        self.engine.close()
        if self._poison is not None:
            self._poison.close()
            self._poison = None
        self.identity = ""


class _Batch:
    """What one batch leads to in the read model: each incident and run once, in its newest form."""

    __slots__ = ("incidents", "notes", "runs")

    def __init__(self) -> None:
        self.notes: list[tuple[int, Note]] = []
        self.incidents: dict[str, Incident] = {}
        self.runs: dict[str, Run] = {}
