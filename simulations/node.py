"""One simulated node: a simulated machine under the agent's own ear for commands.

Signature, epoch, expiry, allow-list and journal are the agent's production code (agent.commander); only the
machine and the way up are ours: facts wait in memory until the broker has them, in order, with the same ids.
"""

import asyncio
import math
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

import orjson

from agent import __version__
from agent.actions.base import Done, Params
from agent.commander import Commander
from agent.contract.actions import ACTIONS
from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, Refused
from agent.contract.messages import Beat, Draft, Event, Severity, encode_beat
from agent.host import Host
from agent.uplink.journal import Journal
from simulations.changes import After
from simulations.machines import Machine
from simulations.remedies import REMEDIES, Performed

VERSION = f"{__version__} (simulated)"
KEPT = 10_000  # facts that wait for the broker; above, the oldest go


class SimulatedNode:
    """See the module's docstring. `on_fact` is called when there is something to send."""

    def __init__(
        self,
        name: str,
        *,
        cell: str,
        keys: Mapping[str, bytes],
        folder: Path,
        host: Host,
        on_fact: Callable[["SimulatedNode"], None],
        slow_s: float = 0.0,
    ) -> None:
        """`keys`: whose commands it obeys; `folder`: of its journal; `slow_s`: added to every action."""
        self.name = name
        self.machine = Machine(name)
        self.session = secrets.token_hex(6)
        self.commander = Commander(
            host=host,
            cell=cell,
            node=name,
            session=self.session,
            keys=keys,
            allow=frozenset(ACTIONS),
            actions={action.name: action for action in (make(self, slow_s) for make in _ACTIONS)},
            journal=Journal(folder / f"{name}.journal"),
            uplink=self,
        )
        self._host = host
        self._boot = host.boot_id()
        self._spool = secrets.token_hex(4)
        self._seq = 0
        self._waiting: deque[tuple[int, Draft, float, str]] = (
            deque()
        )  # (seq, fact, when it came about, wall clock)
        self._dropped = 0
        self._on_fact = on_fact
        self._due: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Says that the agent started, and how commands ended that were under way when it died."""
        kernel, gpus = self._host.kernel(), len(self.machine.gpus)
        data: dict[str, str | int] = {"version": VERSION, "kernel": kernel, "gpus": gpus}
        draft = Draft(kind="agent.started", component="node", severity=Severity.INFO, data=data)
        self.put(draft, self._host.mono_s())
        await self.commander.recover()
        self.look()

    async def stop(self) -> None:
        """Ends what runs."""
        if self._due is not None:
            self._due.cancel()
        await self.commander.stop()

    def inject(self, plan: tuple[After, ...]) -> None:
        """A fault begins now."""
        self.machine.apply(plan, self._host.mono_s())
        self.look()

    @property
    def boot(self) -> str:
        """The boot id; another one after each reboot."""
        return f"{self._boot}-{self.machine.boots}" if self.machine.boots else self._boot

    # --- the way up (agent.uplink.port.Uplink) ---

    def put(self, draft: Draft, mono_s: float) -> None:
        """Keeps one fact until the broker has it."""
        self._seq += 1
        at = self._host.wall().isoformat(timespec="milliseconds")
        self._waiting.append((self._seq, draft, mono_s - draft.age_s, at))
        if len(self._waiting) > KEPT:
            self._waiting.popleft()
            self._dropped += 1
        self._on_fact(self)

    def next_event(self) -> Event | None:
        """The oldest fact that the broker does not have; None: there is none, or the node is silent."""
        now = self._host.mono_s()
        if not self._waiting or self.machine.silent(now):
            return None
        seq, draft, since, at = self._waiting[0]
        return Event(
            id=f"{self.name}:{self._spool}:{seq}",
            node=self.name,
            kind=draft.kind,
            component=draft.component,
            severity=draft.severity,
            at=at,
            age_s=max(0.0, now - since),
            boot=self.boot,
            count=draft.count,
            data=draft.data,
            evidence=draft.evidence,
        )

    def sent(self, event: Event) -> None:
        """The broker has it."""
        if self._waiting and event.order[1] == self._waiting[0][0]:
            self._waiting.popleft()

    def beat(self) -> bytes | None:
        """The body of a sign of life; None: the node is silent."""
        now = self._host.mono_s()
        if self.machine.silent(now):
            return None
        beat = Beat(
            node=self.name,
            session=self.session,
            boot=self.boot,
            mono_s=now,
            version=VERSION,
            spooled=len(self._waiting),
            dropped=self._dropped,
        )
        return orjson.dumps(encode_beat(beat))

    def hears(self) -> bool:
        """Does a command reach it now?"""
        return not self.machine.silent(self._host.mono_s())

    def act(self, action: str, params: Params) -> Performed:
        """Begins an action; says how it will have ended."""
        performed = self.machine.perform(action, params, self._host.mono_s())
        self.look()
        return performed

    def look(self) -> None:
        """Reports what has come about, and looks again when the next change is due."""
        now = self._host.mono_s()
        for at, draft in self.machine.advance(now):
            self.put(draft, at)
        if self._due is not None:
            self._due.cancel()
            self._due = None
        times = [self.machine.silent_until] if now < self.machine.silent_until < math.inf else []
        times += [time for time in (self.machine.next_at(),) if time is not None]
        next_at = min(times, default=None)
        if next_at is not None:
            self._due = asyncio.get_running_loop().call_later(max(0.001, next_at - now), self.look)
        if self._waiting:
            self._on_fact(self)


class _Action:
    """An action of the agent's table, done to the simulated machine."""

    name: ClassVar[str]

    def __init__(self, node: SimulatedNode, slow_s: float) -> None:
        self._node = node
        self._slow_s = slow_s

    async def plan(self, params: Params) -> list[str]:
        """See agent.actions.base."""
        return [f"{self.name} {dict(params)} on a simulated machine"]

    async def run(self, params: Params) -> Done:
        """See agent.actions.base."""
        performed = self._node.act(self.name, params)
        await asyncio.sleep(performed.took_s + self._slow_s)
        if performed.outcome is Outcome.REFUSED:
            raise Refused(performed.why)
        if performed.outcome is not Outcome.OK:
            raise ActionError(performed.why)
        return Done(text=performed.why)

    async def recover(self, params: Params) -> None:
        """Nothing stays half done: what had begun has come to the machine meanwhile."""


def _simulated(action: str) -> type[_Action]:
    return type(action, (_Action,), {"name": action})


_ACTIONS = tuple(map(_simulated, REMEDIES))  # law: as many as the agent has (a test compares)
