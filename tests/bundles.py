"""Evidence bundles as a whole, for tests."""

from nats.aio.client import Client

from brain.adapters import evidence


async def fetch(client: Client, cell: str, node: str, command: str) -> bytes | None:
    """The bundle that a command made on a node; None: there is none. Raises as `evidence.find`."""
    found = await evidence.find(client, cell, node, command)
    return None if found is None else b"".join([piece async for piece in found.pieces()])
