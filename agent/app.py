"""The agent, wired in one straight line and undone in reverse order.

Sources → collectors → spool → broker, and commands the other way.
"""

import asyncio
import contextlib
import fcntl
import gc
import logging
import secrets
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from agent import __version__
from agent.actions import actions
from agent.collectors.readings import Tick
from agent.commander import Commander
from agent.config import AgentConfig
from agent.contract.components import NODE
from agent.contract.errors import ConfigError
from agent.contract.messages import Draft, Severity
from agent.host import Host
from agent.last_known import LastKnown
from agent.lost_gpus import LostGpus
from agent.nvml_pause import NvmlPause
from agent.sources import sources
from agent.sources.base import Source
from agent.sources.kmsg import KmsgSource
from agent.supervisor import Feeder, keep_going
from agent.uplink.beat import Beats
from agent.uplink.bundles import Bundles
from agent.uplink.connection import Connection, together
from agent.uplink.journal import Journal
from agent.uplink.publisher import Publisher
from agent.uplink.spool import Spool
from agent.wiring import collectors_for

if TYPE_CHECKING:
    from nats.aio.client import Client

POSITION_EVERY_S = 10.0
DISK_EVERY_S = 60.0
LAST_WORDS_S = 2.0  # at the end, for what still waits for the broker

_log = logging.getLogger(__name__)


def run(config: AgentConfig) -> int:
    """Runs the agent until SIGTERM or SIGINT; the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    asyncio.run(_until_told(config))
    return 0


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
        lost = LostGpus(config.data_dir / "lost_gpus.json")
        known = LastKnown(config.data_dir / "last_known.json")
        undo.callback(known.save)
        readers = collectors_for(host, config, lost_before=lost.addresses, known=known)

        def heard(drafts: Sequence[Draft]) -> None:
            lost.note(drafts)
            known.note(drafts)

        feeder = Feeder(host, readers, spool, heard=heard)
        undo.callback(feeder.save_marks)
        connection = Connection(
            config.servers(), config.node, seed_file=config.nats_seed_file, ca_file=config.nats_ca_file
        )
        publisher = Publisher(spool, config.cell, config.node)
        pause = NvmlPause()
        beats = Beats(
            host,
            spool,
            cell=config.cell,
            node=config.node,
            session=session,
            version=__version__,
            interval_s=config.beat_interval_s,
        )
        journal = Journal(config.data_dir / "journal.jsonl")
        bundles = Bundles(journal, config.data_dir / "evidence", config.cell, config.node)
        commander = Commander(
            host=host,
            cell=config.cell,
            node=config.node,
            session=session,
            keys=config.public_keys(),
            allow=frozenset(config.allow),
            actions=actions(host, config, peer=lambda: connection.peer, pause=pause),
            journal=journal,
            uplink=spool,
            bundle_made=bundles.look,
        )
        await commander.recover()

        async def session_with(client: "Client") -> None:
            await together(
                publisher.serve(client), commander.serve(client), beats.serve(client), bundles.serve(client)
            )

        keep_going(undo, "uplink", lambda: connection.serve(session_with), feeder, host)
        undo.push_async_callback(_last_words, spool, connection)
        undo.push_async_callback(commander.stop)
        found = sources(host, config, kmsg_start=spool.position, marks=spool.marks, pause=pause)
        keep_going(undo, "ticks", lambda: _ticks(host, feeder, spool, commander, known), feeder, host)
        for source in found:
            if isinstance(source, KmsgSource):
                keep_going(undo, "position", _remembering(spool, source), feeder, host)
            keep_going(undo, source.name, _following(source, feeder), feeder, host, needs=source.needs)
        await asyncio.sleep(
            0
        )  # every source takes its first step: the kernel log stands where it is followed from
        spool.put(_started(host), host.mono_s())
        _log.info("agent %s of node %s, cell %s, session %s", __version__, config.node, config.cell, session)
        # What stands now stays: each full collection would look at all of it again.
        gc.collect()
        gc.freeze()
        await stop.wait()
        _log.info("stopping")


async def _until_told(config: AgentConfig) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(config, stop)


def _remembering(spool: Spool, kmsg: KmsgSource) -> Callable[[], Awaitable[None]]:
    return lambda: _remember_position(spool, kmsg)


def _following(source: Source, feeder: Feeder) -> Callable[[], Awaitable[None]]:
    return lambda: source.run(feeder.emit)


async def _ticks(host: Host, feeder: Feeder, spool: Spool, commander: Commander, known: LastKnown) -> None:
    """Once a second: what must be said although nothing happened."""
    disk_s, marks_s = (
        host.mono_s(),
        0.0,
    )  # the first marks at once: before, a restart takes what came for history
    while True:
        now_s = host.mono_s()
        feeder.emit(Tick(mono_s=now_s))
        commander.tick()
        for trouble in spool.take_trouble():
            feeder.failed("spool", trouble, again=True)
        spool.report_dropped()
        if now_s - disk_s > DISK_EVERY_S:
            disk_s = now_s
            spool.retry_disk()
            known.save()
        if now_s - marks_s > POSITION_EVERY_S and feeder.save_marks():
            marks_s = now_s
        await asyncio.sleep(1.0)


async def _remember_position(spool: Spool, kmsg: KmsgSource) -> None:
    """Keeps how far the kernel log was read where its lines gave no event (those keep it with the event).

    The first time at once: before that a restart would take all that came meanwhile for history. Then seldom:
    collectors hold back for seconds what a line repeats.
    """
    pause_s = 0.01
    while kmsg.position is None:
        await asyncio.sleep(pause_s)
        pause_s = min(1.0, pause_s * 1.5)
    while True:
        if kmsg.position is not None and kmsg.position != spool.position:
            spool.save_position(*kmsg.position)
        await asyncio.sleep(POSITION_EVERY_S)


async def _last_words(spool: Spool, connection: Connection) -> None:
    """A moment for what still waits, e.g. the result of a command that the stop has cut short."""
    for _ in range(round(LAST_WORDS_S / 0.02)):
        if not (connection.connected and spool.spooled):
            return
        await asyncio.sleep(0.02)


def _started(host: Host) -> Draft:
    gpus = 0
    for device in host.listdir("/sys/bus/pci/devices"):
        base = f"/sys/bus/pci/devices/{device}"
        if host.read(f"{base}/vendor") == "0x10de" and host.read(f"{base}/class").startswith("0x03"):
            gpus += 1
    return Draft(
        kind="agent.started",
        component=NODE,
        severity=Severity.INFO,
        data={"version": __version__, "kernel": host.kernel(), "gpus": gpus},
    )


def _lock(config: AgentConfig, undo: contextlib.AsyncExitStack) -> None:
    """One agent per data folder: two would give out the same event numbers."""
    try:
        config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = undo.enter_context((config.data_dir / "lock").open("w"))
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(
            f"another agent uses data_dir {config.data_dir}: stop it, or give this one another folder"
        ) from None
    except OSError as error:
        # The disk may be full or read-only: the spool says so, and goes on in memory.
        _log.warning("data_dir %s: %s", config.data_dir, error)
