"""Remembers over restarts and reboots what a fresh agent would take for how things always were.

The aggregate ECC counters of each GPU, so that growth while no agent ran is said; and what the node was made of, so that
another driver or firmware after a reboot is a change.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.contract.messages import Draft, Scalar

Counters = Mapping[str, Mapping[str, int]]  # GPU's UUID -> counter -> value
_MOST = 64  # more GPUs than a node has
_SAID = ("gpu.ecc", "node.inventory")


class LastKnown:
    """A small JSON file in the agent's data folder; written when something of it was said, and by `save`."""

    def __init__(self, path: Path) -> None:
        """What an earlier run left there; a file that cannot be read counts as empty."""
        self._path = path
        try:
            found = json.loads(path.read_text())
        except (OSError, ValueError):
            found = {}
        found = found if isinstance(found, dict) else {}
        self.ecc: Counters = {
            uuid: {key: value for key, value in counters.items() if isinstance(value, int)}
            for uuid, counters in list(_mapping(found.get("ecc")).items())[:_MOST]
            if isinstance(counters, dict)
        }
        self.node: Mapping[str, Scalar] = {
            key: value
            for key, value in _mapping(found.get("node")).items()
            if isinstance(value, (str, int, float))
        }
        # What is known now: the collectors' words, who are made later.
        self.ecc_now: Callable[[], Counters] = lambda: self.ecc
        self.node_now: Callable[[], Mapping[str, Scalar]] = lambda: self.node

    def note(self, drafts: Sequence[Draft]) -> None:
        """These stand in the spool now: what they said is no news after a restart."""
        if any(draft.kind in _SAID for draft in drafts):
            self.save()

    def save(self) -> None:
        """Writes the file where it has changed. GPUs that did not show themselves in this run are kept."""
        ecc = dict(list({**self.ecc_now(), **self._absent()}.items())[:_MOST])
        node = self.node_now() or self.node
        if (ecc, node) == (self.ecc, self.node):
            return
        self.ecc, self.node = {uuid: dict(counters) for uuid, counters in ecc.items()}, dict(node)
        fresh = self._path.with_name(self._path.name + ".new")
        try:
            fresh.write_text(json.dumps({"ecc": self.ecc, "node": self.node}))
            fresh.replace(self._path)
        except OSError:
            pass  # the disk is full or read-only: the spool says so; then growth over a restart may stay unsaid

    def _absent(self) -> Counters:
        now = self.ecc_now()
        return {uuid: counters for uuid, counters in self.ecc.items() if uuid not in now}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
