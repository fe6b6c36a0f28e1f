"""Silence is a fact too: beats that stop become one input, and beats that come back another.

Only the leader says so, and only after it has listened for a whole `silent_after_s` without interruption: a
brain that has just begun, was cut off or slept must not take its own deafness for the silence of the fleet.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import orjson
from nats.aio.msg import Msg

from agent.contract import subjects
from agent.contract.errors import ContractError
from agent.contract.messages import Beat, decode_beat
from brain.core.inputs import NodeState
from brain.core.state import Node

SWEEP_S = 1.0
FRESH_S = 10.0  # an older beat does not tell the node's session for sure
_AGAIN_S = 10.0  # an input that had no effect is said again after this


@dataclass(frozen=True, slots=True)
class Heard:
    """The newest beat of a node and when it came, by this machine's monotonic clock."""

    beat: Beat
    at: float


class Beats:
    """The newest beat of each node."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.heard: dict[str, Heard] = {}
        self.broken = 0  # messages that were no beats

    async def on_message(self, message: Msg) -> None:
        """A message of `ward.<cell>.beat.<node>`."""
        node = subjects.node_of(message.subject)
        try:
            beat = decode_beat(orjson.loads(message.data), node)
        except (ContractError, ValueError):
            self.broken += 1
            return
        self.heard[node] = Heard(beat, self._clock())

    def session(self, node: str) -> tuple[str, float] | None:
        """(session, the node's monotonic clock now), or None when no fresh beat tells it."""
        found = self.heard.get(node)
        if found is None:
            return None
        age = self._clock() - found.at
        return (found.beat.session, found.beat.mono_s + age) if age <= FRESH_S else None


class Liveness:
    """Compares what the engine believes with what was heard."""

    def __init__(
        self, beats: Beats, silent_after_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._beats = beats
        self._silent_after_s = silent_after_s
        self._clock = clock
        self._since = clock()  # listening without interruption
        self._swept = clock()
        self._said: dict[str, tuple[bool, float]] = {}  # node -> (what was said, when)
        self._count = 0

    def restart(self) -> None:
        """Listening begins now: a new connection, or this brain has just become the leader."""
        self._since = self._swept = self._clock()
        self._said.clear()

    def sweep(self, nodes: Mapping[str, Node], epoch: int) -> Iterator[NodeState]:
        """What has changed since the last sweep; call it every SWEEP_S while leading."""
        now = self._clock()
        if now - self._swept > self._silent_after_s / 2 + SWEEP_S:
            self.restart()  # this process slept: beats may wait unread
        self._swept = now
        for name, node in nodes.items():
            heard = self._beats.heard.get(name)
            silent_s = now - max(heard.at if heard else self._since, self._since)
            if node.alive and silent_s > self._silent_after_s:
                yield from self._say(name, alive=False, silent_s=silent_s, now=now, epoch=epoch)
            elif not node.alive and heard is not None and now - heard.at < self._silent_after_s:
                yield from self._say(name, alive=True, silent_s=0.0, now=now, epoch=epoch)
        for name in self._beats.heard:
            if name not in nodes:
                yield from self._say(name, alive=True, silent_s=0.0, now=now, epoch=epoch)

    def _say(self, node: str, *, alive: bool, silent_s: float, now: float, epoch: int) -> Iterator[NodeState]:
        before = self._said.get(node)
        if before is not None and before[0] == alive and now - before[1] < _AGAIN_S:
            return
        self._said[node] = (alive, now)
        self._count += 1
        yield NodeState(
            id=f"n:{node}:{epoch}.{self._count}", node=node, alive=alive, silent_s=round(silent_s, 3)
        )
