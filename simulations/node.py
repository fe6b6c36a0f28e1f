"""One simulated node: a simulated machine behind the agent's own commander.

Signature, epoch, expiry, allow-list and journal are the agent's production code (agent.commands.commander); only the
machine and the uplink are simulated. Events wait in memory until the broker has them, in order, with the same ids.
"""

import asyncio
import math
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import orjson

from agent import __version__
from agent.actions.base import Done, NotPassed, Params
from agent.commands.commander import Commander
from agent.commands.journal import Journal
from agent.contract.actions import ACTIONS
from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, Refused
from agent.contract.messages import Beat, Event, UnsentEvent, encode_beat
from agent.host import Host
from agent.remembered.trusted import Trusted
from brain.core.pack import vocabulary
from simulations import events
from simulations.actions import NODE_ACTIONS
from simulations.actions.base import SimulatedResult
from simulations.changes import ScheduledChange
from simulations.inventory import SimulatedInventory
from simulations.machines import Machine

VERSION = f"{__version__} (simulated)"
STARTED = "agent.started"
BMC_FACTS = 16  # that its BMC remembers, the newest
MAX_WAITING = 10_000  # events that wait for the broker; above, the oldest are dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """An event that the broker does not have yet."""

    seq: int
    unsent: UnsentEvent
    # When it happened, on the monotonic clock.
    mono_s: float
    # The same on the wall clock, ISO 8601.
    wall: str


class SimulatedNode:
    """A machine, its commander and its uplink."""

    def __init__(
        self,
        name: str,
        *,
        cell: str,
        keys: Mapping[str, bytes],
        folder: Path,
        host: Host,
        on_event: Callable[["SimulatedNode"], None],
        slow_s: float = 0.0,
    ) -> None:
        """`keys`: whose commands it obeys; `folder`: of its journal; `on_event`: called when there is an event to send;
        `slow_s`: added to the duration of every action.
        """
        self.name = name
        self.machine = Machine(name)
        self.session = secrets.token_hex(6)
        self._trusted = Trusted(folder / f"{name}.trusted.json", cell=cell, serial=0, keys=keys, ca="")
        self.commander = Commander(
            host=host,
            cell=cell,
            node=name,
            session=self.session,
            trusted=self._trusted,
            allow=frozenset(ACTIONS),
            actions={action.name: action for action in (make(self, slow_s) for make in _ACTIONS)},
            journal=Journal(folder / f"{name}.journal"),
            uplink=self,
        )
        self._host = host
        self._boot = host.boot_id()
        self._inventory = SimulatedInventory(host.kernel())
        self._spool = secrets.token_hex(4)
        self._seq = 0
        self._waiting: deque[_Waiting] = deque()
        self._of_bmc: deque[tuple[str, UnsentEvent]] = deque(maxlen=BMC_FACTS)
        self._dropped = 0
        self._on_event = on_event
        self._timer: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Reports that the agent started, and the results of commands that were running when it died."""
        started = events.agent_started(VERSION, self._host.kernel(), len(self.machine.state.gpus))
        self.put(started, self._host.mono_s())
        self._tell_inventory(self._host.mono_s())
        await self.commander.recover()
        self.advance()

    async def stop(self) -> None:
        """Ends the actions that run."""
        if self._timer is not None:
            self._timer.cancel()
        await self.commander.stop()

    def inject(self, plan: tuple[ScheduledChange, ...]) -> None:
        """Begins a drill."""
        self.machine.apply(plan, self._host.mono_s())
        self.advance()

    @property
    def boot(self) -> str:
        """The boot id; another one after each reboot."""
        boots = self.machine.state.boots
        return f"{self._boot}-{boots}" if boots else self._boot

    def unreachable(self) -> bool:
        """Whether it neither sends nor receives anything now."""
        return self.machine.state.unreachable(self._host.mono_s())

    # --- the uplink (agent.uplink.port.Uplink) ---

    def put(self, unsent: UnsentEvent, mono_s: float) -> None:
        """Keeps one event until the broker has it; what its BMC says the brain asks for."""
        self._seq += 1
        if unsent.kind in vocabulary.KINDS:
            self._of_bmc.append((f"{self.name}:{self._spool}:{self._seq}", unsent))
            return
        wall = self._host.wall().isoformat(timespec="milliseconds")
        self._waiting.append(_Waiting(seq=self._seq, unsent=unsent, mono_s=mono_s - unsent.age_s, wall=wall))
        if len(self._waiting) > MAX_WAITING:
            self._waiting.popleft()
            self._dropped += 1
        self._on_event(self)

    def bmc_says(self) -> list[tuple[str, UnsentEvent]]:
        """The newest facts of its BMC, each with an id."""
        return list(self._of_bmc)

    def next_event(self) -> Event | None:
        """The oldest event that the broker does not have; None: there is none, or the node is unreachable."""
        now = self._host.mono_s()
        if not self._waiting or self.machine.state.unreachable(now):
            return None
        waiting = self._waiting[0]
        unsent = waiting.unsent
        return Event(
            id=f"{self.name}:{self._spool}:{waiting.seq}",
            node=self.name,
            kind=unsent.kind,
            component=unsent.component,
            severity=unsent.severity,
            at=waiting.wall,
            age_s=max(0.0, now - waiting.mono_s),
            boot=self.boot,
            count=unsent.count,
            data=unsent.data,
            evidence=unsent.evidence,
        )

    def sent(self, event: Event) -> None:
        """The broker has it."""
        if self._waiting and event.order[1] == self._waiting[0].seq:
            self._waiting.popleft()

    def beat(self) -> bytes | None:
        """The body of a heartbeat; None: the node is unreachable."""
        now = self._host.mono_s()
        if self.machine.state.unreachable(now):
            return None
        beat = Beat(
            node=self.name,
            session=self.session,
            boot=self.boot,
            mono_s=now,
            version=VERSION,
            spooled=len(self._waiting),
            dropped=self._dropped,
            trust=self._trusted.serial,
            wall_s=self._host.wall().timestamp(),
        )
        return orjson.dumps(encode_beat(beat))

    # --- the machine ---

    def perform(self, action: str, params: Params) -> SimulatedResult:
        """Begins an action; how it will end."""
        result = self.machine.perform(action, params, self._host.mono_s())
        self.advance()
        return result

    def advance(self) -> None:
        """Reports what has happened on the machine; sets a timer for the next change."""
        now, state = self._host.mono_s(), self.machine.state
        for at, unsent in self.machine.advance(now):
            self.put(unsent, at)
            if unsent.kind == STARTED:  # its agent, after a boot
                self._tell_inventory(at)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        times = [state.unreachable_until] if now < state.unreachable_until < math.inf else []
        times += [time for time in (self.machine.next_at(),) if time is not None]
        next_at = min(times, default=None)
        if next_at is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0.001, next_at - now), self.advance)
        if self._waiting:
            self._on_event(self)

    def _tell_inventory(self, at: float) -> None:
        for unsent in self._inventory.told(self.machine.state):
            self.put(unsent, at)


class _MachineAction:
    """An action of the agent, performed on the simulated machine."""

    name: ClassVar[str]

    def __init__(self, node: SimulatedNode, slow_s: float) -> None:
        self._node = node
        self._slow_s = slow_s

    async def plan(self, params: Params) -> list[str]:
        """See agent.actions.base."""
        given = ", ".join(f"{name} {value}" for name, value in params.items())
        return [f"{self.name} on a simulated machine{f': {given}' if given else ''}"]

    async def run(self, params: Params) -> Done:
        """See agent.actions.base."""
        result = self._node.perform(self.name, params)
        await asyncio.sleep(result.took_s + self._slow_s)
        if result.outcome is Outcome.REFUSED:
            raise Refused(result.why)
        done = Done(text=result.why, figures=result.figures, alike=result.alike, blind=result.blind)
        if result.outcome is not Outcome.OK:
            raise NotPassed(done) if result.figures else ActionError(result.why)
        return done

    async def recover(self, params: Params) -> None:
        """Nothing is left half done: the changes of the action have come meanwhile."""


def _machine_action(name: str) -> type[_MachineAction]:
    return type(name, (_MachineAction,), {"name": name})


_ACTIONS = tuple(map(_machine_action, NODE_ACTIONS))
