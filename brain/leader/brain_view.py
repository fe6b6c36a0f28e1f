"""What the console sees of this brain: the port `brain.console.brain_view.BrainView`."""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from agent.shared.nats_connection import NatsConnection
from brain.adapters import evidence
from brain.adapters.history_queries import HistoryQueries
from brain.adapters.liveness import Beats
from brain.adapters.node_requests import NodeRequests
from brain.adapters.operator_mode import OperatorMode
from brain.adapters.packwatch import PackWatch
from brain.cell.registry import CellNode
from brain.config import BrainConfig
from brain.console.brain_view import NodeBeat
from brain.console.feed import Feed
from brain.console.nats_view import NatsSeen
from brain.core.context import Context
from brain.core.inputs import OperatorCommand, Reported
from brain.core.state import State
from brain.leader import log_export
from brain.leader.archiver import Archiver
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.current_client import CurrentClient
from brain.leader.disk_watch import DiskWatch
from brain.leader.history import HistoryWriter
from brain.leader.leadership import Leadership
from brain.leader.log_writer import LogWriter
from brain.leader.loop import LiveLoop
from brain.leader.nats_watch import NatsWatch
from brain.leader.notes import BrainNotes
from brain.leader.prompt_reader import PromptReader
from brain.leader.replica import Replica
from brain.leader.trace_export import TraceExport, TraceExports

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveView:
    """The state and progress of the live loop. Read only."""

    replica: Replica
    history: HistoryWriter
    leadership: Leadership
    loop: LiveLoop

    @property
    def state(self) -> State:
        """The engine's memory."""
        return self.replica.state

    def look(self) -> Context:
        """What the engine knows now, for questions."""
        return self.replica.look()

    @property
    def seq(self) -> int:
        """The position on the log of the last handled input."""
        return self.replica.seq

    @property
    def caught_up(self) -> bool:
        """Has the whole log been read?"""
        return self.replica.caught_up

    @property
    def stopped(self) -> str:
        """Why it does not act any more; empty: it does."""
        return self.leadership.stopped

    @property
    def inputs(self) -> int:
        """How many inputs were handled since the start."""
        return self.loop.inputs

    @property
    def busy_s(self) -> float:
        """How much time that took."""
        return self.loop.busy_s

    def leads(self) -> bool:
        """Does this brain lead?"""
        return self.leadership.leads()

    async def reached(self, seq: int, timeout_s: float) -> bool:
        """Waits until the input at `seq` is handled and shown; False on a timeout."""
        return await self.history.reached(seq, timeout_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBrainView:
    """This brain, as the console sees it."""

    config: BrainConfig
    name: str
    reader: HistoryQueries
    # for short questions
    prompt: PromptReader
    feed: Feed
    live: LiveView
    connection: NatsConnection
    beats: Beats
    nats: CurrentClient
    requests: NodeRequests
    writer: LogWriter
    notes: BrainNotes
    alerts: BrainAlerts
    nats_watch: NatsWatch
    traces: TraceExports
    archive: Archiver
    disk: DiskWatch
    pack_files: PackWatch
    # where the servers are in operator mode
    jwts: OperatorMode | None
    # by this machine's wall clock
    started_at: float = field(default_factory=time.time)

    def connected(self) -> bool:
        """Is NATS there now?"""
        return self.connection.connected

    def newest_beats(self) -> dict[str, NodeBeat]:
        """The newest beat of each node."""
        now = time.monotonic()
        return {
            node: NodeBeat(
                age_s=now - last.at,
                version=last.beat.version,
                spooled=last.beat.spooled,
                dropped=last.beat.dropped,
                clock_ahead_s=last.ahead_s,
            )
            for node, last in self.beats.newest.items()
        }

    def pack_sources(self, version: str) -> Mapping[tuple[str, str], str]:
        """("rules", name) -> `<file>:<line>`; empty: the files hold another version."""
        return self.pack_files.sources(version)

    def agent_versions(self) -> dict[str, str]:
        """The version of each node's agent."""
        return {node: last.beat.version for node, last in self.beats.newest.items()}

    async def ask(self, node: str, body: bytes, timeout_s: float) -> bytes:
        """A request to a node, and its answer. Unreachable when none comes in time."""
        return await self.requests.ask(node, body, timeout_s)

    async def evidence(self, node: str, command: str) -> evidence.StoredBundle | None:
        """An evidence bundle; None: there is none (yet). Unreachable, ActionError: see brain/adapters/evidence."""
        return await evidence.find(self.nats.required(), self.config.cell, node, command)

    def troubles(self) -> list[tuple[str, str, float]]:
        """This brain's own open alerts: cause, text, since when (seconds since 1970)."""
        return [(alert.cause, alert.text, alert.since) for alert in self.alerts.open_now]

    async def look_up(self, work: Callable[[HistoryQueries], T]) -> T:
        """A short question to the read model. Unreachable: it does not answer in time."""
        return await self.prompt.ask(work)

    def history_behind(self) -> int:
        """So many inputs were handled and are not in the read model."""
        return self.live.history.behind

    def trace_exports(self) -> Sequence[TraceExport]:
        """What tells traces: one for each output."""
        return self.traces.exports

    def log_file(self, since: float, until: float) -> AsyncIterator[bytes]:
        """The log from one time to another as a file. Unreachable: NATS does not give it."""
        return log_export.pieces(self.nats.required(), self.config.cell, since, until)

    def nats_seen(self) -> NatsSeen | None:
        """What the NATS servers have said last; None: nothing."""
        return self.nats_watch.seen

    def node_jwt(self, name: str, node: CellNode) -> str:
        """The JWT by which a node logs in; empty where the servers are not in operator mode."""
        return self.jwts.node_jwt(name, node) if self.jwts else ""

    def note(self, kind: str, text: str, who: str = "") -> None:
        """Writes a note of this brain."""
        self.notes.write(kind, text, who)

    async def submit(self, command: OperatorCommand) -> int:
        """Puts an operator command on the log; its position there. Unreachable when NATS does not take it in time."""
        return await self.writer.append_and_wait(command)

    async def report(self, given: Reported) -> int:
        """Puts another system's report on the log; its position there. Unreachable as above."""
        return await self.writer.append_and_wait(given)
