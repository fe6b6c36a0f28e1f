"""The port through which the console sees its brain."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from brain.cell.registry import CellNode
from brain.config import BrainConfig
from brain.console.disk_view import DiskView
from brain.console.feed import Feed
from brain.console.nats_view import NatsSeen
from brain.console.past_view import Named, Past
from brain.core.context import Context
from brain.core.inputs import OperatorCommand, Reported
from brain.core.state import State

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBeat:
    """The content of a node's newest beat."""

    age_s: float
    version: str
    spooled: int
    dropped: int
    # So far was its wall clock ahead of this machine's; None: an older agent does not tell
    clock_ahead_s: float | None = None


class History(Past, Named, Protocol):
    """The read model: the engine's fields as JSON objects."""

    def incidents(self, *, open_only: bool, limit: int = 1000) -> list[dict[str, Any]]:
        """Returns incidents, newest first; where there are more, open ones of every node before many of one node."""
        ...

    def incidents_page(
        self,
        *,
        over: bool,
        state: str,
        severity: str,
        cause: str,
        scope: str,
        node: str,
        since: float,
        until: float,
        after: tuple[float, str] | None,
        limit: int,
    ) -> list[dict[str, Any]]:
        """Returns incidents, newest first, behind (opened_at, id); cause, scope and node are globs, empty: any."""
        ...

    def runs_page(
        self,
        *,
        state: str,
        over: bool,
        runbook: str,
        node: str,
        incident: str,
        since: float,
        until: float,
        after: tuple[float, str] | None,
        limit: int,
    ) -> list[dict[str, Any]]:
        """Returns runs, newest first, behind (started_at, id); runbook and node are globs, empty: any."""
        ...

    def notes_page(
        self,
        *,
        kind: str,
        incident: str,
        run: str,
        scope: str,
        who: str,
        since: float,
        until: float,
        before: str,
        limit: int,
    ) -> list[dict[str, Any]] | None:
        """Returns notes, newest first, that are older than the note `before`; kind, scope and who are globs, empty: any. None:
        there is no note `before`.
        """
        ...

    def incident(self, id_: str) -> dict[str, Any] | None:
        """Returns one incident; `id_` may be a prefix of its id that no other incident has."""
        ...

    def beginning(self, id_: str, limit: int = 20) -> list[str]:
        """Returns the ids of the newest incidents whose id begins so."""
        ...

    def run(self, id_: str) -> dict[str, Any] | None:
        """Returns one run."""
        ...

    def runs_of(self, incident: str) -> list[dict[str, Any]]:
        """Returns the runs of an incident, in order."""
        ...

    def notes_of(self, incident: str, limit: int = 2000) -> list[dict[str, Any]]:
        """Returns the notes of an incident, in order."""
        ...

    def notes_caused_by(self, input_id: str, limit: int = 1000) -> list[dict[str, Any]]:
        """Returns the first notes that one input caused, in order."""
        ...

    def symptom_notes(self, events: Sequence[str]) -> list[dict[str, Any]]:
        """Returns the notes on symptoms that any of these events caused."""
        ...

    def failed(self, error: Exception) -> None:
        """A question has failed: the file may be damaged."""
        ...

    def log(self) -> str:
        """Returns the identity of the log that it was written from."""
        ...

    def newest(self) -> tuple[str, int, bool]:
        """Returns (id of the newest note, newest position on the log, did the brain itself write that note?); empty and 0: there
        is none.
        """
        ...

    def place_of(self, note: str) -> int | None:
        """Returns the place of a note; None: it is not there."""
        ...

    def notes_at(self, seq: int, place: int) -> list[str]:
        """Returns the ids of the notes of one position on the log, up to a place."""
        ...

    def place_before(self, seq: int) -> int | None:
        """Returns the place of the last note of before this position on the log; None: what came before is not there any more."""
        ...

    def notes_after(self, place: int, limit: int) -> list[dict[str, Any]]:
        """Returns the first notes after a place, with theirs as `n`."""
        ...

    def newest_notes(self, limit: int) -> list[dict[str, Any]]:
        """Returns the newest notes, the oldest of them first."""
        ...


class BundleView(Protocol):
    """An evidence bundle that is read as it is sent."""

    @property
    def size(self) -> int:
        """Its bytes."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """Yields it. Unreachable, ActionError: it cannot be read to its end."""
        ...


class LoopView(Protocol):
    """The state and progress of the live loop. Read only."""

    @property
    def state(self) -> State:
        """The engine's memory."""
        ...

    def look(self) -> Context:
        """What the engine knows now, for questions. Read only, and only until the event loop goes on."""
        ...

    @property
    def seq(self) -> int:
        """The position on the log of the last handled input."""
        ...

    @property
    def caught_up(self) -> bool:
        """Has the whole log been read since the start?"""
        ...

    @property
    def stopped(self) -> str:
        """Why this brain no longer acts; empty: it does."""
        ...

    @property
    def inputs(self) -> int:
        """How many inputs have been handled since the start."""
        ...

    @property
    def busy_s(self) -> float:
        """How much time that has taken."""
        ...

    def leads(self) -> bool:
        """Does this brain lead?"""
        ...

    async def reached(self, seq: int, timeout_s: float) -> bool:
        """Waits until the input at `seq` is handled; False on a timeout."""
        ...


class TraceView(Protocol):
    """What tells traces to one output."""

    @property
    def name(self) -> str:
        """The key of the output in `[traces]`."""
        ...

    @property
    def waiting(self) -> int:
        """Incidents of which something is still to be told."""
        ...

    @property
    def spans(self) -> int:
        """How many it has taken since the start."""
        ...

    @property
    def rejected(self) -> int:
        """Spans that it did not want."""
        ...

    @property
    def dropped(self) -> int:
        """Incidents of which something could not be told."""
        ...


class ArchiveView(Protocol):
    """This brain's part in the log's archive."""

    @property
    def newest_seq(self) -> int | None:
        """The position up to which it is in the archive; None: this brain does not write it."""
        ...

    @property
    def behind_s(self) -> float | None:
        """So much later than it should be is the archive; None: as above, or nothing is known yet."""
        ...

    @property
    def failing(self) -> str:
        """Why it cannot be written now; empty: it can, or this brain does not write it."""
        ...

    @property
    def written(self) -> int:
        """Files, since the start."""
        ...

    @property
    def written_bytes(self) -> int:
        """Their bytes."""
        ...

    @property
    def missing(self) -> int:
        """Messages that had gone from the log before they were written."""
        ...


class BrainView(Protocol):
    """One brain, as the console sees it."""

    @property
    def config(self) -> BrainConfig:
        """The configuration with which it was started."""
        ...

    @property
    def name(self) -> str:
        """The name of this brain."""
        ...

    @property
    def started_at(self) -> float:
        """Time of the start by this machine's wall clock, in seconds since 1970."""
        ...

    async def look_up(self, work: Callable[[History], T]) -> T:
        """Asks the read model a short question, beside the event loop. Unreachable: it does not answer in time."""
        ...

    @property
    def reader(self) -> History:
        """The read model over a connection of its own, for one thread beside the event loop."""
        ...

    @property
    def feed(self) -> Feed:
        """Notes as they are written."""
        ...

    @property
    def live(self) -> LoopView:
        """The live loop."""
        ...

    def connected(self) -> bool:
        """Is NATS connected now?"""
        ...

    def newest_beats(self) -> Mapping[str, NodeBeat]:
        """Returns the newest beat of each node; only the leading brain hears them."""
        ...

    def pack_sources(self, version: str) -> Mapping[tuple[str, str], str]:
        """Returns ("rules", name) -> `<file>:<line>`, also of symptoms and runbooks; empty: the files hold another version."""
        ...

    def agent_versions(self) -> Mapping[str, str]:
        """Returns the version of each node's agent; only the leading brain hears it."""
        ...

    async def ask(self, node: str, body: bytes, timeout_s: float) -> bytes:
        """Sends a node a request that is not stored and returns its answer. Unreachable when none arrives in time."""
        ...

    async def evidence(self, node: str, command: str) -> BundleView | None:
        """Returns the evidence bundle (a .tar.gz) that a command made on a node; None: there is none (yet).

        Unreachable: NATS does not answer. ActionError: the bundle is incomplete.
        """
        ...

    def troubles(self) -> Sequence[tuple[str, str, float]]:
        """Returns the open alerts about this brain itself: cause, text, since when (seconds since 1970)."""
        ...

    def trace_exports(self) -> Sequence[TraceView]:
        """Returns what tells traces: one for each output."""
        ...

    @property
    def disk(self) -> DiskView:
        """The disk of its data folder."""
        ...

    def history_behind(self) -> int:
        """Returns how many inputs were handled and are not in the read model."""
        ...

    @property
    def archive(self) -> ArchiveView:
        """What writes the log's archive."""
        ...

    def log_file(self, since: float, until: float) -> AsyncIterator[bytes]:
        """Yields the log from one time to another (seconds since 1970) as a file (brain.adapters.log_file). Unreachable: NATS
        does not give it.
        """
        ...

    def nats_seen(self) -> NatsSeen | None:
        """Returns what the NATS servers have said last; None: nothing."""
        ...

    def node_jwt(self, name: str, node: CellNode) -> str:
        """The JWT by which a node logs in; empty where the servers are not in operator mode."""
        ...

    def note(self, kind: str, text: str, who: str = "") -> None:
        """Writes a note of this brain, for people and for whoever asks later. `who` did it; empty: nobody, or a node."""
        ...

    async def submit(self, command: OperatorCommand) -> int:
        """Puts an operator command on the log and returns its position there. Unreachable when NATS does not take it in
        time.
        """
        ...

    async def report(self, given: Reported) -> int:
        """Puts another system's report on the log, as above; of one that comes again it is the first one's position."""
        ...
