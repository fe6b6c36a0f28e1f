"""Remembers what collectors ask for over restarts and reboots: what a fresh agent would take for how things always were.

E.g. the lifetime ECC counters of each GPU, so that growth while no agent ran is reported; and what the node was made of,
so that another driver or firmware after a reboot is a change.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.collectors.base import Remembering
from agent.contract.messages import UnsentEvent
from agent.shared.files import read_json, write_json


class LastKnown:
    """A small JSON file in the agent's data folder: for each collector that remembers something, what it remembers."""

    def __init__(self, path: Path) -> None:
        """What an earlier run left there; a file that cannot be read counts as empty."""
        self._path = path
        found = read_json(path)
        entries = found.items() if isinstance(found, dict) else ()
        # Of which collector (its `remembers`) → what it remembers.
        self.values: Mapping[str, Mapping[str, Any]] = {
            key: value for key, value in entries if isinstance(value, dict)
        }
        self._collectors: list[Remembering] = []
        self._kinds: frozenset[str] = frozenset()

    def follow(self, collectors: Iterable[object]) -> None:
        """From now on keeps what these remember, those of them that remember anything."""
        self._collectors = [one for one in collectors if isinstance(one, Remembering)]
        self._kinds = frozenset(kind for one in self._collectors for kind in one.kinds)

    def note(self, unsent_events: Sequence[UnsentEvent]) -> None:
        """These are in the spool now: what they report is no news after a restart."""
        if any(unsent.kind in self._kinds for unsent in unsent_events):
            self.save()

    def save(self) -> None:
        """Writes the file where it has changed."""
        now = {one.remembers: dict(one.remembered()) for one in self._collectors}
        if now == self.values:
            return
        self.values = now
        with suppress(OSError):  # the spool reports the disk; growth over a restart may then stay unreported
            write_json(self._path, now)
