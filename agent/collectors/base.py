"""The shape of a collector: pure, one file, listed in `agent.collectors.COLLECTORS`.

A collector is given the samples that it `wants`, keeps what it must remember in itself, and returns events that are not
sent yet. It does no I/O and reads no clock: `now_s` is the node's monotonic clock.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from agent.collectors.samples import Sample
from agent.contract.messages import UnsentEvent
from agent.options import Chosen, chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorSetup:
    """What a collector may know when it is made; the agent fills it from its configuration and its machine."""

    # What is set of the collectors' options: key → value; all others have their defaults.
    values: Mapping[str, Any] = field(default_factory=dict)
    # Version of the NVIDIA driver, e.g. `580.82`; empty: not known.
    driver: str = ""
    # The machine's host name; empty: not known.
    hostname: str = ""
    # PCI address with the function → InfiniBand device.
    nics: Mapping[str, str] = field(default_factory=dict)
    # PCI address with the function → kernel driver, of the GPUs and cards.
    drivers: Mapping[str, str] = field(default_factory=dict)
    # Number by which the driver's lines name an accelerator → its PCI address, where they name no address.
    numbered: Mapping[int, str] = field(default_factory=dict)
    # The samples are lines of a log that somebody kept, and nothing else tells of its machine.
    kept: bool = False
    # Equal facts within this time are one event, seconds; 0: each is an event.
    burst_s: float = 5.0
    # Addresses of GPUs that an earlier run of the agent reported lost.
    lost_before: frozenset[str] = frozenset()
    # What collectors remembered in an earlier run (Remembering).
    remembered: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def options(self, part: type[Chosen]) -> Chosen:
        """The options that a collector declares, e.g. `setup.options(ClockOptions)`."""
        return chosen(part, self.values)


class Collector(Protocol):
    """See the module's docstring. Collectors name it as their base class, and get its defaults."""

    name: ClassVar[str]
    # Types of samples.
    wants: ClassVar[tuple[type, ...]]
    # Kinds of events that it may emit (law: vocabulary).
    kinds: ClassVar[tuple[str, ...]]
    # Dataclasses of agent.options: what an operator can set about it.
    options: ClassVar[tuple[type[Any], ...]] = ()
    # Why it has no `restate`: what it reports happens and does not last; empty: it has one.
    one_off: ClassVar[str] = ""

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:  # noqa: ARG003  most collectors need nothing
        """A fresh one with an empty memory."""
        return cls()

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """The facts in one sample, in order; none for an ordinary one. Never raises on odd input."""
        ...

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:  # noqa: ARG002  for those that keep none
        """The lasting conditions that a sample of agent.look shows: those that are present with the kind and component with
        which they began, and those that are well with the kind that ends them (severity info). `feed` was given the sample
        before; what was never reported, as it is ordinary here, is not restated either, nor what has changed since the sample.
        Changes nothing.

        A fact that things are well may end a symptom: none where its kind means that something happened (gpu.returned).
        """
        return ()


@runtime_checkable
class Remembering(Protocol):
    """A collector that keeps something over restarts of the agent: the next run finds it in `CollectorSetup.remembered`."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    # Its key in the file (agent.remembered.last_known).
    remembers: ClassVar[str]

    def remembered(self) -> Mapping[str, Any]:
        """What the next run shall know, as JSON has it; of earlier runs, what still holds."""
        ...
