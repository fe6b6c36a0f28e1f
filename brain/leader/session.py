"""One connection to NATS: everything that needs it runs until it is lost."""

from nats.aio.client import Client

from agent.shared.tasks import Tasks
from brain.adapters import brain_settings, evidence, log, log_pull, server_check, state_copy
from brain.adapters.lease import Lease
from brain.adapters.node_requests import NodeRequests
from brain.config import BrainConfig
from brain.leader.archiver import Archiver
from brain.leader.competition import LeaseCompetition
from brain.leader.current_client import CurrentClient
from brain.leader.intake import Intake
from brain.leader.key_claim import KeyClaim
from brain.leader.liveness import LivenessService
from brain.leader.log_writer import LogWriter
from brain.leader.loop import LiveLoop
from brain.leader.nats_watch import NatsWatch
from brain.leader.notes import BrainNotes
from brain.leader.packs import PackUpdates
from brain.leader.pulse import PulseService
from brain.leader.replica import Replica
from brain.leader.timers import TimerService


class Session:
    """Call `run` once for each connection."""

    def __init__(
        self,
        *,
        config: BrainConfig,
        nats: CurrentClient,
        lease: Lease,
        claim: KeyClaim,
        requests: NodeRequests,
        intake: Intake,
        replica: Replica,
        loop: LiveLoop,
        writer: LogWriter,
        competition: LeaseCompetition,
        timers: TimerService,
        liveness: LivenessService,
        packs: PackUpdates,
        pulse: PulseService,
        nats_watch: NatsWatch,
        archiver: Archiver,
        notes: BrainNotes,
        brain: str,
    ) -> None:
        """`brain`: its name."""
        self._config = config
        self._brain = brain
        self._nats = nats
        self._lease = lease
        self._claim = claim
        self._requests = requests
        self._intake = intake
        self._replica = replica
        self._loop = loop
        self._writer = writer
        self._competition = competition
        self._timers = timers
        self._liveness = liveness
        self._packs = packs
        self._pulse = pulse
        self._nats_watch = nats_watch
        self._archiver = archiver
        self._notes = notes

    async def run(self, client: Client) -> None:
        """Runs until a part fails or until cancelled. At its end this brain no longer counts as holder of the lease."""
        config = self._config
        await server_check.check(client)
        info = await log.ensure(client, config.cell, config.log, config.nats.replicas, alone=config.embedded)
        copy = await state_copy.read(client, config.cell) if self._replica.needs_copy(info) else b""
        await self._replica.until_restorable(info)
        self._replica.attach(info, copy)
        await self._claim.settle(client, info)
        replica = self._replica
        same = await log_pull.same_up_to(client, config.cell, replica.seq, replica.state.now)
        if same is not None:
            replica.rewind(same)
        reader = log.Reader(client, config.cell, self._replica.seq)
        self._liveness.restart()
        try:
            with self._nats.established(client):
                async with Tasks() as tasks:
                    tasks.start(self._writer.serve(client), "outbox")
                    tasks.start(self._loop.serve(reader), "reader")
                    tasks.start(self._competition.serve(client), "lease")
                    tasks.start(self._claim.serve(), "claim of the key")
                    tasks.start(self._requests.serve(client), "requests")
                    tasks.start(self._intake.serve(client), "intake")
                    tasks.start(self._replica.until_history_lost(), "read model")
                    tasks.start(self._offer_evidence(client), "evidence")
                    tasks.start(self._timers.serve(), "timers")
                    tasks.start(self._liveness.serve(), "liveness")
                    tasks.start(self._packs.serve(), "packs")
                    tasks.start(self._pulse.serve(), "pulse")
                    tasks.start(self._nats_watch.serve(client), "watch of NATS")
                    tasks.start(self._archiver.serve(client), "archive")
                    tasks.start(brain_settings.tell(client, config, self._brain), "settings")
                    await tasks.wait()
        finally:
            self._lease.drop()
            await reader.close()

    async def _offer_evidence(self, client: Client) -> None:
        """Creates the bucket for evidence once the log is read: the log and the lease need their storage first."""
        await self._replica.until_caught_up()
        await evidence.offer(client, self._config, self._notes.write)
