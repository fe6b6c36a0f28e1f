"""Carries rotations of keys to their end (`gpuward cell rotate`), and tells nodes what they must know of them.

| | the new key comes into use | the old one is taken out |
|---|---|---|
| signing | when this brain leads, and all live nodes have confirmed it, or the overlap is over | directly afterwards |
| brain | when the server accepts both (a site's own servers: `--now`) | when this brain is connected by the new one |
| authority | as signing | when the server shows the new certificate |
"""

import asyncio
import time
from collections.abc import Mapping
from functools import partial

from agent.contract.errors import ConfigError, Unreachable
from agent.shared.nats_connection import NatsConnection
from agent.shared.secret_file import nkey_seed
from agent.shared.tasks import abandonable
from brain.adapters.announcer import Announcer
from brain.adapters.liveness import FRESH_S, Beats
from brain.adapters.nats_server import NatsServer
from brain.adapters.rotation import KeyRotation
from brain.cell.confirmations import Confirmed, read_confirmed, write_confirmed
from brain.cell.trust import KeyKind, Rotation, Stage, TrustState
from brain.config import BrainConfig
from brain.leader.cell_journal import on_machine
from brain.leader.leadership import Leadership
from brain.leader.notes import BrainNotes
from brain.leader.replica import Replica

CHECK_S = 0.2
RECORD_S, CALM_RECORD_S = (
    1.0,
    5.0,
)  # how often it is written which node has confirmed: while keys are rotated, and else


class Rotations:
    """The rotations of one cell, in its brain."""

    def __init__(
        self,
        *,
        config: BrainConfig,
        server: NatsServer | None,
        connection: NatsConnection,
        leadership: Leadership,
        replica: Replica,
        beats: Beats,
        announcer: Announcer,
        notes: BrainNotes,
    ) -> None:
        self._config = config
        self._server = server
        self._connection = connection
        self._leadership = leadership
        self._replica = replica
        self._beats = beats
        self._announcer = announcer
        self._notes = notes
        self._keys = KeyRotation(config)
        self._file = self._keys.file
        self._confirmed: Mapping[str, Confirmed] = read_confirmed(self._file.confirmed_file)
        self._recorded_s = 0.0
        self._server_is_behind = False  # it has not read the files of the last step yet
        self._told = ""
        self._settled: TrustState | None = None  # of which it was looked whether a run was cut short

    async def serve(self) -> None:
        """Looks at the rotations, until cancelled. What fails is told once, and tried again."""
        while True:
            try:
                await self._look()
            except (ConfigError, Unreachable, OSError) as error:
                if str(error) != self._told:
                    self._told = str(error)
                    self._notes.write("cell.failed", f"rotation of keys: {error}")
            else:
                self._told = ""
            await asyncio.sleep(CHECK_S)

    async def _look(self) -> None:
        if self._server_is_behind and self._server is not None and self._server.running():
            await abandonable(self._server.reload, "reload")
            self._server_is_behind = False
        state = self._file.state()
        if state is not self._settled:
            await abandonable(self._keys.settle, "rotation")
            self._settled = state
        if self._leadership.leads() and (state.serial or self._any_was_told()):
            await self._announcer.tell_all()
            await self._record(RECORD_S if state.rotations else CALM_RECORD_S)
        waits = ""
        for kind, rotation in state.rotations.items():
            waits = waits or self._waits_for_the_lead(kind, rotation)
            if not self._server_is_behind and await self._due(kind, rotation):
                self._server_is_behind = self._server is not None  # those of a site's own somebody reloads
                await abandonable(partial(self._keys.advance, kind, now=time.time()), "rotation")
                self._tell(kind, rotation)
        if waits:
            raise ConfigError(waits)

    def _waits_for_the_lead(self, kind: KeyKind, rotation: Rotation) -> str:
        """What to say of a rotation that was begun at a brain that does not lead; empty: it was not, or it is not its time."""
        if (
            (kind, rotation.stage) != (KeyKind.SIGNING, Stage.OVERLAP)
            or self._config.embedded
            or self._leadership.leads()
            or time.time() < rotation.switch_at
        ):
            return ""
        return (
            "this brain does not lead, and nodes hear of keys from the leader only: the new one comes into use when it leads. "
            "Where another brain leads, say `gpuward cell rotate signing` there, and bring its keys here when that is over "
            "(`gpuward cell share`, `gpuward cell take`)"
        )

    async def _due(self, kind: KeyKind, rotation: Rotation) -> bool:
        """Is it time for the next step?"""
        if kind is KeyKind.BRAIN:
            return await self._brain_due(rotation)
        if rotation.stage is Stage.SWITCHED:
            return True
        if kind is KeyKind.SIGNING and not self._leadership.leads():
            return False
        return time.time() >= rotation.switch_at or (self._leadership.leads() and not self.unconfirmed())

    async def _brain_due(self, rotation: Rotation) -> bool:
        if rotation.stage is Stage.SWITCHED:
            seed = await abandonable(lambda: nkey_seed(self._config.brain_seed, "nats.seed_file"), "seed")
            if not self._connection.connected or self._connection.uses(seed):
                return self._connection.connected
            self._connection.reconnect()
            return False
        if self._server is None:
            return time.time() >= rotation.switch_at
        if not self._server.running():
            return False
        await abandonable(self._server.reload, "reload")  # it accepts both from now on
        return True

    def unconfirmed(self) -> list[str]:
        """The live nodes that have not confirmed the newest announcement, apart from those that must join again."""
        state = self._file.state()
        live = {name for name, node in self._replica.state.nodes.items() if node.alive} | self._heard()
        serials = {name: self._announcer.serial(name) for name in live}
        return sorted(
            name
            for name, serial in serials.items()
            if serial < state.serial and (serial >= state.joined_since or name not in self._beats.newest)
        )

    def _any_was_told(self) -> bool:
        """Has a node heard an announcement, though we have none? Then ours are lost."""
        return any(last.beat.trust for last in self._beats.newest.values())

    def _heard(self) -> set[str]:
        now = time.monotonic()
        return {name for name, last in self._beats.newest.items() if now - last.at < FRESH_S}

    async def _record(self, every_s: float) -> None:
        """Writes down what has changed, for `gpuward cell show`."""
        now_s = time.monotonic()
        if now_s - self._recorded_s < every_s:
            return
        self._recorded_s = now_s
        heard = self._heard()
        known = {name: Confirmed(serial=one.serial, live=False) for name, one in self._confirmed.items()}
        now = {
            name: Confirmed(serial=last.beat.trust, live=name in heard)
            for name, last in self._beats.newest.items()
        }
        if known | now != self._confirmed:
            await abandonable(lambda: write_confirmed(self._file.confirmed_file, known | now), "confirmed")
            self._confirmed = known | now

    def _tell(self, kind: KeyKind, rotation: Rotation) -> None:
        what = {
            KeyKind.SIGNING: "key that signs commands",
            KeyKind.BRAIN: "brain's NKEY",
            KeyKind.AUTHORITY: "certificate authority",
        }[kind]
        said = (
            f"the new {what} is in use; the old one is accepted for the moment"
            if rotation.stage is Stage.OVERLAP
            else f"the old {what} has been taken out: its rotation is over"
        )
        self._notes.write("cell.rotated", f"{on_machine(rotation.by)}: {said}" if rotation.by else said)
