"""A brain in this process on a real nats-server in operator mode, with what `gpuward cell export --jwt` writes."""

import asyncio
import os
from pathlib import Path
from typing import Any

import nats
import nkeys

from brain.adapters import nats_jwt, operator_mode
from brain.cell.registry import CellRegistry
from brain.cli import cell_export
from tests.real.brain_kit import Lab
from tests.real.nats import NatsServer, login


class OperatorLab(Lab):
    """As Lab; the server outlives the brain."""

    def __init__(self, folder: Path, more: dict[str, Any]) -> None:
        self.server = NatsServer(folder / "nats", 'include "../export/resolver.conf"')
        cell = folder / "brain/cell"
        operator = {
            "seed_file": str(cell / "operator.nk"),
            "system_creds_file": str(cell / "system.creds"),
        }
        super().__init__(folder, {"nats": {"url": self.server.url, "operator": operator}} | more)
        cell.mkdir(parents=True)
        self.registry = CellRegistry(cell / "registry.json")
        self.export()
        self.server.start()

    def end(self) -> None:
        """The server."""
        self.server.kill()

    def export(self) -> None:
        """As `gpuward cell export --jwt`."""
        cell_export.export(self.config, self.registry, self.folder / "export", None)

    async def credential(self, name: str) -> Path:
        """Until the servers let it in."""
        file = self.folder / f"{name}.creds"
        if not file.exists():
            seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER).decode()
            self.registry.add(name, nkeys.from_seed(bytearray(seed.encode())).public_key.decode(), now=0)
            jwt = operator_mode.load(self.config).node_jwt(name, self.registry.nodes()[name])
            file.write_text(nats_jwt.credentials(jwt, seed))
        async with asyncio.timeout(60):
            while not await self.is_in(file):
                await asyncio.sleep(0.05)
        return file

    async def is_in(self, file: Path) -> bool:
        """Does a server take this credential?"""
        try:
            client = await nats.connect(self.server.url, allow_reconnect=False, **login(file))
        except nats.errors.Error:
            return False
        await client.close()
        return True

    def brain_credential(self) -> Path:
        """What the export has."""
        return self.folder / "export/brain.creds"
