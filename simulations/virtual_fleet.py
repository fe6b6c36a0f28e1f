"""Simulated machines in virtual time: what is due next, what their agents say, and when a node has been silent for too long.

Pure: time is an argument. Idle machines cost nothing: a healthy node has nothing due, and its beats are not simulated; only
their absence is noticed, as late as the brain would notice it. Who hears the machines is decided by a class below
`VirtualFleet`: an engine (simulations/virtual_time.py), or whoever else looks after a fleet (simulations/month).
"""

import heapq
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence

from agent.contract.messages import UnsentEvent
from simulations.changes import ScheduledChange
from simulations.infrastructure import Infrastructure
from simulations.machines import Machine
from simulations.state import REHEARSAL, ActionTimes

START = 1_700_000_000.0  # 2023-11-14T22:13:20Z; any moment would do
UNREACHABLE_AFTER_S = 15.0  # as the brain's own default

Call = Callable[[float], None]  # what is done at a moment, which it is given


class VirtualFleet:
    """The machines of a cell in virtual time."""

    def __init__(self, nodes: Sequence[str], *, start: float = START, times: ActionTimes = REHEARSAL) -> None:
        self.machines = {name: Machine(name, times) for name in nodes}
        self.start = start
        # Called with (node, now) whenever a machine may have changed.
        self.watch: Callable[[str, float], None] | None = None
        self.infrastructure = Infrastructure(self.machines)
        # What unreachable nodes will send when they are back.
        self._unsent: dict[str, list[tuple[float, UnsentEvent]]] = {}
        self._unreachable_since: dict[str, float] = {}
        # Nodes that are known to be unreachable.
        self._missed: dict[str, None] = {}
        # When to advance a machine; only the entries that are also in `_next` count.
        self._due: list[tuple[float, str]] = []
        self._next: dict[str, float] = {}
        self._calls: list[tuple[float, int, Call]] = []
        self._count = 0

    @abstractmethod
    def said(self, node: str, unsent: UnsentEvent, at: float, now: float) -> None:
        """The agent of a node says now what it saw at `at`."""

    @abstractmethod
    def silent(self, node: str, since: float, now: float) -> None:
        """A node has been silent since then, for too long."""

    @abstractmethod
    def heard_again(self, node: str, since: float, now: float) -> None:
        """A node that was silent is heard again."""

    def call(self, at: float, what: Call) -> None:
        """Calls `what` at that moment: after what was put there before, and before machines change."""
        self._count += 1
        heapq.heappush(self._calls, (at, self._count, what))

    def apply(self, node: str, plan: Iterable[ScheduledChange], now: float) -> None:
        """Begins to change a machine."""
        self.machines[node].apply(plan, now)
        self.schedule(node, now)

    def next_at(self) -> float | None:
        """When something is due next; None: nothing ever."""
        times = [self._calls[0][0]] if self._calls else []
        times += [self._due[0][0]] if self._due else []
        return min(times, default=None)

    def pass_time(self, at: float) -> None:
        """Makes what is due until `at`."""
        while self._calls and self._calls[0][0] <= at:
            due, _, what = heapq.heappop(self._calls)
            what(due)
        while self._due and self._due[0][0] <= at:
            due, node = heapq.heappop(self._due)
            if self._next.get(node) == due:
                del self._next[node]
                self._advance(node, at)

    def schedule(self, node: str, at: float) -> None:
        """Advances the machine when its next change is due or its reachability changes, at once included."""
        machine = self.machines[node]
        back_at = machine.state.unreachable_until
        times = [back_at] if at < back_at < math.inf else []
        if node in self._unreachable_since and node not in self._missed:
            times.append(self._unreachable_since[node] + UNREACHABLE_AFTER_S)
        times += [time for time in (machine.next_at(),) if time is not None]
        due = max(at, min(times, default=math.inf))
        if due < math.inf and due < self._next.get(node, math.inf):
            self._next[node] = due
            heapq.heappush(self._due, (due, node))

    def _advance(self, node: str, now: float) -> None:
        """Says what the machine reports, or keeps it while the node is unreachable."""
        machine = self.machines[node]
        reported = machine.advance(now)
        if machine.state.unreachable(now):
            since = self._unreachable_since.setdefault(node, now)
            self._unsent.setdefault(node, []).extend(reported)
            if now - since >= UNREACHABLE_AFTER_S and node not in self._missed:
                self._missed[node] = None
                self.silent(node, since, now)
        else:
            since = self._unreachable_since.pop(node, now)
            if node in self._missed:
                del self._missed[node]
                self.heard_again(node, since, now)
            for at, unsent in self._unsent.pop(node, []) + reported:
                self.said(node, unsent, at, now)
        if self.watch is not None:
            self.watch(node, now)
        self.schedule(node, now)
