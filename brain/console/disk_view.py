"""The port through which the console sees the disk of its brain."""

from collections.abc import Mapping
from typing import Protocol


class DiskView(Protocol):
    """This brain's own disk. Read only."""

    @property
    def states(self) -> Mapping[str, bool]:
        """Returns for each state in which a disk can be whether this one is in it, as far as is known."""
        ...

    @property
    def hangs(self) -> bool:
        """Does nothing return that is asked of it?"""
        ...

    @property
    def readable(self) -> bool:
        """Can files on it be read?"""
        ...

    @property
    def free_bytes(self) -> int | None:
        """Bytes left when it was tried last; None: not known."""
        ...

    @property
    def trouble(self) -> str:
        """What is wrong with it, in a few words; empty: nothing."""
        ...
