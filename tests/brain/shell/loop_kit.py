"""One brain's live loop with everything around it but NATS: the log is in memory, and the test gives and takes the lease."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nats.aio.client import Client

from agent.contract import subjects
from agent.contract.commands import Outcome
from agent.contract.messages import Event, Scalar, Severity
from agent.shared.tasks import Tasks
from brain.adapters.codec import Codec, encode_event_body
from brain.adapters.keys import CurrentSigner
from brain.adapters.lease import Lease
from brain.adapters.liveness import Beats
from brain.adapters.log import LogClock, LogInfo, Record
from brain.adapters.node_requests import NodeRequests
from brain.adapters.nodes import Nodes
from brain.adapters.outbox import Outbox, OutboxEntry
from brain.adapters.quarantine import Quarantine
from brain.adapters.readmodel import ReadModel
from brain.adapters.snapshot import Snapshots
from brain.adapters.timers import Timers
from brain.adapters.unsent_words import UnsentWords
from brain.config import SnapshotConfig
from brain.console.feed import Feed
from brain.core.effects import Step
from brain.core.inputs import EventSeen, Input, StepResult
from brain.core.pack.actions import ACTIONS
from brain.leader.awaited_commands import AwaitedCommands
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.current_client import CurrentClient
from brain.leader.executor import EffectExecutor
from brain.leader.history import HistoryWriter
from brain.leader.jobs import JobQuestions
from brain.leader.leadership import Leadership
from brain.leader.log_writer import LogWriter
from brain.leader.loop import LiveLoop
from brain.leader.lost_drains import LostDrains
from brain.leader.notes import BrainNotes
from brain.leader.pages import PageSender
from brain.leader.performer import Performer
from brain.leader.replica import Replica
from brain.leader.snapshots import SnapshotKeeper
from brain.leader.steps import StepDispatcher
from brain.notify.notifier import build

CELL = "c"
CODEC = Codec(CELL)
NOW = 1_700_000_000.0


class Log:
    """A log in memory: brains read it, and what they append waits until the test puts it there."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def put(self, *inputs: Input, at: float = NOW) -> None:
        """Appends inputs."""
        for given in inputs:
            if isinstance(given, EventSeen):
                subject, body = subjects.event(CELL, given.event.node), encode_event_body(given)
            else:
                what, body = CODEC.encode(given)
                subject = subjects.brain_input(CELL, what)
            self.records.append(Record(len(self.records) + 1, at, subject, body, 0))

    def info(self) -> LogInfo:
        """Its extent."""
        return LogInfo(
            identity="log-1", first_seq=1, last_seq=len(self.records), bytes=0, max_bytes=0, max_age_s=0
        )

    def event(
        self, kind: str, component: str = "node", node: str = "n1", at: float = NOW, **data: Scalar
    ) -> None:
        """Appends a node's event."""
        count = len(self.records)
        event = Event(
            id=f"{node}:s1:{count}", node=node, kind=kind, component=component, severity=Severity.ERROR,
            at="2026-01-01T00:00:00Z", age_s=0.0, boot="b", count=1, data=data, evidence=f"{kind} on {component}",
        )  # fmt: skip
        self.put(EventSeen(event=event), at=at)


class Reading:
    """Reads the log for one brain, and waits at its end."""

    def __init__(self, log: Log, after: int) -> None:
        self.log, self.seq = log, after
        self.at_end = asyncio.Event()

    async def batch(self) -> Sequence[Record]:
        """The rest of the log, as one batch."""
        records = self.log.records[self.seq :]
        if not records:
            self.at_end.set()
            await asyncio.Event().wait()
        self.seq += len(records)
        return records


class Held(Lease):
    """A lease that the test gives and takes."""

    is_held = False

    @property
    def held(self) -> bool:
        """As the test says."""
        return self.is_held

    def give(self, epoch: int) -> None:
        """This brain holds it from now on."""
        self.is_held, self.epoch = True, epoch


class Appended(Outbox):
    """Keeps what is appended."""

    def __init__(self) -> None:
        super().__init__(CELL)
        self.inputs: list[Input] = []
        self.kept: list[Input] = []  # those that outlive the connection

    def put(
        self,
        what: str,
        body: bytes,
        id_: str,
        *,
        keep: bool = True,
        answered: Callable[[], None] | None = None,
    ) -> OutboxEntry:
        """As Outbox.put."""
        given = CODEC.decode(subjects.brain_input(CELL, what), body, 0)
        self.inputs.append(given)
        self.kept += [given] if keep else []
        return super().put(what, body, id_, keep=keep, answered=answered)

    def forget(self) -> None:
        """The log has all of it."""
        self._entries.clear()
        self._waiting.clear()


class Sent(Nodes):
    """Keeps the steps that would go to nodes; each is answered at once."""

    steps: list[Step]

    async def perform(self, client: Client, step: Step, epoch: int) -> StepResult | None:
        """As Nodes.perform, where no agent listens."""
        self.steps.append(step)
        return StepResult(
            id=f"r:{step.id}:{epoch}", step=step.id, outcome=Outcome.UNREACHABLE, why="nobody listens"
        )


class Started(Tasks):
    """Keeps the names of the work that was begun."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """As Tasks.start."""
        self.names.append(name)
        return super().start(work, name)


class Brain:
    """One brain, wired as in brain.app, without its broker."""

    def __init__(self, name: str, folder: Path, clock: LogClock | None = None) -> None:
        """`clock`: of the log, between its messages."""
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._closed = False
        self.background = background = Started()
        self.readmodel = ReadModel(folder / "history.sqlite")
        feed, clock = Feed(), clock or LogClock()
        self.history = HistoryWriter(self.readmodel, feed)
        self.notes = BrainNotes(name, clock, self.history)
        notifier = build({}, {}, folder)
        alerts = BrainAlerts(
            brain=name,
            notifier=notifier,
            notes=self.notes,
            background=background,
            file=folder / "alerts.json",
        )
        self.outbox = Appended()
        writer = LogWriter(CODEC, self.outbox, UnsentWords(folder / "unsent_words.json"))
        snapshots = Snapshots(folder / "state.snapshot")
        self.replica = Replica(
            actions=ACTIONS,
            snapshots=snapshots,
            open_quarantine=partial(Quarantine, folder),
            history=self.history,
            alerts=alerts,
        )
        self.lease = Held(CELL, name, 1.0)
        self.leadership = Leadership(self.lease, self.replica)
        self.nats = CurrentClient()
        self.nodes = Sent(
            NodeRequests(CELL), CurrentSigner(folder / "signing.key"), Beats(), self.leadership.may_act
        )
        self.nodes.steps = []
        steps = StepDispatcher(
            performer=Performer(
                {},
                may_act=self.leadership.may_act,
                confirm=self.leadership.confirm,
                report=writer.append_or_drop,
            ),
            nodes=self.nodes,
            nats=self.nats,
            leadership=self.leadership,
            writer=writer,
            background=background,
        )
        jobs = JobQuestions(
            schedulers=lambda _: None, leadership=self.leadership, writer=writer, background=background
        )
        self.began: list[int] = []
        self.timers = Timers(partial(self.replica.log_time, clock))
        self.loop = LiveLoop(
            codec=CODEC,
            clock=clock,
            replica=self.replica,
            history=self.history,
            leadership=self.leadership,
            executor=EffectExecutor(
                brain=name,
                leadership=self.leadership,
                timers=self.timers,
                writer=writer,
                steps=steps,
                jobs=jobs,
                lost_drains=LostDrains(
                    schedulers=lambda _: None,
                    leadership=self.leadership,
                    replica=self.replica,
                    questions=jobs,
                    notes=self.notes,
                    background=background,
                ),
                pages=PageSender(
                    notifier=notifier,
                    replica=self.replica,
                    leadership=self.leadership,
                    writer=writer,
                    background=background,
                ),
            ),
            commands=AwaitedCommands(self.nodes, nats=self.nats, lease=self.lease),
            listeners=(),
            alerts=alerts,
            when_leading=(lambda: self.began.append(self.leadership.epoch),),
        )
        self.keeper = SnapshotKeeper(
            snapshots=snapshots,
            settings=SnapshotConfig(),
            replica=self.replica,
            history=self.history,
            leadership=self.leadership,
            notes=self.notes,
            nats=self.nats,
            cell=CELL,
            replicas=1,
        )

    async def read(self, log: Log) -> None:
        """Reads the log to its end, and lets the work that follows begin."""
        if not self.replica.identity:
            self.replica.attach(log.info())
        reading = Reading(log, self.replica.seq)
        with self.nats.established(Client()):
            task = asyncio.create_task(self.loop.serve(reading))
            await reading.at_end.wait()
            await _until(lambda: len(self.appended(StepResult)) == len(self.nodes.steps))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self.history.flush()

    def appended(self, kind: type[Any]) -> list[Any]:
        """What it put on the log, of one kind."""
        return [given for given in self.outbox.inputs if isinstance(given, kind)]

    async def awaited(self, kind: type[Any]) -> list[Any]:
        """The same, once there is one."""
        await _until(lambda: bool(self.appended(kind)))
        return self.appended(kind)

    def pages(self) -> str:
        """What people were sent."""
        file = self.folder / "pages.log"
        return file.read_text() if file.exists() else ""

    def close(self) -> None:
        """Ends it, as often as one likes."""
        if not self._closed:
            self._closed = True
            self.replica.close()
            self.readmodel.close()


async def _until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not look():
            await asyncio.sleep(0.005)
