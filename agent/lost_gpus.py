"""Remembers over restarts and reboots which GPUs were reported lost, so that their return is said.

A reboot ends the agent that had seen the loss; the next one finds a healthy GPU, which by itself is no news.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Draft

_MOST = 64  # more GPUs than a node has
_LOST = ("gpu.lost", "gpu.off_bus", "gpu.removed")
_OFF_BUS = 79  # XID: GPU has fallen off the bus


class LostGpus:
    """A small JSON file in the agent's data folder: a list of PCI addresses."""

    def __init__(self, path: Path) -> None:
        """What an earlier run left there; a file that cannot be read counts as empty."""
        self._path = path
        try:
            found = json.loads(path.read_text())
        except (OSError, ValueError):
            found = []
        self.addresses: frozenset[str] = frozenset(
            one for one in (found if isinstance(found, list) else [])[:_MOST] if _is_address(one)
        )

    def note(self, drafts: Sequence[Draft]) -> None:
        """Learns from what was said, and writes the file when that changes anything."""
        before = self.addresses
        for draft in drafts:
            kind, _, address = draft.component.partition("/")
            if kind != "gpu" or not _is_address(address):
                continue
            if draft.kind == "gpu.returned":
                self.addresses -= {address}
            elif draft.kind in _LOST or (draft.kind == "gpu.xid" and draft.data.get("code") == _OFF_BUS):
                self.addresses |= {address}
        if self.addresses != before and len(self.addresses) <= _MOST:
            self._write()

    def _write(self) -> None:
        fresh = self._path.with_name(self._path.name + ".new")
        try:
            fresh.write_text(json.dumps(sorted(self.addresses)))
            fresh.replace(self._path)
        except OSError:
            pass  # the disk is full or read-only: the spool says so; then a return may stay unsaid


def _is_address(text: object) -> bool:
    try:
        return isinstance(text, str) and components.bdf(text) == text
    except ContractError:
        return False
