"""A node that `gpuward cell revoke` has named is not heard any more, and forgotten: its incidents and pages end, under the
operator's name on the log.

The brain does not rely on the servers: those of a site's own let the node in until somebody has written the accounts again.
"""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable

from agent.contract.errors import ConfigError, Unreachable
from brain.adapters.liveness import Beats
from brain.cell.registry import CellRegistry
from brain.config import BrainConfig
from brain.core.inputs import OperatorCommand
from brain.leader.log_writer import LogWriter
from brain.leader.replica import Replica

CHECK_S = 0.2
AFTER_S = 2.0  # by then what it said before is on the log
AGAIN_S = 30.0  # something of it was under way still, or the log did not take it


class RevokedNodes:
    """The registry is that of this machine, so that it needs no lease: whoever leads handles the command."""

    def __init__(
        self,
        config: BrainConfig,
        *,
        replica: Replica,
        beats: Beats,
        writer: LogWriter,
        leads: Callable[[], bool],
    ) -> None:
        self._embedded = config.embedded
        self._leads = leads
        self._registry = CellRegistry(config.registry_file, config.nats.embedded.nodes)
        self._shut_out: frozenset[str] = frozenset()
        with contextlib.suppress(ConfigError):
            self._shut_out = self._registry.shut_out()
        self._replica = replica
        self._beats = beats
        self._writer = writer
        self._said_s: dict[str, float] = {}

    def shut_out(self, node: str) -> bool:
        """Was it revoked? Then what it offers is not taken."""
        return node in self._shut_out

    async def serve(self) -> None:
        """Looks at the registry, until cancelled. One that cannot be read is told by brain/leader/cell_members.py."""
        while True:
            await asyncio.sleep(CHECK_S)
            with contextlib.suppress(ConfigError, Unreachable):
                await self._look()

    async def _look(self) -> None:
        nodes = self._replica.state.nodes
        self._shut_out = self._registry.shut_out()
        revoked = self._registry.revoked()
        for name in self._shut_out:
            one = revoked[name]
            if time.time() - one.at < AFTER_S or not self._replica.caught_up:
                continue
            self._beats.forget(name)
            node = nodes.get(name)
            # Another brain, which leads, may hear it still: it has no registry, or another one.
            if node is None or (node.alive and not self._embedded and not self._leads()):
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
