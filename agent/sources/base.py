"""The shape of a source: it does I/O once for all collectors and hands readings to `emit`."""

from collections.abc import Callable
from typing import ClassVar, Protocol

from agent.collectors.readings import Reading

Emit = Callable[[Reading], None]


class Source(Protocol):
    """`run` works until cancelled; an OSError means that the source broke and is to be opened again later.

    `once` reads the present state and returns (for `gpuward-agent once` and recorded machines).
    """

    name: ClassVar[str]
    needs: ClassVar[str]  # what it needs of the machine, for `gpuward-agent list`

    async def run(self, emit: Emit) -> None:
        """Follow the machine until cancelled."""
        ...

    async def once(self, emit: Emit) -> None:
        """Say what there is now."""
        ...
