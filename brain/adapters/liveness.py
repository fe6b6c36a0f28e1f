"""Node liveness: beats that stop become one input, and beats that return another.

Only the leader reports it, and only after it has received beats for a whole `unreachable_after_s` without interruption.
A brain that has just started, was disconnected or was suspended must not take its own outage for one of the fleet.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import orjson

from agent.contract.errors import ContractError
from agent.contract.messages import Beat, decode_beat
from brain.core.inputs import NodeState
from brain.core.state import Node

SWEEP_S = 1.0
FRESH_S = 10.0  # an older beat may name a session that has ended
_REPEAT_S = 10.0  # an input that had no effect is repeated after this


@dataclass(frozen=True, slots=True)
class LastBeat:
    """The newest beat of a node, and when it arrived by this machine's monotonic clock."""

    beat: Beat
    at: float
    # So far was the node's wall clock ahead of this machine's; None: an older agent does not tell
    ahead_s: float | None = None


class Beats:
    """The newest beat of each node."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._wall = wall
        self.newest: dict[str, LastBeat] = {}
        self.malformed = 0  # messages that could not be decoded

    def take(self, node: str, body: bytes, waited_s: float = 0.0) -> Beat | None:
        """Takes a beat that this node has offered, and returns it; None: it cannot be read. `waited_s`: so long ago it came to
        the server, which is no fault of the node's clock.
        """
        try:
            beat = decode_beat(orjson.loads(body), node)
        except (ContractError, ValueError):
            self.malformed += 1
            return None
        ahead_s = beat.wall_s - self._wall() + max(0.0, waited_s) if beat.wall_s else None
        self.newest[node] = LastBeat(beat, self._clock(), ahead_s)
        return beat

    def forget(self, node: str) -> None:
        """The node is gone for good."""
        self.newest.pop(node, None)

    def session(self, node: str) -> tuple[str, float] | None:
        """Returns (session, the node's monotonic clock now), or None without a fresh beat."""
        found = self.newest.get(node)
        if found is None:
            return None
        age = self._clock() - found.at
        return (found.beat.session, found.beat.mono_s + age) if age <= FRESH_S else None


class Liveness:
    """Compares the engine's view of the nodes with the beats that arrive."""

    def __init__(
        self, beats: Beats, unreachable_after_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._beats = beats
        self._unreachable_after_s = unreachable_after_s
        self._clock = clock
        self._since = clock()  # beats have been received without interruption since then
        self._swept = clock()
        self._reported: dict[str, tuple[bool, float]] = {}  # node -> (alive, when it was reported)
        self._count = 0

    def restart(self) -> None:
        """Starts the interval again: a new connection, or this brain has just become the leader."""
        self._since = self._swept = self._clock()
        self._reported.clear()

    def sweep(self, nodes: Mapping[str, Node], epoch: int) -> Iterator[NodeState]:
        """Yields what has changed since the last sweep; call it every SWEEP_S while leading."""
        now = self._clock()
        if now - self._swept > self._unreachable_after_s / 2 + SWEEP_S:
            self.restart()  # this process was suspended: beats may be waiting unread
        self._swept = now
        for name, node in nodes.items():
            last = self._beats.newest.get(name)
            silent_s = now - max(last.at if last else self._since, self._since)
            if node.alive and silent_s > self._unreachable_after_s:
                yield from self._report(name, alive=False, silent_s=silent_s, now=now, epoch=epoch)
            elif not node.alive and last is not None and now - last.at < self._unreachable_after_s:
                yield from self._report(name, alive=True, silent_s=0.0, now=now, epoch=epoch)
        for name, last in list(self._beats.newest.items()):
            if name in nodes:
                continue
            if now - last.at < self._unreachable_after_s:
                yield from self._report(name, alive=True, silent_s=0.0, now=now, epoch=epoch)
            else:
                self._beats.forget(name)  # it was forgotten after its last beat

    def _report(
        self, node: str, *, alive: bool, silent_s: float, now: float, epoch: int
    ) -> Iterator[NodeState]:
        before = self._reported.get(node)
        if before is not None and before[0] == alive and now - before[1] < _REPEAT_S:
            return
        self._reported[node] = (alive, now)
        self._count += 1
        yield NodeState(
            id=f"n:{node}:{epoch}.{self._count}", node=node, alive=alive, silent_s=round(silent_s, 3)
        )
