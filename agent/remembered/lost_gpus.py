"""Remembers over restarts and reboots which GPUs were reported lost, so that their return is reported.

A reboot ends the agent that saw the loss; the next one finds a healthy GPU, which by itself is no news.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import UnsentEvent
from agent.shared.files import read_json, write_json

_MOST = 64  # more GPUs than a node has
_LOST = ("gpu.lost", "gpu.off_bus", "gpu.removed")
_OFF_BUS = 79  # XID: GPU has fallen off the bus


class LostGpus:
    """A small JSON file in the agent's data folder: a list of PCI addresses."""

    def __init__(self, path: Path) -> None:
        """What an earlier run left there; a file that cannot be read counts as empty."""
        self._path = path
        found = read_json(path)
        self.addresses: frozenset[str] = frozenset(
            one for one in (found if isinstance(found, list) else [])[:_MOST] if _is_address(one)
        )

    def note(self, unsent_events: Sequence[UnsentEvent]) -> None:
        """Learns from these events, and writes the file when they change anything."""
        before = self.addresses
        for unsent in unsent_events:
            kind, _, address = unsent.component.partition("/")
            if kind != "gpu" or not _is_address(address):
                continue
            if unsent.kind == "gpu.returned":
                self.addresses -= {address}
            elif unsent.kind in _LOST or (unsent.kind == "gpu.xid" and unsent.data.get("code") == _OFF_BUS):
                self.addresses |= {address}
        if self.addresses != before and len(self.addresses) <= _MOST:
            with suppress(OSError):  # the spool reports the disk; a return may then stay unreported
                write_json(self._path, sorted(self.addresses))


def _is_address(text: object) -> bool:
    try:
        return isinstance(text, str) and components.bdf(text) == text
    except ContractError:
        return False
