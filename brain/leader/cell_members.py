"""Keeps the embedded NATS server to the registry of the cell: who joins is let in, who is revoked is thrown out, at once."""

import asyncio
import logging

from agent.contract.errors import ConfigError, Unreachable
from agent.shared.tasks import abandonable
from brain.adapters.nats_server import NatsServer
from brain.cell.authority import Authority
from brain.cell.registry import CellRegistry
from brain.config import BrainConfig
from brain.glance import Latest
from brain.leader.notes import BrainNotes

CHECK_S = 0.2
_UNSEEN = object()
_log = logging.getLogger(__name__)


class CellMembers:
    """The nodes of one cell on its embedded server, and the server's certificate."""

    def __init__(self, config: BrainConfig, server: NatsServer, notes: BrainNotes) -> None:
        self._config = config
        self._server = server
        self._notes = notes
        self._registry = CellRegistry(config.registry_file, config.nats.embedded.nodes)
        self._authority = Authority(config.cell_dir)
        self._told = ""
        self._seen = Latest(self._stamp, self._authority.certificate_file)
        self._certificate: object = _UNSEEN

    async def serve(self) -> None:
        """Looks at the registry, until cancelled. What cannot be read changes nothing and is told once."""
        while True:
            try:
                await self._look()
            except (ConfigError, Unreachable) as error:
                if str(error) != self._told:
                    self._told = str(error)
                    self._notes.write("cell.failed", str(error))
            else:
                self._told = ""
            await asyncio.sleep(CHECK_S)

    async def _look(self) -> None:
        if not self._server.running():
            return  # whoever starts it again starts it with what is in force
        configured = dict(self._config.nats.embedded.nodes)
        joined = {name: node.public for name, node in self._registry.nodes().items()}
        await self._server.set_nodes(
            joined | configured
        )  # a name is whose the operator's file says that it is
        await self._read_again()

    async def _read_again(self) -> None:
        """A certificate that was exchanged is read by the server."""
        if (seen := self._seen()) != self._certificate:
            first, self._certificate = self._certificate is _UNSEEN, seen
            if not first:  # the server was started with it
                await abandonable(self._server.reload, "reload")

    def _stamp(self) -> tuple[int, int] | None:
        try:
            if not self._authority.exists():
                return None
            stat = self._authority.certificate_file.stat()
        except OSError:
            return None
        return stat.st_ino, stat.st_mtime_ns
