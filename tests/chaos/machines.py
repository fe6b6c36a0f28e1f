"""Simulated machines and spools that outlive the process of their agents, as real ones do: one file for each node.

A fleet that is killed has lost nothing that it had told or begun: what is broken stays broken, and an event that no brain
has taken is sent again under its own number.
"""

import functools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulations.node import SimulatedNode

KEPT = ("machine", "_spool", "_seq", "_waiting")  # attributes of a node that are not its process'


def keep(folder: Path) -> None:
    """From now on each SimulatedNode that is made begins as its file in `folder` says, and writes it with each change."""
    folder.mkdir(exist_ok=True)
    for name in ("put", "sent", "advance"):
        setattr(SimulatedNode, name, _saving(getattr(SimulatedNode, name), folder))
    make = SimulatedNode.__init__

    @functools.wraps(make)
    def remembering(self: SimulatedNode, *args: Any, **more: Any) -> None:
        make(self, *args, **more)
        file = folder / self.name
        if file.exists():
            vars(self).update(pickle.loads(file.read_bytes()))  # noqa: S301  our own file

    setattr(SimulatedNode, "__init__", remembering)  # noqa: B010  the process has no other nodes; mypy refuses the statement


def _saving(change: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    @functools.wraps(change)
    def changed(self: SimulatedNode, *args: Any) -> Any:
        result = change(self, *args)
        new = folder / f"{self.name}.new"
        new.write_bytes(pickle.dumps({name: getattr(self, name) for name in KEPT}))
        new.replace(folder / self.name)
        return result

    return changed
