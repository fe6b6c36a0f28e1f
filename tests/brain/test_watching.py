"""Whoever watches the notes misses none of the engine's and gets none twice: over connections that end, a brain that starts
again, other brains of the cell, and a history that is made again from the log.
"""

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.adapters.readmodel import ReadModel
from brain.console import positions, watching
from brain.console.feed import Feed
from brain.console.positions import Position
from brain.core.effects import Note
from brain.leader.history import HistoryWriter

# How many notes each input causes; a brain's own notes come between.
Log = list[int]


def note(id_: str) -> Note:
    """A note."""
    return Note(id=id_, at=1.0, kind="x", text="x")


@dataclass(slots=True)
class Brain:
    """One brain's history and feed."""

    name: str
    folder: Path
    log: Log
    identity: str = "log-1"
    at: int = 0  # so many inputs of the log are handled
    own: int = 0
    feed: Feed = field(default_factory=Feed)
    model: ReadModel = field(init=False)
    history: HistoryWriter = field(init=False)

    def __post_init__(self) -> None:
        self.model = ReadModel(self.folder / self.name)
        self.history = HistoryWriter(self.model, self.feed)
        self.history.open(self.identity)

    def handles(self, inputs: int) -> None:
        """So many inputs more, in one transaction."""
        for _ in range(min(inputs, len(self.log) - self.at)):
            self.at += 1
            self.history.collect(self.at, [note(f"in{self.at}#{k}") for k in range(self.log[self.at - 1])])
        assert self.history.flush()

    def says(self) -> None:
        """A note of its own."""
        self.own += 1
        said = note(f"brain:{self.name}:{self.own}")
        self.model.note(said)
        self.feed.publish(said, 0)

    def is_made_again(self) -> None:
        """Its history was damaged: it is read from the log again, and has none of its own notes."""
        self.history.clear(self.identity)
        again, self.at = self.at, 0
        self.history.resume(0)
        self.handles(again)


@dataclass(slots=True)
class Watcher:
    """What came to somebody."""

    since: str = ""
    notes: list[str] = field(default_factory=list)
    lost: int = 0

    def gets(self, body: bytes) -> None:
        """Server-sent events."""
        for event in body.split(b"\n\n"):
            fields = dict(line.split(b": ", 1) for line in event.split(b"\n") if b": " in line)
            self.since = fields[b"id"].decode() if b"id" in fields else self.since
            self.lost += fields.get(b"event") == b"lost"
            if fields.get(b"event") == b"note":
                self.notes.append(orjson.loads(fields[b"data"])["id"])

    def watches(
        self, brain: Brain, before: Iterable[str], between: Iterable[str], after: Iterable[str], keep: int
    ) -> None:
        """A connection: what the brain does before the history is read, between two reads, and then. `keep`: so many events get
        through before it breaks.
        """
        whole: list[bytes] = []
        ended = brain.feed.ended
        with brain.feed.watch() as queue:
            act(brain, before)
            head, past = watching._begin(brain.model, self.since, 0, lambda: None)
            if brain.feed.ended != ended:
                return
            whole.append(head)
            while past.place is not None:
                act(brain, between)
                more = watching._more(brain.model, past, lambda: None)
                if brain.feed.ended != ended:
                    break
                whole.append(more)
            act(brain, after if brain.feed.ended == ended else ())
            while brain.feed.ended == ended and not queue.empty():
                one = queue.get_nowait()
                if one is None:
                    break
                whole.append(watching._fresh(past.told, one))
        events = b"".join(whole).split(b"\n\n")
        self.gets(b"\n\n".join(events[:keep]) + b"\n\n")


def act(brain: Brain, acts: Iterable[str]) -> None:
    """What happens at a brain."""
    for one in acts:
        match one:
            case "own":
                brain.says()
            case "again":
                brain.is_made_again()
            case _:
                brain.handles(int(one))


ACTS = st.lists(st.sampled_from(["1", "2", "3", "own", "again"]), max_size=4)


@settings(deadline=None, max_examples=300)  # each writes files
@given(
    log=st.lists(st.integers(0, 3), min_size=1, max_size=25),
    story=st.lists(
        st.tuples(st.integers(0, 1), ACTS, ACTS, ACTS, st.one_of(st.integers(0, 6), st.just(1000))),
        max_size=12,
    ),
)
def test_nothing_is_missed_and_nothing_doubled(
    log: Log, story: list[tuple[int, list[str], list[str], list[str], int]]
) -> None:
    """Any two brains, each as far on the log as it is, and any connection, broken anywhere: in the end the watcher has the
    engine's notes in their order, from where it began; of the one brain that it always watched also what that said itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        brains = [Brain(name, Path(folder), log) for name in ("a", "b")]
        watcher = Watcher()
        watcher.watches(brains[0], (), (), (), 1000)
        for which, before, between, after, keep in story:
            watcher.watches(brains[which], before, between, after, keep)
        for brain in brains:
            act(brain, [str(len(log))])
            watcher.watches(brain, (), (), (), 1_000_000)
        whole = [f"in{at}#{k}" for at, many in enumerate(log, 1) for k in range(many)]
        assert [one for one in watcher.notes if not one.startswith("brain:")] == whole
        assert watcher.lost == 0
        acts = [one for _, *some, _ in story for part in some for one in part]
        if "again" not in acts and not any(which for which, *_ in story):
            own = [one for one in watcher.notes if one.startswith("brain:a:")]
            assert own == [f"brain:a:{number}" for number in range(1, brains[0].own + 1)]


def test_another_log_is_said_to_be_one(tmp_path: Path) -> None:
    """Positions of the old one mean nothing on it: `lost`, and on from now."""
    old = Brain("a", tmp_path, [1, 1, 1])
    watcher = Watcher()
    watcher.watches(old, ["3"], (), (), 1000)
    new = Brain("b", tmp_path, [1, 1], identity="log-2")
    new.handles(1)
    watcher.watches(new, (), (), ["1"], 1000)
    assert (watcher.lost, watcher.notes) == (1, ["in2#0"])


def test_a_live_watch_ends_when_other_notes_follow(tmp_path: Path) -> None:
    """The log was replaced while somebody watched: they are told, instead of waiting for positions that never come."""
    brain = Brain("a", tmp_path, [1, 1, 1])
    brain.handles(3)
    with brain.feed.watch() as queue:
        brain.history.open("log-2")
        assert queue.get_nowait() is None
    with brain.feed.watch() as queue:
        brain.history.rewind(1)
        assert queue.get_nowait() is None


def test_what_is_gone_is_said_to_be_lost(tmp_path: Path) -> None:
    """The oldest notes are deleted in time."""
    brain = Brain("a", tmp_path, [1] * 10)
    watcher = Watcher()
    watcher.watches(brain, ["2"], (), (), 1000)
    brain.handles(8)
    with brain.model._db:
        brain.model._db.execute("DELETE FROM notes WHERE n <= 5")
    watcher.watches(brain, (), (), (), 1000)
    assert (watcher.lost, watcher.notes) == (1, [])
    brain.log.append(1)
    watcher.watches(brain, (), (), ["1"], 1000)
    assert watcher.notes == ["in11#0"]


@given(st.text())
def test_any_id_of_an_event_is_a_position_or_none(text: str) -> None:
    """Clients send what they like."""
    found = positions.parse(text)
    assert found is None or found.seq >= 0


@given(seq=st.integers(0, 10**17), note_=st.text(), own=st.booleans())
def test_positions_come_back(seq: int, note_: str, own: bool) -> None:
    """Whatever stands in the id of a note: an event's id is one line of ASCII."""
    position = Position(log=positions.short("log"), seq=seq, note=note_, own=own)
    if any(0xD800 <= ord(char) <= 0xDFFF for char in note_):
        return
    text = position.text()
    assert positions.parse(text) == position
    assert text.isascii()
    assert text.isprintable()


@pytest.mark.parametrize(
    "text",
    ["", "x", "a/b/c/d", "a/1/log", "a/-1/log/x", "a/1/other/x", f"a/{'9' * 30}/log/x"],
)
def test_what_is_no_position(text: str) -> None:
    """It is as if the watcher had been at another log."""
    assert positions.parse(text) is None
