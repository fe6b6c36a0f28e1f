"""A node that `gpuward cell revoke` has named is forgotten: its incidents and pages end, under the operator's name on the log."""

import asyncio
import contextlib
import time
import uuid

from agent.contract.errors import ConfigError, Unreachable
from brain.adapters.liveness import Beats
from brain.cell.registry import CellRegistry
from brain.config import BrainConfig
from brain.core.inputs import OperatorCommand
from brain.leader.log_writer import LogWriter
from brain.leader.replica import Replica

CHECK_S = 0.5
AFTER_S = 2.0  # by then its connection is closed, and what it said before is on the log
AGAIN_S = 30.0  # something of it was under way still, or the log did not take it


class RevokedNodes:
    """The registry is that of this machine, so that it needs no lease: whoever leads handles the command."""

    def __init__(self, config: BrainConfig, *, replica: Replica, beats: Beats, writer: LogWriter) -> None:
        self._embedded = config.embedded
        self._registry = CellRegistry(config.registry_file)
        self._replica = replica
        self._beats = beats
        self._writer = writer
        self._said_s: dict[str, float] = {}

    async def serve(self) -> None:
        """Looks at the registry, until cancelled. One that cannot be read is told by brain/leader/cell_members.py."""
        while True:
            await asyncio.sleep(CHECK_S)
            with contextlib.suppress(ConfigError, Unreachable):
                await self._look()

    async def _look(self) -> None:
        nodes = self._replica.state.nodes
        for name, one in self._registry.revoked().items():
            if time.time() - one.at < AFTER_S or not self._replica.caught_up:
                continue
            if self._embedded:
                self._beats.forget(name)
            node = nodes.get(name)
            # Servers of a site's own close its connection when somebody has reloaded them.
            if node is None or (node.alive and not self._embedded):
                continue
            if time.monotonic() - self._said_s.get(name, float("-inf")) < AGAIN_S:
                continue
            self._said_s[name] = time.monotonic()
            await self._writer.append_and_wait(
                OperatorCommand(
                    id=f"s:{uuid.uuid4().hex}",
                    who=one.by,
                    verb="forget",
                    args={"node": name, "revoked": True},
                )
            )
