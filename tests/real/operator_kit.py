"""A brain in this process on a real nats-server in operator mode, with what `gpuward cell export --jwt` writes."""

import asyncio
import os
from pathlib import Path
from typing import Any

import nats
import nkeys

from agent.shared.nats_connection import TlsContexts
from brain.adapters import nats_jwt, operator_mode
from brain.cell.registry import CellRegistry
from brain.cli import cell_export
from tests.real.brain_kit import Lab
from tests.real.nats import NatsServer, login
from tests.real.nats_cluster import Cluster


class OperatorLab(Lab):
    """As Lab; the server outlives the brain."""

    def __init__(self, folder: Path, more: dict[str, Any], cluster: Cluster | None = None) -> None:
        self.server = cluster or NatsServer(folder / "nats", 'include "../export/resolver.conf"')
        cell = folder / "brain/cell"
        operator = {
            "seed_file": str(cell / "operator.nk"),
            "system_creds_file": str(cell / "system.creds"),
        }
        said: dict[str, Any] = {"url": self.server.url, "operator": operator}
        if cluster:
            said |= {"replicas": 3, "ca_file": str(cluster.ca_file)}
        super().__init__(folder, {"nats": said, "evidence": {"max_bytes": 100 * 1024**2}} | more)
        cell.mkdir(parents=True)
        self.registry = CellRegistry(cell / "registry.json")
        self.export()
        self.server.start()

    def end(self) -> None:
        """The server."""
        self.server.kill()

    def export(self) -> None:
        """As `gpuward cell export --jwt`."""
        cell_export.export(self.config, self.folder / "export", None)

    async def credential(self, name: str) -> Path:
        """Until the servers let it in."""
        file = self.folder / f"{name}.creds"
        if not file.exists():
            seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER).decode()
            self.registry.add(name, nkeys.from_seed(bytearray(seed.encode())).public_key.decode(), now=0)
            jwt = operator_mode.load(self.config).node_jwt(name, self.registry.nodes()[name])
            file.write_text(nats_jwt.credentials(jwt, seed))
        await self.until_in(file)
        return file

    async def until_in(self, file: Path, url: str = "", *, there: bool = True) -> None:
        """Until the servers (or the one at `url`) let it in, or, not `there`, no longer do."""
        async with asyncio.timeout(60):
            while await self.is_in(file, url) != there:
                await asyncio.sleep(0.05)

    async def is_in(self, file: Path, url: str = "") -> bool:
        """Does a server take this credential?"""
        try:
            servers = (url or self.server.url).split(",")
            ca_file = self.config.nats.ca_file
            tls = TlsContexts(servers, "nats.ca_file").of(ca_file.read_text() if ca_file else "")
            client = await nats.connect(servers, tls=tls, allow_reconnect=False, **login(file))
        except nats.errors.Error:
            return False
        await client.close()
        return True

    def brain_credential(self) -> Path:
        """What the export has."""
        return self.folder / "export/brain.creds"


class OperatorClusterLab(OperatorLab):
    """On three servers."""

    def __init__(self, folder: Path, more: dict[str, Any]) -> None:
        super().__init__(folder, more, Cluster(folder / "site"))

    def export(self) -> None:
        """Into the file that each server includes."""
        super().export()
        (self.folder / "site/accounts.conf").write_bytes((self.folder / "export/resolver.conf").read_bytes())
