"""The brain: everything wired in one straight line, undone in reverse; and the supervisor.

NATS session:  outbox, beats, lease, log reader -> Live.take -> effects
beside it:     console, timers, liveness, pack files, snapshots
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from nats.aio.client import Client

from agent.contract import subjects
from agent.contract.errors import BugError, ConfigError, Unreachable
from brain import jobs, opened
from brain.actions import Make, real
from brain.adapters import evidence, keys, liveness, log, ufm_events
from brain.adapters.broker import LOST, Broker
from brain.adapters.codec import Codec
from brain.adapters.files import only_one
from brain.adapters.lease import Lease
from brain.adapters.nats_server import NatsServer
from brain.adapters.nodes import Nodes
from brain.adapters.outbox import Outbox
from brain.adapters.packwatch import PackWatch
from brain.adapters.poison import Poison
from brain.adapters.readmodel import ReadModel
from brain.adapters.snapshot import Snapshots
from brain.adapters.tasks import Tasks
from brain.config import BrainConfig
from brain.console.desk import NodeHeard
from brain.console.feed import Feed
from brain.console.server import Console
from brain.core import proof
from brain.core.actions import ACTIONS
from brain.core.inputs import Leader, PackLoaded, Said
from brain.core.spec import Pack
from brain.fleet import NodeFleet
from brain.hands import RealHands
from brain.live import Live
from brain.notify import notifier as notify
from brain.options import secret
from brain.performer import Performer

_log = logging.getLogger(__name__)

DEAF_S = 60.0  # without NATS for so long, people are paged: nobody else can tell them
RESTART_S = (1.0, 5.0, 30.0)  # pauses before the brain is built anew after a failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Where a running brain is reached."""

    console_url: str
    nats_url: str
    server: NatsServer | None  # the embedded one
    signer: keys.Signer


async def run(
    config: BrainConfig,
    stop: asyncio.Event,
    ready: Callable[[Running], None] = lambda _: None,
    make: Make = real,
) -> None:
    """Runs the brain until `stop` is set. `make` builds what it does itself.

    ConfigError: the operator must mend something before it can start.
    """
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(only_one(config.data_dir))
        name = config.brain or subjects.node_name(socket.gethostname())
        signer = keys.load_signer(config.signing_key_file or config.data_dir / "signing.key")
        server = stack.enter_context(opened.embedded(config)) if config.embedded else None
        broker = Broker(
            config.nats,
            name=f"gpuward brain {name}",
            url=server.url if server else "",
            seed=secret(server.brain_seed_file, "nats.embedded") if server else "",
        )
        notifier = notify.build(config.channels, config.groups, config.data_dir)
        stack.push_async_callback(notifier.close)
        readmodel = ReadModel(config.data_dir / "history.sqlite")
        stack.callback(readmodel.close)
        background = Tasks()
        brain = Brain(config, name, signer, broker, readmodel, notifier, background, stack, make)
        stack.callback(brain.live.close)
        stack.push_async_callback(brain.last_snapshot)
        console = Console(brain, config.console, secret(config.console.token_file, "console.token_file"))
        url = await stack.enter_async_context(opened.console(console))
        await stack.enter_async_context(background)
        background.start(brain.supervise(), "supervisor")
        background.start(brain.live.write(), "read model")
        background.start(brain.snapshots(), "snapshots")
        background.start(brain.watch_connection(), "connection")
        background.start(brain.keep_alerts(), "alerts")
        for listener in brain.hands.listeners:
            background.start(listener.run(), "reports")
            stack.push_async_callback(listener.close)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, brain.packs.look_now)
        stack.callback(loop.remove_signal_handler, signal.SIGHUP)
        _log.info("cell %s: console %s, NATS %s", config.cell, url, server.url if server else config.nats.url)
        ready(
            Running(
                console_url=url,
                nats_url=server.url if server else config.nats.url,
                server=server,
                signer=signer,
            )
        )
        stopping = background.start(stop.wait(), "stop")
        failed = asyncio.ensure_future(background.wait())
        await asyncio.wait({stopping, failed}, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()
        failed.cancel()


class Brain:
    """The parts of one brain and what runs between them. It is the console's `Desk`."""

    def __init__(
        self,
        config: BrainConfig,
        name: str,
        signer: keys.Signer,
        broker: Broker,
        readmodel: ReadModel,
        notifier: notify.Notifier,
        background: Tasks,
        stack: contextlib.AsyncExitStack,
        make: Make,
    ) -> None:
        self.config = config
        self.name = name
        self.started_at = time.time()
        self.broker = broker
        self.readmodel = readmodel
        self.feed = Feed()
        self.clock = log.LogClock()
        self.beats = liveness.Beats()
        self._codec = Codec(config.cell)
        self._notifier = notifier
        self._outbox = Outbox(config.cell)
        self._packs_said = 0
        instance = f"{name}:{os.getpid()}:{time.time_ns()}"
        self.lease = Lease(config.cell, instance, config.lease_ttl_s, replicas=config.nats.replicas)
        nodes = Nodes(config.cell, signer, self.beats, self._may_act)
        fleet = NodeFleet(nodes, client=lambda: self.hands.client, epoch=lambda: self.lease.epoch)
        own = make(config, fleet, stack, self.ask)
        self.hands = RealHands(
            name=name,
            codec=self._codec,
            outbox=self._outbox,
            nodes=nodes,
            own=Performer(
                own.actions, may_act=self._may_act, put=lambda given: self.hands.put(given, keep=False)
            ),
            fleet=fleet,
            jobs=lambda node, id_: jobs.ask(own.schedulers, node, id_),
            notifier=notifier,
            lease=self.lease,
            state=lambda: self.live.state,
            tell=lambda kind, text: self.live.tell(kind, text),  # noqa: PLW0108 - `live` is made below
            start=background.start,
        )
        self.liveness = liveness.Liveness(self.beats, config.silent_after_s)
        self.packs = PackWatch(config, lambda pack: proof.failures(pack, ACTIONS))
        self.live = Live(
            name=name,
            codec=self._codec,
            actions=ACTIONS,
            readmodel=readmodel,
            snapshots=Snapshots(config.data_dir / "state.snapshot"),
            poison=lambda identity: Poison(config.data_dir, identity),
            lease_epoch=lambda: self.lease.epoch if self.lease.held else 0,
            clock=self.clock,
            hands=self.hands,
            leading=self._leading,
            publish=self.feed.publish,
        )
        self.hands.listeners = ufm_events.listeners(
            config.ufm,
            put=lambda given: self.hands.put(given, keep=False),
            tell=self.live.tell,
            leads=self.live.leads,
            data_dir=config.data_dir,
        )

    # --- what runs ---

    async def supervise(self) -> None:
        """Keeps the brain going. The only place that catches what nobody expected."""
        failures = 0
        while True:
            began = time.monotonic()
            try:
                await self.broker.serve(self._session)
            except ConfigError:
                raise
            except BugError as error:
                await self._stop_acting(error)
            except Exception:  # noqa: BLE001 - the supervisor: what nobody expected must not end the brain
                _log.exception(
                    "input after %d failed: the brain is built anew from its snapshot", self.live.seq
                )
                self.live.close()
            failures = 0 if time.monotonic() - began > 10 * RESTART_S[-1] else failures + 1
            if failures == len(RESTART_S):
                self.hands.page_own("brain_failing", "the brain fails again and again: see its log")
            await asyncio.sleep(RESTART_S[min(failures, len(RESTART_S)) - 1])

    async def _session(self, client: Client) -> None:
        """One connection: all that needs NATS, until it is lost."""
        info = await log.ensure(client, self.config.cell, self.config.log, self.config.nats.replicas)
        self.live.attach(info)
        reader = log.Reader(client, self.config.cell, self.live.seq)
        await client.subscribe(subjects.beat(self.config.cell, "*"), cb=self.beats.on_message)
        self.liveness.restart()
        self.hands.client = client
        try:
            async with Tasks() as tasks:
                tasks.start(self._outbox.serve(client), "outbox")
                tasks.start(self._read(reader), "reader")
                tasks.start(self._compete(client), "lease")
                tasks.start(evidence.offer(client, self.config, self.live), "evidence")
                tasks.start(self._timers(), "timers")
                tasks.start(self._sweeps(), "liveness")
                tasks.start(self.packs.serve(self._take_pack, self._refuse_pack), "packs")
                await tasks.wait()
        finally:
            self.hands.client = None
            self.lease.drop()
            await reader.close()

    async def _read(self, reader: log.Reader) -> None:
        while True:
            self.live.take(await reader.batch())
            await asyncio.sleep(0)  # the others' turn, however long the backlog

    async def _compete(self, client: Client) -> None:
        """For the lease, once the whole log is read: a leader that still reads would hold up the others."""
        while not self.live.caught_up:
            await self.live.reached(self.live.seq + 1, log.HEARTBEAT_S)
        await self.lease.serve(client, self._won, lambda: self.live.state.epoch)

    async def _timers(self) -> None:
        while True:
            if self.live.leads():
                for given in self.live.timers.due(self.live.state.timers):
                    self.hands.put(given, keep=False)
                await self.live.timers.wait()
            else:
                await asyncio.sleep(self.config.lease_ttl_s / 8)

    async def _sweeps(self) -> None:
        while True:
            await asyncio.sleep(liveness.SWEEP_S)
            if self.live.leads():
                for given in list(self.liveness.sweep(self.live.state.nodes, self.lease.epoch)):
                    self.hands.put(given, keep=False)

    async def snapshots(self) -> None:
        """Writes the state down now and then."""
        settings = self.config.snapshot
        last, last_seq = time.monotonic(), 0
        while True:
            await asyncio.sleep(min(1.0, settings.every_s))
            now, seq = time.monotonic(), self.live.seq
            if now - last >= settings.every_s or seq - last_seq >= settings.every_inputs:
                await self.last_snapshot()
                last, last_seq = now, seq

    async def last_snapshot(self) -> None:
        """Writes the state down; a full disk is told and does not stop the brain."""
        try:
            await self.live.snapshot()
        except OSError as error:
            self.live.tell("brain.snapshot_failed", f"the snapshot was not written: {error}")

    async def keep_alerts(self) -> None:
        """Tells the receivers that need it again and again what is open, while this brain leads."""
        failed = False
        while True:
            await asyncio.sleep(1)
            if self.live.leads():
                errors = await self._notifier.refresh(lambda: self.live.state, time.monotonic())
                if errors and not failed:
                    self.live.tell("page.refresh_failed", "; ".join(errors))
                failed = bool(errors)

    async def watch_connection(self) -> None:
        """Without NATS the brain hears nothing, and nobody would hear of it."""
        since = time.monotonic()
        while True:
            await asyncio.sleep(1)
            if self.broker.connected:
                since = time.monotonic()
                self.hands.over("brain_deaf")
            elif time.monotonic() - since > DEAF_S:
                self.hands.page_own(
                    "brain_deaf", f"no connection to NATS for {DEAF_S:.0f} s: faults are not heard"
                )

    async def _stop_acting(self, error: BugError) -> None:
        """An invariant is broken: nothing is done any more until a person has looked.

        NATS goes on recording.
        """
        self.live.stopped = f"stopped acting at input {self.live.seq + 1}: {error}"
        _log.error(self.live.stopped, exc_info=error)
        self.live.tell("brain.stopped", self.live.stopped)
        self.hands.page_own("brain_bug", f"{self.live.stopped}. Restart gpuward when you have looked.")
        await self.broker.serve(self._outbox.serve)  # what people say and what was begun is still recorded

    def _may_act(self, epoch: int) -> bool:
        """Does this brain still lead with that epoch?"""
        return self.lease.held and self.lease.epoch == epoch

    def _leading(self) -> None:
        """This brain leads from here on."""
        _log.info("this brain leads with epoch %d", self.lease.epoch)
        self.liveness.restart()
        self.packs.look_now()

    def _won(self, epoch: int) -> None:
        self.hands.put(Leader(id=f"l:{epoch}", epoch=epoch, brain=self.name), keep=False)

    def _take_pack(self, pack: Pack) -> None:
        self.hands.over("brain_rules")
        current = self.live.state.pack
        if self.live.leads() and (current is None or current.version != pack.version):
            self._packs_said += 1
            self.hands.put(
                PackLoaded(id=f"p:{pack.version}:{self.lease.epoch}.{self._packs_said}", pack=pack),
                keep=False,
            )

    def _refuse_pack(self, errors: list[str]) -> None:
        for line in errors[:20]:
            self.live.tell("pack.refused", line)
        if self.live.leads() and self.live.state.pack is None:
            self.hands.page_own("brain_rules", f"no rules are in force: {errors[0]}")

    # --- Desk: what the console sees ---

    def connected(self) -> bool:
        """Is NATS there now?"""
        return self.broker.connected

    def heard(self) -> dict[str, NodeHeard]:
        """The newest beat of each node."""
        now = time.monotonic()
        return {
            node: NodeHeard(
                age_s=now - one.at,
                version=one.beat.version,
                spooled=one.beat.spooled,
                dropped=one.beat.dropped,
            )
            for node, one in self.beats.heard.items()
        }

    async def ask(self, subject: str, body: bytes, timeout_s: float) -> bytes:
        """A request on NATS that is not stored, and its answer. Unreachable when nobody answers in time."""
        try:
            answer = await self._client().request(subject, body, timeout=timeout_s)
        except LOST as error:
            raise Unreachable(f"no answer on {subject}: {error or type(error).__name__}") from error
        return bytes(answer.data)

    def _client(self) -> Client:
        if self.hands.client is None:
            raise Unreachable("there is no connection to NATS")
        return self.hands.client

    async def evidence(self, node: str, command: str) -> bytes | None:
        """An evidence bundle; None: there is none (yet). Unreachable, ActionError: see brain/adapters/evidence."""
        return await evidence.fetch(self._client(), self.config.cell, node, command)

    async def say(self, word: Said) -> int:
        """Puts a person's word on the log; its place there.

        Unreachable when NATS does not take it in time.
        """
        what, body = self._codec.encode(word)
        return await self._outbox.append(what, body, word.id)
