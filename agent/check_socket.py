"""Answers `gpuward-agent check` on a unix socket, from memory: nothing is read, nothing is asked of a device.

Whoever connects gets one line of JSON, and the connection is closed; what they send is not read. The line fits into the
socket's buffer, so nobody can keep the agent waiting. Only the agent's own user and root may connect. What an agent that was
killed has left there is replaced.
"""

import asyncio
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import orjson

from agent import __version__
from agent.conditions import Condition, Conditions
from agent.contract.fitness import GPU
from agent.contract.inert import inert
from agent.contract.kinds import KINDS
from agent.contract.look import SOURCES_OF_KINDS
from agent.contract.messages import clip
from agent.host import Host
from agent.supervisor import Kept


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckView:
    """What the answer is made of."""

    host: Host
    node: str
    # When the agent began, by the node's monotonic clock.
    started_s: float
    conditions: Conditions
    # Source → whether it runs.
    sources: Mapping[str, Kept]


def answer(view: CheckView) -> bytes:
    """The line, as docs/slurm.md shows it."""
    blind = {name: clip(inert(kept.down), 200) for name, kept in view.sources.items() if kept.down}
    unseen = {kind for name in blind for kind in SOURCES_OF_KINDS.get(name, (name,))}
    now_s = view.host.mono_s()
    found = sorted(view.conditions.lasting(), key=lambda one: (one.group != GPU, one.since_s))

    def shown(one: Condition) -> dict[str, Any]:
        since = view.host.wall() - timedelta(seconds=now_s - one.since_s)
        return {
            "group": one.group,
            "kind": one.kind,
            "component": one.component,
            "text": one.text,
            "since": since.isoformat(timespec="seconds"),
            # Its source cannot look now: it may be over.
            "stale": KINDS[one.kind].source in unseen,
        }

    said = {
        "agent": __version__,
        "node": view.node,
        "runs_s": round(now_s - view.started_s, 3),
        "blind": blind,
        "conditions": [shown(one) for one in found],
    }
    return orjson.dumps(said) + b"\n"


async def serve(path: Path, view: CheckView) -> None:
    """Answers until cancelled. OSError: the socket cannot be made."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.setblocking(False)
        listener.bind(str(part))
        part.chmod(0o600)
        server = await asyncio.get_running_loop().create_unix_server(lambda: _Answering(view), sock=listener)
        try:
            # Only now, so that there is no moment in which anybody else could connect.
            os.replace(part, path)  # noqa: PTH105 - a socket, not a file that is written
            await asyncio.Event().wait()
        finally:
            server.close()


class _Answering(asyncio.Protocol):
    """One connection."""

    def __init__(self, view: CheckView) -> None:
        self._view = view

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Answers at once."""
        writing = cast(asyncio.WriteTransport, transport)
        writing.write(answer(self._view))
        writing.close()
