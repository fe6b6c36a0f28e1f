"""How much of its room on NATS the log takes, for the metrics."""

import asyncio

from nats.aio.client import Client

from agent.shared.nats_connection import LOST
from brain.adapters import log
from brain.adapters.log import LogInfo

EVERY_S = 30.0


class LogSize:
    """What the server said last."""

    def __init__(self, cell: str) -> None:
        self._cell = cell
        # None: nothing is known, as there is no connection or no answer
        self.info: LogInfo | None = None

    async def serve(self, client: Client) -> None:
        """Asks now and then, on one connection, until cancelled."""
        try:
            while True:
                try:
                    self.info = await log.info(client, self._cell)
                except LOST:  # the session's other parts notice what that means
                    self.info = None
                await asyncio.sleep(EVERY_S)
        finally:
            self.info = None
