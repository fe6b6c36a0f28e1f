"""The brain: everything is wired in one straight line, and undone in reverse.

Each part is built from the parts above it. What a part reports goes onto the log, and comes back from there. It is as long as
a brain has parts: cut in two, nobody would see any more what is built from what, and what ends first.
"""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agent.shared.nats_connection import NatsConnection, shown
from agent.shared.tasks import Tasks
from brain.actions import BuildActions, bmc_poll, build_real, kube_conditions, kube_devices, slurm_witness
from brain.adapters import keys, lost_folder, nats_server, operator_mode, signing_key, signing_key_log
from brain.adapters.announcer import Announcer
from brain.adapters.broker import brain_connection
from brain.adapters.codec import Codec
from brain.adapters.disk import try_disk
from brain.adapters.evidence_store import EvidenceStore
from brain.adapters.files import exclusive, runtime_folder
from brain.adapters.lease import Lease
from brain.adapters.liveness import Beats, Liveness
from brain.adapters.log import LogClock
from brain.adapters.nats_server import NatsServer
from brain.adapters.node_requests import NodeRequests
from brain.adapters.nodes import Nodes
from brain.adapters.outbox import Outbox
from brain.adapters.pack_process import PackProcess
from brain.adapters.packwatch import BuildPack, PackWatch
from brain.adapters.quarantine import Quarantine
from brain.adapters.readmodel import ReadModel, no_pause
from brain.adapters.snapshot import Snapshots
from brain.adapters.timers import Timers
from brain.adapters.unsent_words import UnsentWords
from brain.cell.registry import CellRegistry
from brain.cell.trust import TrustFile
from brain.config import BrainConfig
from brain.console.feed import Feed
from brain.console.reading import Rests
from brain.console.server import Console
from brain.core.pack.actions import ACTIONS
from brain.core.pack.rulebook import MATCHER
from brain.core.pack.spec import Mode
from brain.leader.alert_refresh import AlertRefresh
from brain.leader.archiver import Archiver
from brain.leader.awaited_commands import AwaitedCommands
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.brain_view import LiveBrainView, LiveView
from brain.leader.cell_services import cell_services
from brain.leader.competition import LeaseCompetition
from brain.leader.current_client import CurrentClient
from brain.leader.disk_watch import DiskWatch
from brain.leader.executor import EffectExecutor
from brain.leader.history import HistoryWriter
from brain.leader.intake import Intake
from brain.leader.jobs import JobQuestions
from brain.leader.key_claim import KeyClaim
from brain.leader.leader_watch import LeaderWatch, never_answered
from brain.leader.leadership import Leadership
from brain.leader.liveness import LivenessService
from brain.leader.log_writer import LogWriter
from brain.leader.loop import LiveLoop, ReportListener
from brain.leader.lost_drains import LostDrains
from brain.leader.nats_watch import NatsWatch
from brain.leader.node_reports import NodeReports
from brain.leader.notes import BrainNotes
from brain.leader.packs import PackUpdates
from brain.leader.pages import PageSender
from brain.leader.performer import Performer
from brain.leader.prompt_reader import PromptReader
from brain.leader.pulse import PulseService
from brain.leader.replica import Replica
from brain.leader.report_mail import ReportMail, scheduled_reports
from brain.leader.revoked_nodes import RevokedNodes
from brain.leader.scheduler_rights import SchedulerRights
from brain.leader.server_keeper import ServerKeeper
from brain.leader.session import Session
from brain.leader.shown_drains import ShownDrains
from brain.leader.snapshots import SnapshotKeeper
from brain.leader.start_folder import in_time, when_writable
from brain.leader.steps import StepDispatcher
from brain.leader.supervisor import Supervisor
from brain.leader.timers import TimerService
from brain.leader.trace_export import trace_exports
from brain.notify import dead_mans_switch
from brain.notify import notifier as channels
from brain.outgoing import outgoing, to_environment
from brain.own_name import own_name
from brain.ufm import events

PACKS = PackProcess()
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Where a running brain is reached."""

    console_url: str
    nats_url: str
    # the embedded one
    server: NatsServer | None
    signer: keys.Signer


async def run(
    config: BrainConfig,
    stop: asyncio.Event,
    ready: Callable[[Running], None] = lambda _: None,
    make: BuildActions = build_real,
    build_pack: BuildPack = PACKS.build,
    may_run: Callable[[], bool] = lambda: True,
) -> None:
    """Runs the brain until `stop` is set. `make` builds the actions of the brain itself, `build_pack` reads and proves the rules.
    `may_run`: True, or ConfigError where this user may not run it in this data folder, which it looks at.

    ConfigError: the operator must change something before it can start.
    """
    async with contextlib.AsyncExitStack() as stack:
        name = own_name(config)
        instance = f"{name}:{os.getpid()}:{time.time_ns()}"
        ours = await in_time(may_run)  # None: the disk hangs, and nothing is made there before it answers
        in_memory = await in_time(lambda: runtime_folder(config.data_dir)) if ours else None
        background = Tasks()

        # Pages and notes.
        way = outgoing(config.outgoing)
        to_environment(way)
        notifier = channels.build(
            config.channels,
            config.groups,
            config.data_dir,
            traced=config.traces.on,
            cell=config.cell,
            way=way,
        )
        stack.push_async_callback(notifier.close)
        clock = LogClock()
        notes = BrainNotes(name, clock)
        alerts = BrainAlerts(
            brain=name,
            notifier=notifier,
            notes=notes,
            background=background,
            file=config.data_dir / "alerts.json",
            spare=in_memory / "alerts.json" if in_memory else None,
        )
        await stack.enter_async_context(
            background
        )  # pages may go out from here on; what runs ends once more, and first, below
        if ours:
            alerts.resume(await in_time(alerts.kept) or ())

        # NATS, and what is kept on disk: not on the empty place of a disk that is not mounted.
        if not ours and not await when_writable(config.data_dir, may_run, alerts, stop):
            return
        if not await when_writable(config.data_dir, lambda: lost_folder.check(config), alerts, stop):
            return
        # What is there, too, where it had to be waited for.
        alerts.resume(await in_time(alerts.kept) or ())
        in_memory = in_memory or await in_time(lambda: runtime_folder(config.data_dir))
        before = await when_writable(
            config.data_dir, lambda: stack.enter_context(exclusive(config.data_dir, instance)), alerts, stop
        )
        if before is None:
            return
        key_folder = config.signing_key.parent
        if not await when_writable(key_folder, lambda: signing_key.check(config), alerts, stop):
            return
        server = None
        if config.embedded:
            store = nats_server.of(config).folder
            if not await when_writable(store, lambda: bool(try_disk(store)), alerts, stop):
                return
            server = await when_writable(
                store,
                lambda: stack.enter_context(nats_server.embedded(config)),
                alerts,
                stop,
                also=config.data_dir,
                in_thread=False,
            )
            if server is None:
                return
        jwts = operator_mode.of(config)
        own_seed = jwts.user.seed if jwts else ""
        nats = CurrentClient()
        codec = Codec(config.cell)
        outbox = Outbox(config.cell)
        writer = LogWriter(codec, outbox, UnsentWords(config.data_dir / "unsent_words.json"))
        snapshots = Snapshots(config.data_dir / "state.snapshot")

        # How NATS is reached: with a key that the first start of an embedded server makes, where its disk lets it.
        if server and not await when_writable(server.folder, server.make_brain_key, alerts, stop):
            return

        def reached() -> NatsConnection:
            return brain_connection(
                config.nats,
                name=f"gpuward brain {name}",
                url=server.url if server else "",
                seed_file=server.brain_seed_file if server else None,
                seed=own_seed,
                jwt=jwts.brain_jwt(time.time()) if jwts else "",
                ca_file=server.ca_file if server else None,
            )

        connection = await when_writable(config.data_dir, reached, alerts, stop)
        if connection is None:
            return

        # What people look up.
        readmodel = await when_writable(
            config.data_dir, lambda: ReadModel(config.data_dir / "history.sqlite"), alerts, stop
        )
        if readmodel is None:
            return
        feed = Feed()
        history = HistoryWriter(readmodel, feed)
        notes.begin(history)
        stack.push_async_callback(history.close)
        reader = readmodel.reader(Rests().pause)
        stack.callback(reader.close)
        prompt = readmodel.reader(no_pause)
        stack.callback(prompt.close)

        # Whom nodes obey.
        if not await signing_key_log.settle(
            config,
            connection,
            name,
            stop,
            opened=partial(when_writable, key_folder, alerts=alerts, stop=stop),
            silent=never_answered(config.signing_key, alerts),
            after_s=config.nobody_leads_after_s,
        ):
            return
        signer = await when_writable(key_folder, lambda: keys.CurrentSigner(config.signing_key), alerts, stop)
        if signer is None:
            return

        # The replica of the engine, and whether this brain may act.
        disk = DiskWatch(
            config.data_dir,
            history=history,
            alerts=alerts,
            with_log=server is not None and config.nats.embedded.store is None,
        )
        replica = Replica(
            actions=ACTIONS,
            snapshots=snapshots,
            open_quarantine=partial(Quarantine, config.data_dir, runtime=in_memory),
            history=history,
            alerts=alerts,
            had_nodes=CellRegistry(config.registry_file).had_nodes,
        )
        stack.callback(replica.close)
        claim = KeyClaim(config, brain=name, alerts=alerts)
        lease = Lease(
            config.cell,
            instance,
            config.lease_ttl_s,
            before=before,
            replicas=config.nats.replicas,
            fit=lambda: disk.readable and claim.fits,
        )
        leadership = Leadership(lease, replica)
        competition = LeaseCompetition(brain=name, lease=lease, replica=replica, writer=writer)

        # What it carries out while it leads.
        beats = Beats()
        requests = NodeRequests(config.cell)
        announcer = Announcer(requests, beats, TrustFile(config.cell_dir))
        nodes = Nodes(requests, signer, beats, leadership.may_act, announcer=announcer)
        reports = NodeReports(writer.append_or_drop, standing=replica.standing)
        commands = AwaitedCommands(nodes, nats=nats, lease=lease, foreign=reports.foreign_result)
        own = make(config, commands, stack, requests.ask)
        performer = Performer(
            own.actions, may_act=leadership.may_act, confirm=leadership.confirm, report=writer.append_or_drop
        )
        steps = StepDispatcher(
            performer=performer,
            nodes=nodes,
            nats=nats,
            leadership=leadership,
            writer=writer,
            background=background,
        )
        jobs = JobQuestions(
            schedulers=own.schedulers, leadership=leadership, writer=writer, background=background
        )
        lost_drains = LostDrains(
            schedulers=own.schedulers,
            leadership=leadership,
            replica=replica,
            questions=jobs,
            notes=notes,
            background=background,
        )
        pages = PageSender(
            notifier=notifier, replica=replica, leadership=leadership, writer=writer, background=background
        )
        timers = Timers(partial(replica.log_time, clock))
        executor = EffectExecutor(
            brain=name,
            leadership=leadership,
            timers=timers,
            writer=writer,
            steps=steps,
            jobs=jobs,
            lost_drains=lost_drains,
            pages=pages,
            traced=config.traces.on,
        )

        # What it publishes to the log while it leads.
        due_timers = TimerService(
            timers=timers,
            replica=replica,
            leadership=leadership,
            writer=writer,
            poll_s=config.lease_ttl_s / 8,
        )
        liveness = LivenessService(
            liveness=Liveness(beats, config.unreachable_after_s),
            replica=replica,
            leadership=leadership,
            writer=writer,
        )
        revoked = RevokedNodes(config, replica=replica, beats=beats, writer=writer, notes=notes)
        intake = Intake(
            cell=config.cell,
            replicas=config.nats.replicas,
            leadership=leadership,
            beats=beats,
            reports=reports,
            evidence=EvidenceStore(config.cell, config.evidence, notes.write),
            interrupted=liveness.restart,
            log_now=clock.now,
            shut_out=revoked.shut_out,
            refusals=outbox.refusals,
        )
        watch = PackWatch(config, build_pack)
        packs = PackUpdates(
            watch=watch, replica=replica, leadership=leadership, writer=writer, notes=notes, alerts=alerts
        )
        listeners: list[ReportListener] = []
        listeners += events.listeners(
            config.ufm,
            put=writer.append_or_drop,
            note=notes.write,
            leads=leadership.leads,
            data_dir=config.data_dir,
        )
        for witnesses in (kube_conditions, kube_devices):
            listeners += witnesses.listeners(
                config.schedulers,
                put=writer.append_or_drop,
                note=notes.write,
                leads=leadership.leads,
                known=lambda: replica.state.nodes,
            )
        listeners += slurm_witness.listeners(
            config.schedulers,
            put=writer.append_or_drop,
            note=notes.write,
            leads=leadership.leads,
            known=lambda: replica.state.nodes,
            ill=replica.ill,
        )
        listeners += bmc_poll.listeners(
            config.bmc,
            config.bmc_poll,
            put=writer.append_or_drop,
            note=notes.write,
            leads=leadership.leads,
            known=lambda: replica.state.nodes,
            standing=replica.standing,
        )
        listeners += own.witnesses(writer.append_or_drop, leadership.leads)
        for listener in listeners:
            stack.push_async_callback(listener.close)

        # Who is told the way of each fault.
        traces = trace_exports(config, name, readmodel, leads=leadership.leads, note=notes.write)
        stack.push_async_callback(traces.close)
        history.listen(traces.changed)

        # Reports by schedule.
        report_reader = readmodel.reader(Rests().pause)
        stack.callback(report_reader.close)
        report_mail = ReportMail(
            scheduled_reports(config),
            config=config,
            nats=nats,
            leadership=leadership,
            replica=replica,
            history=history,
            reader=report_reader,
            notes=notes,
            alerts=alerts,
            now=partial(replica.log_time, clock),
        )

        # The loop over the log, and the session that it runs in.
        loop = LiveLoop(
            codec=codec,
            clock=clock,
            replica=replica,
            history=history,
            leadership=leadership,
            executor=executor,
            commands=commands,
            listeners=listeners,
            alerts=alerts,
            when_leading=(due_timers.restart, liveness.restart, watch.report_again, traces.begin),
        )
        nats_watch = NatsWatch(config.cell, config.nats.replicas)
        archiver = Archiver(config, leadership=leadership, clock=clock, alerts=alerts, notes=notes)
        session = Session(
            config=config,
            nats=nats,
            lease=lease,
            claim=claim,
            requests=requests,
            intake=intake,
            replica=replica,
            loop=loop,
            writer=writer,
            competition=competition,
            timers=due_timers,
            liveness=liveness,
            packs=packs,
            pulse=PulseService(loop=loop, leadership=leadership, writer=writer),
            nats_watch=nats_watch,
            archiver=archiver,
            notes=notes,
            brain=name,
        )
        supervisor = Supervisor(
            connection=connection,
            session=session,
            replica=replica,
            leadership=leadership,
            writer=writer,
            notes=notes,
            alerts=alerts,
        )

        # Is somebody told when nobody leads?
        server_keeper = ServerKeeper(server, notes, reports) if server else None
        leader_watch = LeaderWatch(
            connection=connection,
            loop=loop,
            lease=lease,
            leadership=leadership,
            replica=replica,
            outbox=outbox,
            alerts=alerts,
            trouble=server_keeper.trouble if server_keeper else str,
            after_s=config.nobody_leads_after_s,
        )
        switches = dead_mans_switch.dead_mans_switches(
            config.dead_mans_switches,
            cell=config.cell,
            works=leader_watch.healing_works,
            note=notes.write,
            way=way,
        )
        for switch in switches:
            stack.push_async_callback(switch.close)

        # A snapshot, now and then and at the end.
        keeper = SnapshotKeeper(
            snapshots=snapshots,
            settings=config.snapshot,
            replica=replica,
            history=history,
            leadership=leadership,
            notes=notes,
            nats=nats,
            cell=config.cell,
            replicas=config.nats.replicas,
        )
        stack.push_async_callback(keeper.write)

        # The console.
        brain = LiveBrainView(
            config=config,
            name=name,
            reader=reader,
            prompt=PromptReader(prompt),
            feed=feed,
            live=LiveView(replica=replica, history=history, leadership=leadership, loop=loop),
            connection=connection,
            beats=beats,
            nats=nats,
            requests=requests,
            writer=writer,
            notes=notes,
            alerts=alerts,
            nats_watch=nats_watch,
            traces=traces,
            archive=archiver,
            disk=disk,
            pack_files=watch,
            jwts=jwts,
        )
        console = Console(brain)
        url = await stack.enter_async_context(console.serving())

        # Everything runs; this ends first.
        await stack.enter_async_context(background)
        left = writer.say_what_was_left()

        async def note_what_was_left() -> None:
            await history.until_open()
            for text in left:
                notes.write("operator.unsent", text)

        background.start(note_what_was_left(), "what was left to say")
        background.start(supervisor.serve(), "supervisor")
        background.start(history.serve(), "read model")
        background.start(disk.serve(), "disk")
        background.start(keeper.serve(), "snapshots")
        background.start(leader_watch.serve(), "leader")
        if server_keeper is not None:
            background.start(server_keeper.serve(), "server")
        for service, what in cell_services(
            config,
            server=server,
            jwts=jwts,
            connection=connection,
            leadership=leadership,
            replica=replica,
            beats=beats,
            announcer=announcer,
            disk=disk,
            alerts=alerts,
            notes=notes,
        ):
            background.start(service, what)
        background.start(revoked.serve(), "revoked nodes")
        rights = SchedulerRights(
            own.accounts,
            caught_up=replica.until_caught_up,
            acts=lambda: _acts(config, replica),
            alerts=alerts,
            notes=notes,
        )
        background.start(rights.serve(), "rights at schedulers")
        shown_drains = ShownDrains(
            own.accounts, leadership=leadership, notes=notes, forgotten=lambda: replica.state.left_behind
        )
        background.start(shown_drains.serve(), "shown drains")
        background.start(lost_drains.serve(), "lost drains")
        for switch in switches:
            background.start(switch.serve(), "dead man's switch")
        refresh = AlertRefresh(notifier=notifier, replica=replica, leadership=leadership, notes=notes)
        background.start(refresh.serve(), "alerts")
        for listener in listeners:
            background.start(listener.run(), "reports")
        background.start(traces.serve(), "traces")
        background.start(report_mail.serve(), "mailed reports")
        events_loop = asyncio.get_running_loop()
        events_loop.add_signal_handler(signal.SIGHUP, watch.check_now)
        stack.callback(events_loop.remove_signal_handler, signal.SIGHUP)
        nats_url = server.url if server else config.nats.url
        _log.info("rules are matched by %s", MATCHER)
        _log.info("cell %s: console %s, NATS %s", config.cell, url, ",".join(map(shown, nats_url.split(","))))
        ready(Running(console_url=url, nats_url=nats_url, server=server, signer=signer()))
        stopping = background.start(stop.wait(), "stop")
        failed = asyncio.ensure_future(background.wait())
        await asyncio.wait({stopping, failed}, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()
        failed.cancel()


def _acts(config: BrainConfig, replica: Replica) -> bool:
    """May any runbook do more than plan, by the site's settings or by what people have said since?"""
    modes = [
        *(one.mode for one in config.site_settings().modes),
        *(one.mode for one in replica.state.modes),
    ]
    return any(mode is not Mode.OBSERVE for mode in modes)
