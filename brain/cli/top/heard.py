"""What `gpuward top` hears from its brain: values that go from the threads that ask to the terminal that draws."""

from dataclasses import dataclass

from brain.cli.answers import ChainJson, MeJson, NeedJson, NodeDetailJson, NoteJson, StatusJson
from brain.cli.top.rows import Entry, Sheet, Tab


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive:
    """The brain has given a sign of life; `again`: the connection is new."""

    at: float
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The connection is lost, and is tried again."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A note was written."""

    note: NoteJson
    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesLost:
    """What was written while the connection was lost cannot be told any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainState:
    """How the brain stands, and who we are to it."""

    status: StatusJson
    me: MeJson


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRead:
    """A list, read anew. `needs`: what may be said, by id; None: it is not of this list."""

    tab: Tab
    sheet: Sheet
    # monotonic
    at: float
    needs: dict[str, NeedJson] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A list, or the brain's state, was not answered."""

    what: str
    why: str
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowKnown:
    """What was asked for about a row; of a node or of anything that has an id. `why`: it was not answered."""

    key: str
    chain: ChainJson | None = None
    node: NodeDetailJson | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What became of a command. `refused`: the brain's words; else `text`."""

    number: int
    text: str = ""
    refused: str = ""


Heard = Alive | Cut | Noted | NotesLost | BrainState | ListRead | Unread | RowKnown | Answered
