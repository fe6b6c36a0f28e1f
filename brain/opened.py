"""What is open while a brain runs and must be closed after it."""

import contextlib
from collections.abc import AsyncIterator, Iterator

from brain.adapters.nats_server import NatsServer
from brain.config import BrainConfig
from brain.console.server import Console


@contextlib.contextmanager
def embedded(config: BrainConfig) -> Iterator[NatsServer]:
    """The embedded NATS server with the nodes that the configuration lists."""
    settings = config.nats.embedded
    server = NatsServer(
        settings.store or config.data_dir / "nats", cell=config.cell, host=settings.host, port=settings.port
    )
    for node, public in settings.nodes.items():
        server.allow(public, (node,))
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextlib.asynccontextmanager
async def console(server: Console) -> AsyncIterator[str]:
    """The HTTP API while it is served; its URL."""
    url = await server.start()
    try:
        yield url
    finally:
        await server.stop()
