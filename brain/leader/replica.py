"""This brain's replica of the engine: every brain of a cell reads the same log and reaches the same state."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from agent.contract.actions.spec import ActionSpec
from brain.adapters.log import LogClock, LogInfo
from brain.adapters.quarantine import Quarantine
from brain.adapters.snapshot import Snapshots
from brain.core.context import Context
from brain.core.effects import Effect
from brain.core.engine import Engine
from brain.core.inputs import Input, Pulse
from brain.core.pack.spec import Priority
from brain.core.pack.topology import node_of
from brain.core.state import IncidentState, State
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.history import HistoryWriter

_log = logging.getLogger(__name__)
_WELL = (IncidentState.SETTLING, IncidentState.RECOVERED, IncidentState.CLOSED, IncidentState.EXPLAINED)


class Replica:
    """One engine and its position on the log. Call `attach` for each connection; after `close` it restores the engine."""

    def __init__(
        self,
        *,
        actions: Mapping[str, ActionSpec],
        snapshots: Snapshots,
        open_quarantine: Callable[[str], Quarantine],
        history: HistoryWriter,
        alerts: BrainAlerts,
        had_nodes: Callable[[], bool] = lambda: False,
    ) -> None:
        """`had_nodes`: has this cell had a log before, by what else is known of it? `open_quarantine` opens the one that belongs
        to a log, by the log's identity.
        """
        self._actions = actions
        self._snapshots = snapshots
        self._open_quarantine = open_quarantine
        self._quarantine: Quarantine | None = None
        self._history = history
        self._alerts = alerts
        self._had_nodes = had_nodes
        self._engine = Engine(actions=actions)
        self._identity = ""
        self._seq = 0
        self._next = 1  # the position that comes next, if the log still has it
        self._saved_seq = 0
        self._calm = True
        self._caught_up = asyncio.Event()
        self._read_again = False  # the whole log, though there is history

    @property
    def state(self) -> State:
        """The engine's memory. Read only."""
        return self._engine.state

    def look(self) -> Context:
        """What the engine knows now, for questions. Read only, until the next input."""
        return self._engine.look()

    def standing(self, kind: str) -> list[str]:
        """The nodes of which a fact of this kind stands, as a symptom that is active there."""
        names = {
            one.name for one in self.look().compiled.pack.symptoms if any(on.kind == kind for on in one.on)
        }
        active = (one.scope for one in self.state.symptoms.values() if one.active and one.name in names)
        return [node for scope in active if (node := node_of(scope))]

    def ill(self) -> set[str]:
        """The nodes with an open incident that is more than worth knowing, and those whose agent is not heard."""
        open_now = (one for one in self.state.incidents.values() if one.state not in _WELL)
        found = {one.node for one in open_now if one.node and one.severity is not Priority.P3}
        return found | {node.name for node in self.state.nodes.values() if not node.alive}

    @property
    def identity(self) -> str:
        """The identity of the log that is read; empty: none yet."""
        return self._identity

    @property
    def seq(self) -> int:
        """The position on the log of the last handled input."""
        return self._seq

    def log_time(self, clock: LogClock) -> float:
        """The log's time between messages, for timers: what `state.now` would be after a message now. `clock`: the server's."""
        return self.state.time_at(clock.now())

    @property
    def unsaved(self) -> bool:
        """Whether an input has been handled since the newest snapshot."""
        return bool(self._identity) and self._seq != self._saved_seq

    @property
    def calm(self) -> bool:
        """Whether nothing but pulses has been handled since the newest snapshot."""
        return self._calm

    @property
    def caught_up(self) -> bool:
        """Whether the whole log has been read on this connection."""
        return self._caught_up.is_set()

    async def until_caught_up(self) -> None:
        """Waits until the whole log has been read."""
        await self._caught_up.wait()

    async def until_history_lost(self) -> None:
        """Waits until the read model has turned out to be damaged, and raises HistoryLost: `attach` makes it again."""
        await self._history.until_lost()

    async def until_restorable(self, info: LogInfo) -> None:
        """Waits for the disk where `attach` will read from it."""
        if info.identity != self._identity:
            await self._history.idle()

    def needs_copy(self, info: LogInfo) -> bool:
        """Whether `attach` could use the copy of the state in NATS: this log no longer reaches back to its beginning, or to what
        this brain has read of it.
        """
        return info.first_seq > (self._seq if info.identity == self._identity else 0) + 1

    def attach(self, info: LogInfo, copy: bytes = b"") -> None:
        """Takes up the log of a new connection: goes on after the last handled input, or begins with another log. `copy`: a
        snapshot from elsewhere.
        """
        if info.identity != self._identity:
            known = self._identity
            self._restore(info, copy)
            another = known or self._snapshots.of_another_log or self._history.of_another_log
            if another or (info.last_seq == 0 and self._had_nodes()):
                self._alerts.tell(
                    "log_lost",
                    "NATS has another log than before: was the server wiped, is this another server, or was this brain restored "
                    "without its log? What was open, held and drained is no longer known here. Nodes that gpuward has drained "
                    "stay drained: look at the scheduler for reasons that begin with `gpuward:`, and say `gpuward hold all` "
                    "first if this is not the right server.",
                )
        elif info.first_seq > self._seq + 1 and self._snapshots.newer(copy, info.identity, self._seq):
            self._restore(info, copy)
        if info.last_seq < self._seq:
            self._alerts.tell(
                "log_shortened",
                f"the log ends at {info.last_seq}, {self._seq} was read: NATS lost its newest messages",
            )
            self._seq = info.last_seq
            self._history.rewind(info.last_seq)
        elif info.first_seq > 1 and not self._seq:
            self._alerts.tell(
                "state_lost",
                f"the log begins with message {info.first_seq}, and there is neither a snapshot nor a copy of it: what was open, "
                "held and drained before is not known here. Nodes that gpuward has drained stay drained: look at the scheduler "
                "for reasons that begin with `gpuward:`, and set holds and modes again. With an archive of the log `gpuward log "
                'replay` brings all of it back (docs/operations.md, "The log\'s archive").',
            )
        elif info.first_seq > self._seq + 1:
            self._tell_gap(self._seq + 1, info.first_seq)
        self._next = max(self._seq + 1, info.first_seq)
        self._caught_up.clear()
        if info.last_seq < self._next:  # also where the log has dropped the rest: it will never come
            self.end_of_log()

    def rewind(self, seq: int) -> None:
        """Goes on behind this position: what was read there is not what the log has (log_pull.same_up_to)."""
        self._alerts.tell(
            "log_shortened",
            f"the log has other messages from {seq + 1} on than were read, up to {self._seq}: NATS lost its newest messages, and "
            "others have come in their place, which are read now",
        )
        self._seq = seq
        self._history.rewind(seq)
        self._next = seq + 1
        self._caught_up.clear()

    def _tell_gap(self, first: int, behind: int) -> None:
        self._alerts.tell(
            "log_gap", f"messages {first} to {behind - 1} were removed before this brain read them"
        )

    def _restore(self, info: LogInfo, copy: bytes) -> None:
        """Makes a new engine: from the newest state that fits this log, otherwise to read the log from its beginning."""
        self.close()
        self._engine = Engine(actions=self._actions)
        self._quarantine = self._open_quarantine(info.identity)
        found = self._snapshots.load(info.identity, copy, info.first_seq)
        state, seq, why = found.state, found.seq, found.why
        written = self._history.open(info.identity)
        if state is not None and written < seq and info.first_seq <= 1:
            # The read model was lost, and the log still has everything that it is made from.
            state, seq, why = None, 0, "the read model is behind the snapshot: made again from the log"
            self._history.clear(info.identity)
            written = 0
        self._read_again = state is None and written > 0
        if state is not None:
            self._engine.close()
            self._engine = Engine(state, actions=self._actions)
            if written < seq:
                self._history.reconcile(state, "not known any more")
        self._identity, self._seq, self._saved_seq = info.identity, seq, seq
        self._history.resume(seq)
        told = f"snapshot at {seq}" if state is not None else ""
        _log.info("log %s: %s", info.identity, ", ".join(filter(None, (told, why))))

    def quarantined(self, seq: int) -> bool:
        """Whether the input at this position has crashed the brain too often to be handled."""
        return self._quarantine is not None and seq in self._quarantine.quarantined

    def handle(self, given: Input, seq: int, now: float) -> list[Effect]:
        """Lets the engine handle the input at a position and returns its effects. Raises what the engine raises."""
        assert self._quarantine is not None  # noqa: S101 - attach() comes first
        if seq > self._next:  # the log has dropped its oldest while this brain was reading them
            self._tell_gap(self._next, seq)
        self._next = seq + 1
        self._quarantine.begin(seq)
        effects = self._engine.handle(given, now)
        self._quarantine.end()
        self._seq = seq
        self._calm &= isinstance(given, Pulse)
        return effects

    def end_of_log(self) -> None:
        """Marks the replica as caught up: the newest input on the log has been handled."""
        if self._caught_up.is_set():
            return
        self._caught_up.set()
        if self._read_again:
            self._history.reconcile(self.state, "not known any more, as the log was read again")
            self._read_again = False

    def saved(self, seq: int) -> None:
        """Records that a snapshot of this position is on disk."""
        self._saved_seq, self._calm = seq, seq == self._seq

    def close(self) -> None:
        """Frees the engine and the quarantine. What is not in the history by then is read from the log again."""
        self._engine.close()
        if self._quarantine is not None:
            self._quarantine.close()
            self._quarantine = None
        self._identity = ""
