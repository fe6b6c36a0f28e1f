"""Pages when a file that people change beside the brain cannot be read: what was read of it last counts until then."""

import asyncio
import time
from collections.abc import Callable, Mapping

from brain.cell.registry import CellRegistry
from brain.cell.trust import TrustFile
from brain.config import BrainConfig
from brain.console.access.tokens import Tokens
from brain.console.access.users import Users
from brain.glance import FileHangs
from brain.leader.brain_alerts import BrainAlerts

CHECK_S = 1.0
AFTER_S = 3.0  # a passing error of the machine, e.g. no free descriptor, is no page
HANGS_S = (
    30.0  # by then whoever watches the disk of the data folder (brain/leader/disk_watch.py) has told that
)
EDITED_S = 120.0  # somebody writes at brain.toml for so long, and what is half written is no page either


class OwnFiles:
    """The registry of the cell, what its nodes were told to trust, the tokens of people, and who they are (brain.toml)."""

    def __init__(
        self,
        config: BrainConfig,
        alerts: BrainAlerts,
        clock: Callable[[], float] = time.monotonic,
        *,
        disk_hangs: Callable[[], bool] = lambda: False,
    ) -> None:
        """`disk_hangs`: people hear of the hang of this brain's disk already, and of no file on it besides."""
        self._disk_hangs = disk_hangs
        self._alerts = alerts
        self._clock = clock
        # cause -> (says why its file cannot be read, for how long that is no page)
        self._files: Mapping[str, tuple[Callable[[], str], float]] = {
            "registry_unreadable": (CellRegistry(config.registry_file).trouble, AFTER_S),
            "trust_unreadable": (TrustFile(config.cell_dir).trouble, AFTER_S),
            "tokens_unreadable": (Tokens(config.tokens_file).trouble, AFTER_S),
            "people_unreadable": (Users(config, note=lambda _kind, _text: None).trouble, EDITED_S),
        }
        self._since: dict[str, float] = {}

    async def serve(self) -> None:
        """Until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(CHECK_S)

    def look(self) -> None:
        """Reads what has changed, or could not be read before."""
        now = self._clock()
        for cause, (trouble, after_s) in self._files.items():
            try:
                why = trouble()
            except FileHangs as error:
                if self._disk_hangs():
                    continue  # nobody knows more of it than before
                why, after_s = str(error), HANGS_S
            if not why:
                self._since.pop(cause, None)
                self._alerts.clear(cause)
            elif now - self._since.setdefault(cause, now) >= after_s:
                self._alerts.open(cause, f"{why}. What was read of it last counts until it can be read")
