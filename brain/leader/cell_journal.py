"""Notes what people have done by `gpuward cell`, under their names."""

import asyncio
from datetime import UTC, datetime
from functools import partial

from agent.contract.errors import ConfigError
from agent.shared.tasks import abandonable
from brain.cell.journal import CellJournal
from brain.config import BrainConfig
from brain.leader.notes import BrainNotes

CHECK_S = 0.5


def on_machine(who: str) -> str:
    """How a note names an operator who has typed a command on the brain's machine."""
    return f"{who} on the brain's machine"


class JournalNotes:
    """One note, `cell.changed`, for each command. Noted first and dropped then: rather twice than never."""

    def __init__(self, config: BrainConfig, notes: BrainNotes) -> None:
        self._journal = CellJournal(config.cell_dir)
        self._notes = notes
        self._told = ""

    async def serve(self) -> None:
        """Until cancelled. A journal that cannot be read is told once."""
        while True:
            try:
                await self._look()
            except ConfigError as error:
                if str(error) != self._told:
                    self._told = str(error)
                    self._notes.write("cell.failed", str(error))
            else:
                self._told = ""
            await asyncio.sleep(CHECK_S)

    async def _look(self) -> None:
        deeds = self._journal.deeds()
        if not deeds:
            return
        for deed in deeds:
            at = datetime.fromtimestamp(deed.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
            self._notes.write("cell.changed", f"{on_machine(deed.by)}, {at}: {deed.text}")
        await abandonable(partial(self._journal.drop, deeds), "journal")
