"""Replays a log that was written down (brain.adapters.archive_reader): the same codec, engine and writer of the history as live,
and nobody who performs what the engine wants.
"""

import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from agent.contract.counted import counted
from agent.contract.errors import BugError, ConfigError
from brain.adapters.codec import Codec, handled_at, malformed
from brain.adapters.files import exclusive
from brain.adapters.log import Record
from brain.adapters.log_file import Gap, Head, LogName, Part
from brain.adapters.readmodel import ReadModel
from brain.adapters.snapshot import Snapshots, dump
from brain.console.feed import Feed
from brain.core.effects import Effect
from brain.core.engine import Engine
from brain.core.inputs import Input
from brain.core.pack.actions import ACTIONS
from brain.leader.history import HistoryWriter

WRITE_EVERY = 1000  # messages
_SCRATCH = ".replay-"
NAMES = HISTORY, STATE = ("history.sqlite", "state.snapshot")

# Takes each input, its position, and what the engine made of it.
Watcher = Callable[[Input, int, Sequence[Effect]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """How it went."""

    name: LogName
    first: int
    last: int
    messages: int
    gaps: tuple[Gap, ...]
    # The engine's state after the last message (brain.adapters.snapshot.dump)
    state: bytes


def replay(parts: Iterable[Part], watch: Watcher, *, quarantined: Collection[int] = ()) -> Replayed:
    """Lets a new engine handle a log's messages in order. `quarantined`: positions of inputs that the brain did not handle
    either, as they had crashed it. BugError: another one crashes the engine, and its text says which. ConfigError: there is
    nothing, or one of `quarantined` is not there.
    """
    engine = Engine(actions=ACTIONS)
    head: Head | None = None
    codec = Codec("")
    gaps: list[Gap] = []
    last = messages = 0
    left_out: set[int] = set()
    try:
        for part in parts:
            match part:
                case Head():
                    head, codec, last = part, Codec(part.name.cell), part.first - 1
                case Gap():
                    gaps.append(part)
                    last = part.last
                case Record():
                    if part.seq in quarantined:
                        left_out.add(part.seq)
                        given: Input = malformed(part.subject, "", "quarantined", part.seq)
                    else:
                        given = codec.decode(part.subject, part.body, part.seq)
                    try:
                        effects = engine.handle(given, handled_at(given, part.at, engine.state))
                    except Exception as error:  # whatever it is: a defect of the engine
                        raise BugError(
                            f"message {part.seq} ({part.subject}) crashes the engine: {type(error).__name__}: {error}"
                        ) from error
                    watch(given, part.seq, effects)
                    last, messages = part.seq, messages + 1
        if head is None:
            raise ConfigError("there is nothing to replay")
        if absent := sorted(set(quarantined) - left_out):
            raise ConfigError(
                f"--skip {', '.join(map(str, absent))}: the log has no such message: it has messages {head.first} to {last}"
                + (f", without {counted(len(gaps), 'gap')}" if gaps else "")
            )
        return Replayed(
            name=head.name,
            first=head.first,
            last=last,
            messages=messages,
            gaps=tuple(gaps),
            state=dump(engine.state),
        )
    finally:
        engine.close()


def rebuild(parts: Iterable[Part], folder: Path, *, quarantined: Collection[int] = ()) -> Replayed:
    """Makes `history.sqlite` and `state.snapshot` of a log, as a brain that had read it would have them: with `quarantined` as in
    `replay`. They are made beside the folder's files and put there when both are whole: whatever ends it before, a damaged
    file or an archive that is away, a brain that is started there finds no half of a history. ConfigError: one of them is
    there, a brain or another replay uses the folder, it cannot be written, or as of `replay`. BugError: a message crashes the
    engine.
    """
    try:
        with exclusive(folder):
            _refuse_what_is_there(folder)
            for left in folder.glob(
                f"{_SCRATCH}*"
            ):  # of one that was killed: the lock says that none is under way
                shutil.rmtree(left)
            with TemporaryDirectory(prefix=_SCRATCH, dir=folder) as scratch:
                done = _made(parts, Path(scratch), quarantined)
                # The state last: it is what says that the history is whole.
                for name in NAMES:
                    (Path(scratch) / name).replace(folder / name)
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(
            f"{folder}: cannot be written: {getattr(error, 'strerror', None) or error}"
        ) from error
    return done


def _refuse_what_is_there(folder: Path) -> None:
    for name in (
        *NAMES,
        f"{HISTORY}-wal",
        f"{HISTORY}-shm",
    ):  # SQLite would read a journal of another file into the new one
        if (folder / name).exists():
            raise ConfigError(
                f"{folder / name} is there: give a new folder, or, where this is the folder of a brain that has lost its "
                f"history, stop the brain and move {HISTORY}* and {STATE} out of it"
            )


def _made(parts: Iterable[Part], folder: Path, quarantined: Collection[int]) -> Replayed:
    """The two files, in an empty folder."""
    readmodel = ReadModel(folder / HISTORY)
    history = HistoryWriter(readmodel, Feed())

    stamp = 0.0

    def named(parts: Iterable[Part]) -> Iterable[Part]:
        nonlocal stamp
        for part in parts:
            if isinstance(part, Record):
                stamp = max(stamp, part.at)
            if isinstance(part, Head):
                history.open(part.name.log)
                history.resume(part.first - 1)
            yield part

    def watch(given: Input, seq: int, effects: Sequence[Effect]) -> None:
        history.collect(seq, effects, given, stamp)
        if seq % WRITE_EVERY == 0:
            history.flush()

    try:
        done = replay(named(parts), watch, quarantined=quarantined)
        history.flush()
    finally:
        readmodel.close()
    Snapshots(folder / STATE).write(done.state, done.last, done.name.log, replayed=True)
    return done
