"""NATS lets the brain in, and it cannot work there: connection after connection ends at once. People are told, and why."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.real.brain_kit import Lab
from tests.real.nats import NatsServer

pytestmark = pytest.mark.component("nats-server")


class SmallServer(Lab):
    """A brain on a server of a site that lets it have little memory."""

    def __init__(self, folder: Path, more: dict[str, Any]) -> None:
        self.server = NatsServer(folder / "nats")
        self.server.max_mem = "512MB"
        self.server.start()
        super().__init__(folder, {"nats": {"url": self.server.url}} | more)

    def end(self) -> None:
        """The server."""
        self.server.kill()


async def test_a_server_with_too_little_memory_is_told_and_over_when_it_has_more(tmp_path: Path) -> None:
    """What nodes say waits in the server's memory. The page says what to raise, and the trouble ends by itself."""
    whole = SmallServer(tmp_path, {})
    try:
        await whole.start(leads=False)
        status = await whole.until(lambda found: found["troubles"], "people are told", within_s=120)
        (trouble,) = status["troubles"]
        for _ in range(30):
            assert (await whole.get("/api/v1/status"))["troubles"], "and nobody is told that it is over"
            await asyncio.sleep(0.1)
        assert trouble["cause"] == "brain_disconnected"
        assert "raise max_mem in `jetstream` of each server" in trouble["text"]
        whole.server.stop()
        whole.server.max_mem = "1200MB"
        whole.server.start()
        await whole.until(lambda found: found["leads"] and not found["troubles"], "it is over", within_s=120)
    finally:
        await whole.stop()
        whole.end()
