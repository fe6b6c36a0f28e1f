"""The text of the embedded NATS server's configuration file."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from brain.adapters import lanes, nats_accounts
from brain.adapters.nats_accounts import Member
from brain.cell.authority import Authority

_MORE_MEMORY = 64 * 1024**2  # beside the lanes: consumers


def config_text(
    *,
    cell: str,
    listen: str,
    store: Path,
    pid_file: Path,
    brains: Sequence[str],
    members: Iterable[Member],
    authority: Authority | None = None,
) -> str:
    """Returns the text of the server's configuration file. JSON is a subset of its format, which settles quoting."""
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
