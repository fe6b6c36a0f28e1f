"""The shape of a source: it does I/O once for all collectors, and hands samples to `emit`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from agent.collectors.samples import Sample
from agent.config import AgentConfig
from agent.host import Host
from agent.nvml.pause import NvmlPause
from agent.options import Chosen

Emit = Callable[[Sample], None]


def _no_checkpoints(_prefix: str) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSetup:
    """What a source may know when it is made."""

    host: Host
    config: AgentConfig
    # Where the last run ended in the kernel log: boot id and sequence number; None: there was none.
    kmsg_start: tuple[str, int] | None = None
    # Where it ended in everything else: prefix of the keys → Checkpoints, key → value.
    checkpoints: Callable[[str], Mapping[str, str]] = _no_checkpoints
    # By which actions have the NVIDIA driver for themselves; None: no action asks for it.
    pause: NvmlPause | None = None

    def options(self, part: type[Chosen]) -> Chosen:
        """The options that a source or collector declares, e.g. `setup.options(NodeSourceOptions)`."""
        return self.config.options(part)


class Source(Protocol):
    """`run` works until it is cancelled; an OSError means that the source broke and is to be opened again later.

    `once` reads the present state and returns (for `gpuward-agent once` and recorded machines). Sources name this class
    as their base.
    """

    name: ClassVar[str]
    # What it needs of the machine, for `gpuward-agent list`.
    needs: ClassVar[str]
    # Dataclasses of agent.options: what an operator can set about it.
    options: ClassVar[tuple[type[Any], ...]] = ()

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """One for this machine and configuration; None: there is nothing to read, or it is not asked for."""
        ...

    async def run(self, emit: Emit) -> None:
        """Follow the machine until cancelled."""
        ...

    async def once(self, emit: Emit) -> None:
        """Emit what there is now."""
        ...

    async def look(self, emit: Emit) -> None:
        """Take all samples again while `run` works, also of what has not changed, and give them to this `emit` instead of
        that of `run`; returns when they are emitted. OSError when that cannot be done now.

        The caller limits the time. A source that follows what is written has nothing to take: it reads to the end.
        """
        ...
