"""What the console needs of the brain behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from brain.config import BrainConfig
from brain.console.feed import Feed
from brain.core.inputs import Said
from brain.core.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHeard:
    """What a node's newest beat said."""

    age_s: float
    version: str
    spooled: int
    dropped: int


class History(Protocol):
    """The read model: the engine's fields as JSON objects."""

    def incidents(self, *, open_only: bool, limit: int = 1000) -> list[dict[str, Any]]:
        """Incidents, newest first."""
        ...

    def incident(self, id_: str) -> dict[str, Any] | None:
        """One incident; `id_` may be the beginning of its id, when only one begins so."""
        ...

    def run(self, id_: str) -> dict[str, Any] | None:
        """One run."""
        ...

    def runs_of(self, incident: str) -> list[dict[str, Any]]:
        """The runs of an incident, in order."""
        ...

    def notes_of(self, incident: str, limit: int = 2000) -> list[dict[str, Any]]:
        """The notes of an incident, in order."""
        ...

    def notes_caused_by(self, input_id: str) -> list[dict[str, Any]]:
        """What one input led to, in order."""
        ...

    def symptom_notes(self, events: Sequence[str]) -> list[dict[str, Any]]:
        """Notes on symptoms that one of these events led to."""
        ...

    def newest_notes(self, limit: int) -> list[dict[str, Any]]:
        """The newest notes, oldest of them first."""
        ...


class Loop(Protocol):
    """The live loop, to look at."""

    @property
    def state(self) -> State:
        """The engine's memory."""
        ...

    @property
    def seq(self) -> int:
        """The last place on the log that was handled."""
        ...

    @property
    def caught_up(self) -> bool:
        """Was the whole log read since the start?"""
        ...

    @property
    def stopped(self) -> str:
        """Why it does not act any more; empty: it does."""
        ...

    @property
    def inputs(self) -> int:
        """How many inputs were handled since the start."""
        ...

    @property
    def busy_s(self) -> float:
        """How much time that took."""
        ...

    def leads(self) -> bool:
        """Does this brain lead?"""
        ...

    async def reached(self, seq: int, timeout_s: float) -> bool:
        """Waits until the input at `seq` was handled."""
        ...


class Desk(Protocol):
    """One brain, as the console sees it."""

    @property
    def config(self) -> BrainConfig:
        """As it was started."""
        ...

    @property
    def name(self) -> str:
        """This brain's."""
        ...

    @property
    def started_at(self) -> float:
        """By this machine's wall clock."""
        ...

    @property
    def readmodel(self) -> History:
        """What people look at."""
        ...

    @property
    def feed(self) -> Feed:
        """Notes as they come."""
        ...

    @property
    def live(self) -> Loop:
        """The live loop."""
        ...

    def connected(self) -> bool:
        """Is NATS there now?"""
        ...

    def heard(self) -> Mapping[str, NodeHeard]:
        """The newest beat of each node."""
        ...

    async def ask(self, subject: str, body: bytes, timeout_s: float) -> bytes:
        """A request on NATS that is not stored, and its answer. Unreachable when nobody answers in time."""
        ...

    async def evidence(self, node: str, command: str) -> bytes | None:
        """The evidence bundle (a .tar.gz) that a command made on a node; None: there is none (yet).

        Unreachable: NATS does not answer. ActionError: parts of it have gone.
        """
        ...

    async def say(self, word: Said) -> int:
        """Puts a person's word on the log; its place there.

        Unreachable when NATS does not take it in time.
        """
        ...
