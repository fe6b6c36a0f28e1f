"""What an oracle is, and what several of them know."""

from collections.abc import Iterator
from typing import Protocol

from brain.core.pack.spec import Pack
from tests.laws.cell import Cell
from tests.laws.moment import Moment
from tests.laws.world import Story

OVER = ("succeeded", "exhausted", "observed", "cancelled")
Found = Iterator[str]


class Oracle(Protocol):
    """One law's judge."""

    law: int
    looks_at: tuple[type, ...]  # inputs and effects; it is not asked about a moment that has none of them

    def see(self, cell: Cell, moment: Moment) -> Found:
        """Violations that show with this input."""
        ...

    def end(self, story: Story) -> Found:
        """Violations that show when everything had days to end."""
        ...


def contains(pack: Pack, outer: str, node: str) -> bool:
    """Does a scope that an operator names hold this node?"""
    if outer in ("all", "cell", f"node/{node}"):
        return True
    kind, _, name = outer.partition("/")
    place = pack.places.get(node)
    return place is not None and kind in ("leaf", "rack", "pod", "fabric") and getattr(place, kind) == name
