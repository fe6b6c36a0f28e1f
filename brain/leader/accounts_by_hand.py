"""Says what an administrator has to tell the NATS servers of a site, where the brain cannot tell them itself."""

import contextlib
from collections.abc import Mapping

from agent.contract.errors import ConfigError
from brain.cell import by_hand
from brain.cell.registry import CellNode, CellRegistry
from brain.config import BrainConfig
from brain.leader.notes import BrainNotes
from brain.leader.registry_watch import RegistryWatch

CHECK_S = 0.5


class AccountsByHand:
    """One note, `cell.by_hand`, for each node that joins or is revoked while this brain runs."""

    def __init__(self, config: BrainConfig, notes: BrainNotes) -> None:
        self._config = config
        self._notes = notes
        self._registry = CellRegistry(config.registry_file)
        # None: the registry could not be read yet
        self._known: Mapping[str, CellNode | float] | None = None
        with contextlib.suppress(ConfigError):
            self._known = by_hand.states(self._registry)

    async def serve(self) -> None:
        """Until cancelled. A registry that cannot be read is told once."""
        await RegistryWatch(self._notes, CHECK_S).run(self._look)

    async def _look(self) -> None:
        now = by_hand.states(self._registry)
        known = now if self._known is None else self._known
        for name, of in now.items():
            if known.get(name) != of:
                what = "has joined" if isinstance(of, CellNode) else "was revoked"
                todo = by_hand.todo(self._config, name, joined=isinstance(of, CellNode))
                self._notes.write("cell.by_hand", f"node {name} {what}: {todo}")
        self._known = now
