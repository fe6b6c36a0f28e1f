"""Says what an administrator has to tell the NATS servers of a site, where the brain cannot tell them itself."""

from collections.abc import Mapping

from brain.cell import by_hand
from brain.cell.registry import CellNode, CellRegistry
from brain.config import BrainConfig
from brain.leader.notes import BrainNotes
from brain.leader.registry_watch import RegistryWatch

CHECK_S = 0.5


class AccountsByHand:
    """One note, `cell.by_hand`, for each node that joins or is revoked while this brain runs."""

    def __init__(self, config: BrainConfig, notes: BrainNotes) -> None:
        """ConfigError: the registry cannot be read."""
        self._config = config
        self._notes = notes
        self._registry = CellRegistry(config.registry_file)
        self._known: Mapping[str, CellNode | float] = by_hand.states(self._registry)

    async def serve(self) -> None:
        """Until cancelled. A registry that cannot be read is told once."""
        await RegistryWatch(self._notes, CHECK_S).run(self._look)

    async def _look(self) -> None:
        now = by_hand.states(self._registry)
        for name, of in now.items():
            if self._known.get(name) != of:
                what = "has joined" if isinstance(of, CellNode) else "was revoked"
                todo = by_hand.todo(self._config, name, joined=isinstance(of, CellNode))
                self._notes.write("cell.by_hand", f"node {name} {what}: {todo}")
        self._known = now
