"""The agent, wired in one straight line and undone in reverse order.

Sources → collectors → spool → broker, and commands the other way.
"""

import asyncio
import contextlib
import fcntl
import gc
import logging
import os
import secrets
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent import __version__, check_socket
from agent.actions import Actions
from agent.actions.action_setup import ActionSetup
from agent.check_socket import CheckView
from agent.collectors.samples import Tick
from agent.commands.commander import Commander
from agent.commands.evidence_upload import EvidenceUpload
from agent.commands.journal import Journal
from agent.commands.rights import lacking, rights
from agent.conditions import Conditions
from agent.config import AgentConfig
from agent.contract.errors import ConfigError
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.look import Looker
from agent.metrics_file import AgentView, keep_writing
from agent.nvml.pause import NvmlPause
from agent.remembered.afterwards import Afterwards
from agent.remembered.last_known import LastKnown
from agent.remembered.lost_gpus import LostGpus
from agent.remembered.trusted import authorities, of_config
from agent.shared import files, inert_log
from agent.shared.inert_log import LogFormat
from agent.shared.memory import give_back, one_arena
from agent.shared.nats_connection import NatsConnection
from agent.shared.rhythm import pause, until_next
from agent.shared.tasks import run_together
from agent.sources import sources
from agent.sources.base import Source, SourceSetup
from agent.sources.kmsg import KmsgSource
from agent.started import started
from agent.supervisor import Feeder, Kept, keep_going
from agent.uplink.connection import node_connection, node_identity
from agent.uplink.hearing import Hearing
from agent.uplink.heartbeat import Heartbeat
from agent.uplink.publisher import Publisher
from agent.uplink.spool import Spool
from agent.wiring import collectors_for

if TYPE_CHECKING:
    from nats.aio.client import Client

POSITION_EVERY_S = 10.0
DISK_EVERY_S = 60.0
READABLE_AGAIN_S = 2.0
CALM_S, CALM_TICK_S = 60.0, 2.0
BOOT = "last_start"  # key of the checkpoint: the boot id of the agent's last start; `boot` is the spool's own
STOPPED = (
    "stopped"  # and that of the boot in which it was last stopped in order; empty since it has started again
)
METRICS_NEED = (
    "metrics_file in a folder that the agent's unit lets it write: gpuward-agent.service.d/metrics.conf"
)
DRAIN_S = 2.0  # at the end, for what still waits for the broker

_log = logging.getLogger(__name__)


def run(config: AgentConfig) -> int:
    """Runs the agent until SIGTERM or SIGINT; the exit status."""
    layout = "%(levelname)s %(name)s: %(message)s"
    logging.basicConfig(
        level=logging.INFO, handlers=[inert_log.handler(layout, LogFormat(config.log_format))]
    )
    files.keep_private()
    one_arena()
    asyncio.run(_until_signal(config))
    return 0


def check(config: AgentConfig) -> None:
    """ConfigError where the agent would wait as soon as it is started: what it connects by cannot be read."""
    ca = authorities(config.nats_ca_file)
    node_identity(
        config.servers(), seed_file=config.nats_seed_file, jwt_file=config.nats_jwt_file, ca=lambda: ca
    )()


async def serve(config: AgentConfig, stop: asyncio.Event) -> None:
    """The agent, until `stop` is set."""
    host = config.host()
    session = secrets.token_hex(6)
    async with contextlib.AsyncExitStack() as undo:
        _lock(config, undo)
        spool = Spool(
            config.data_dir / "spool.db",
            host,
            config.node,
            max_events=config.spool_max_events,
            max_bytes=config.spool_max_bytes,
        )
        undo.callback(spool.close)
        last_boot = spool.checkpoints(BOOT).get(BOOT, host.boot_id())
        booted = last_boot != host.boot_id()
        in_order = spool.checkpoints(STOPPED).get(STOPPED) == last_boot
        lost = LostGpus(config.data_dir / "lost_gpus.json")
        known = LastKnown(config.data_dir / "last_known.json")
        conditions = Conditions(host)
        undo.callback(known.save)
        collectors = collectors_for(host, config, lost_before=lost.addresses, known=known)

        def write_down(unsent_events: Sequence[UnsentEvent]) -> None:
            lost.note(unsent_events)
            known.note(unsent_events)

        afterwards = Afterwards(write_down)
        undo.callback(afterwards.now)

        def remember(unsent_events: Sequence[UnsentEvent]) -> None:
            conditions.note(unsent_events)
            afterwards.note(unsent_events)

        feeder = Feeder(host, collectors, spool, on_stored=remember)
        undo.callback(feeder.save_checkpoints)
        trusted = of_config(
            config.data_dir,
            cell=config.cell,
            serial=config.trust_serial,
            keys=config.public_keys(),
            ca_file=config.nats_ca_file,
        )
        connection = node_connection(
            config.servers(),
            config.node,
            seed_file=config.nats_seed_file,
            jwt_file=config.nats_jwt_file,
            ca=lambda: trusted.ca,
        )
        hearing = Hearing(connection.elsewhere)
        publisher = Publisher(spool, config.cell, config.node, connection.elsewhere, hearing.heard)
        pause = NvmlPause()
        looker = Looker(host, feeder)
        heartbeat = Heartbeat(
            host,
            spool,
            cell=config.cell,
            node=config.node,
            session=session,
            version=__version__,
            interval_s=config.beat_interval_s,
            trusts=lambda: trusted.serial,
            asks=hearing.asks,
        )
        journal = Journal(config.data_dir / "journal.jsonl", trusted.configured)
        if journal.trouble:
            feeder.failed("journal of commands", journal.trouble)
        upload = EvidenceUpload(journal, config.data_dir / "evidence", config.cell, config.node)
        held = rights(host)
        for action in config.allow:
            if why := lacking(action, held):
                _log.warning("allow: %s", why)
        commander = Commander(
            host=host,
            cell=config.cell,
            node=config.node,
            session=session,
            trusted=trusted,
            allow=frozenset(config.allow),
            actions=Actions(
                ActionSetup(
                    host=host,
                    config=config,
                    peer=lambda: connection.peer,
                    pause=pause,
                    look=looker.look,
                )
            ),
            journal=journal,
            uplink=spool,
            bundle_made=upload.wake,
            lacks=lambda action: lacking(action, held),
        )
        await commander.recover()

        async def session_with(client: "Client") -> None:
            await run_together(
                publisher.serve(client),
                commander.serve(client),
                heartbeat.serve(client),
                upload.serve(client),
            )

        keep_going(undo, "uplink", lambda: connection.serve(session_with), feeder, host)
        undo.push_async_callback(_drain, spool, connection)
        undo.push_async_callback(commander.stop)
        found = sources(
            SourceSetup(
                host=host,
                config=config,
                kmsg_start=spool.position,
                checkpoints=spool.checkpoints,
                pause=pause,
            )
        )
        running: dict[str, Kept] = {}
        keep_going(
            undo, "ticks", lambda: _ticks(host, feeder, spool, commander, known, running), feeder, host
        )
        if config.metrics_file:
            view = AgentView(
                node=config.node,
                cell=config.cell,
                started_at=host.wall().timestamp(),
                spool=spool,
                connected=lambda: connection.connected,
                feeder=feeder,
                sources=running,
                runner=commander.runner,
            )
            keep_going(undo, "metrics", _writing_metrics(config, view), feeder, host, needs=METRICS_NEED)
        if config.check_socket:
            view_of_check = CheckView(
                host=host,
                node=config.node,
                started_s=host.mono_s(),
                conditions=conditions,
                sources=running,
            )
            if (socket := Path(config.check_socket)).parent.is_dir():
                keep_going(undo, "check", lambda: check_socket.serve(socket, view_of_check), feeder, host)
            else:
                _log.info(
                    "check_socket: no folder %s, so `gpuward-agent check` gets no answer", socket.parent
                )
        for source in found:
            if isinstance(source, KmsgSource):
                keep_going(undo, "position", _saving_position(spool, source), feeder, host)
            kept = keep_going(undo, source.name, _following(source, feeder), feeder, host, needs=source.needs)
            running[source.name] = kept
            looker.watch(source, kept)
        keep_going(undo, "first looks", looker.after_start, feeder, host)
        # Every source takes its first step: the kernel log is at the position from which it is followed.
        await asyncio.sleep(0)
        said = started(host, config, booted=booted, in_order=in_order)
        spool.put_all((said,), host.mono_s(), {BOOT: host.boot_id(), STOPPED: ""})
        _log.info("agent %s of node %s, cell %s, session %s", __version__, config.node, config.cell, session)
        # What exists now stays: each full collection would look at all of it again.
        gc.collect()
        gc.freeze()
        give_back()
        await stop.wait()
        spool.save_checkpoints({STOPPED: host.boot_id()})
        _log.info("stopping")


async def _until_signal(config: AgentConfig) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if await _readable(config, stop):
        await serve(config, stop)


async def _readable(config: AgentConfig, stop: asyncio.Event) -> bool:
    """Waits for the files by which the agent connects: they may lie on what is mounted later, or be written by whoever sets the
    node up. What happens meanwhile is in the kernel's log. False: it is to stop.
    """
    told = ""
    while not stop.is_set():
        try:
            check(config)
            return True
        except ConfigError as error:
            if told != (told := str(error)):
                _log.warning("waiting: %s", told)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READABLE_AGAIN_S):
                await stop.wait()
    return False


def _saving_position(spool: Spool, kmsg: KmsgSource) -> Callable[[], Awaitable[None]]:
    return lambda: _save_position(spool, kmsg)


def _following(source: Source, feeder: Feeder) -> Callable[[], Awaitable[None]]:
    return lambda: source.run(feeder.emit)


def _writing_metrics(config: AgentConfig, view: AgentView) -> Callable[[], Awaitable[None]]:
    return lambda: keep_writing(Path(config.metrics_file), config.metrics_interval_s, view)


async def _ticks(
    host: Host,
    feeder: Feeder,
    spool: Spool,
    commander: Commander,
    known: LastKnown,
    sources: Mapping[str, Kept],
) -> None:
    """What must be reported although nothing happened: once a second, or every CALM_TICK_S when nothing has been told for
    CALM_S. Collectors hold nothing back then.
    """
    # The first checkpoints at once: before, a restart takes what has come for history.
    disk_s = told_s = host.mono_s()
    checkpoints_s = 0.0
    while True:
        now_s = host.mono_s()
        if feeder.told.is_set():
            told_s = now_s
            feeder.told.clear()
        feeder.emit(Tick(mono_s=now_s))
        commander.tick()
        for problem in spool.take_problems():
            feeder.failed("spool", problem, again=True)
        spool.report_dropped()
        feeder.tell_well(sources)
        if now_s - disk_s > DISK_EVERY_S:
            disk_s = now_s
            spool.retry_disk()
            known.save()
            give_back()
        if now_s - checkpoints_s > POSITION_EVERY_S and feeder.save_checkpoints():
            checkpoints_s = now_s
        if now_s - told_s < CALM_S:
            await pause(1.0)
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(until_next(CALM_TICK_S)):
                    await feeder.told.wait()


async def _save_position(spool: Spool, kmsg: KmsgSource) -> None:
    """Stores how far the kernel log was read while its lines gave no event (an event is stored with its position).

    The first time at once: before that a restart would take all that has come for history. Then not often: collectors
    hold back repeats for some seconds.
    """
    pause_s = 0.01
    while kmsg.position is None:
        await asyncio.sleep(pause_s)
        pause_s = min(1.0, pause_s * 1.5)
    while True:
        if kmsg.position is not None and kmsg.position != spool.position:
            spool.save_position(*kmsg.position)
        await pause(POSITION_EVERY_S)


async def _drain(spool: Spool, connection: NatsConnection) -> None:
    """Waits a moment for what is not sent yet, e.g. the result of a command that the stop has cut short."""
    for _ in range(round(DRAIN_S / 0.02)):
        if not (connection.connected and spool.spooled):
            return
        await asyncio.sleep(0.02)


def _lock(config: AgentConfig, undo: contextlib.AsyncExitStack) -> None:
    """One agent per data folder: two would assign the same event numbers."""
    try:
        config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = config.data_dir.stat().st_uid
        if os.geteuid() == 0 and owner != 0:
            raise ConfigError(
                f"data_dir {config.data_dir} belongs to user {owner}: an agent that is root would follow links that lie "
                "there, and obey the keys of a trusted.json there. Give it a folder of root's (hands.conf: gpuward-agent-hands)"
            )
        handle = os.open(
            config.data_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        undo.callback(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(
            f"another agent uses data_dir {config.data_dir}: stop it, or give this one another folder"
        ) from None
    except OSError as error:
        # The disk may be full or read-only: the spool reports it, and goes on in memory.
        _log.warning("data_dir %s: %s", config.data_dir, error)
