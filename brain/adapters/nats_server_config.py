"""The text of the embedded NATS server's configuration file."""

import contextlib
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from agent.shared import files
from brain.adapters import lanes, nats_accounts
from brain.adapters.nats_accounts import Member
from brain.cell.authority import Authority

_MORE_MEMORY = 64 * 1024**2  # beside the lanes: consumers
_MORE_FILE = 64 * 1024**2  # beside log and evidence: the lease
_SHARE = 0.75  # of a disk's free space, as the server itself would take


def store_limit(config: Path, store: Path, needed: int) -> int:
    """How much the server may promise to its streams; 0: as it sees fit. `needed`: what log and evidence may grow to; 0: unknown.

    A new server promises no more than the disk has. One that has promised it goes on doing so: on a disk that others have
    filled meanwhile it would otherwise refuse the streams that are there, and nobody would lead.
    """
    if not needed:
        return 0
    wanted = needed + _MORE_FILE
    before = 0
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        before = int(orjson.loads(files.read(config))["jetstream"]["max_file_store"])
    if not before and any(store.glob("jetstream/*/streams/*")):
        return wanted  # an earlier version, which has not written it down
    used = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    room = used + int(shutil.disk_usage(store).free * _SHARE)
    return max(before, min(wanted, room))


def config_text(
    *,
    cell: str,
    listen: str,
    store: Path,
    pid_file: Path,
    brains: Sequence[str],
    members: Iterable[Member],
    authority: Authority | None = None,
    limit: int = 0,
) -> str:
    """Returns the text of the server's configuration file. JSON is a subset of its format, which settles quoting. `limit`: of
    `store_limit`.
    """
    return orjson.dumps(
        {
            "listen": listen,
            "server_name": f"gpuward-{cell}",
            "pid_file": str(pid_file),
            "max_payload": 1048576,
            "ping_interval": "2s",
            "write_deadline": "10s",
            "authorization": {"timeout": 2},
            # A node that does not read must not hold up the brain.
            "no_fast_producer_stall": True,
            "jetstream": {
                "store_dir": str(store),
                "max_memory_store": lanes.RESERVED_BYTES + _MORE_MEMORY,
                **({"max_file_store": limit} if limit else {}),
                "sync_interval": "10s",
                "strict": True,
            },
            **({"tls": _tls(authority)} if authority else {}),
            "system_account": nats_accounts.SYSTEM,
            "accounts": nats_accounts.accounts(cell, brains[0], members, also=brains[1:]),
        },
        option=orjson.OPT_INDENT_2,
    ).decode()


def _tls(authority: Authority) -> dict[str, Any]:
    return {
        "cert_file": str(authority.certificate_file),
        "key_file": str(authority.key_file),
        "min_version": "1.3",
        "timeout": 5,
    }
