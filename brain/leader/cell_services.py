"""What looks after the cell's keys, files, server and members beside the loop over the log. Each runs as long as the brain."""

from collections.abc import Coroutine, Iterator
from typing import Any

from agent.shared.nats_connection import NatsConnection
from brain.adapters.announcer import Announcer
from brain.adapters.liveness import Beats
from brain.adapters.nats_server import NatsServer
from brain.adapters.operator_mode import OperatorMode
from brain.cell.authority import Authority
from brain.config import BrainConfig
from brain.leader.account_keeper import AccountKeeper
from brain.leader.accounts_by_hand import AccountsByHand
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.cell_journal import JournalNotes
from brain.leader.cell_members import CellMembers
from brain.leader.certificate_keeper import CertificateKeeper
from brain.leader.disk_watch import DiskWatch
from brain.leader.keys_behind import KeysBehind
from brain.leader.leadership import Leadership
from brain.leader.notes import BrainNotes
from brain.leader.own_files import OwnFiles
from brain.leader.replica import Replica
from brain.leader.rotations import Rotations

Service = tuple[Coroutine[Any, Any, None], str]  # what runs, and its name


def cell_services(
    config: BrainConfig,
    *,
    server: NatsServer | None,
    jwts: OperatorMode | None,
    connection: NatsConnection,
    leadership: Leadership,
    replica: Replica,
    beats: Beats,
    announcer: Announcer,
    disk: DiskWatch,
    alerts: BrainAlerts,
    notes: BrainNotes,
) -> Iterator[Service]:
    """`server`: the embedded one. `jwts`: of servers in operator mode."""
    rotations = Rotations(
        config=config,
        server=server,
        connection=connection,
        leadership=leadership,
        replica=replica,
        beats=beats,
        announcer=announcer,
        notes=notes,
    )
    yield rotations.serve(), "rotations"
    behind = KeysBehind(config, leads=leadership.leads, beats=beats, alerts=alerts, notes=notes)
    yield behind.serve(), "keys of nodes"
    own_files = OwnFiles(config, alerts, disk_hangs=lambda: disk.hangs)
    yield own_files.serve(), "own files"
    yield JournalNotes(config, notes).serve(), "journal"
    certificate = CertificateKeeper(
        Authority(config.cell_dir),
        notes=notes,
        alerts=alerts,
        shown=lambda: None if config.embedded else connection.certificate,
    )
    yield certificate.serve(), "certificate"
    if server is not None:
        yield CellMembers(config, server, notes).serve(), "members"
    if jwts is not None:
        yield AccountKeeper(config, jwts, notes).serve(), "accounts"
    elif server is None:
        yield AccountsByHand(config, notes).serve(), "accounts"
