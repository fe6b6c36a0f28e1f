"""Looks again and again at who has joined and who was revoked."""

import asyncio
from collections.abc import Awaitable, Callable

from agent.contract.errors import ConfigError
from brain.leader.notes import BrainNotes


class RegistryWatch:
    """A ConfigError of a look is told once, in a note `cell.failed`, until a look has gone well."""

    def __init__(self, notes: BrainNotes, every_s: float) -> None:
        self._notes = notes
        self._every_s = every_s
        self._told = ""

    async def run(self, look: Callable[[], Awaitable[None]]) -> None:
        """Until cancelled; may be called again."""
        while True:
            try:
                await look()
            except ConfigError as error:
                if str(error) != self._told:
                    self._told = str(error)
                    self._notes.write("cell.failed", self._told)
            else:
                self._told = ""
            await asyncio.sleep(self._every_s)
