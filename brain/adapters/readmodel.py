"""The read model of the API: notes, incidents and runs in one SQLite file, kept longer than the engine remembers them.

It is derived data: written from the engine's effects in the order of the log, once for each position. If the file is
lost, reading the log from its beginning restores it.
"""

import logging
import sqlite3
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from agent.contract.errors import ConfigError
from agent.contract.messages import Event
from brain.adapters import history_ids, outcomes, parts
from brain.adapters.files import move_away
from brain.adapters.history_past import CLOSED_AT, NODE, SAID
from brain.adapters.history_queries import OVER, HistoryQueries, is_damage
from brain.adapters.history_reads import NOTE
from brain.core.effects import Note
from brain.core.state import Incident, IncidentState, Run

_log = logging.getLogger(__name__)

SCHEMA_VERSION = 1
KEEP_NOTES = 1_000_000  # beyond that the oldest are deleted
# Incidents that are over, with their runs; beyond that the oldest go of those nodes that have most.
KEEP_OVER = 50_000
_CHECK_EVERY = 1000  # incidents that are written
_BESIDE = ("", "-wal", "-shm")  # what SQLite's files are called

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS notes(
    n INTEGER PRIMARY KEY,   -- order of writing
    id TEXT NOT NULL UNIQUE,
    seq INTEGER NOT NULL,    -- position on the log of the input that caused it; 0: the brain itself wrote it
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    incident TEXT NOT NULL,
    run TEXT NOT NULL,
    scope TEXT NOT NULL,
    caused_by TEXT NOT NULL,
    data BLOB NOT NULL       -- JSON
);
CREATE INDEX IF NOT EXISTS notes_incident ON notes(incident) WHERE incident != '';
CREATE INDEX IF NOT EXISTS notes_cause ON notes(caused_by);
CREATE INDEX IF NOT EXISTS notes_said ON notes(n) WHERE {SAID};
CREATE TABLE IF NOT EXISTS incidents(
    id TEXT PRIMARY KEY, state TEXT NOT NULL, opened_at REAL NOT NULL, body BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS incidents_opened ON incidents(opened_at);
CREATE INDEX IF NOT EXISTS incidents_closed ON incidents({CLOSED_AT}, opened_at);
CREATE TABLE IF NOT EXISTS runs(
    id TEXT PRIMARY KEY, incident TEXT NOT NULL, started_at REAL NOT NULL, body BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS runs_started ON runs(started_at);
CREATE INDEX IF NOT EXISTS runs_incident ON runs(incident);
CREATE INDEX IF NOT EXISTS incidents_node ON incidents({NODE}, opened_at);
CREATE INDEX IF NOT EXISTS runs_node ON runs({NODE}, started_at);
{parts.SCHEMA}
{outcomes.SCHEMA}
{history_ids.SCHEMA}
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryBatch:
    """What is written in one transaction, as bytes: the engine's objects change while a thread writes."""

    # Up to this position of the log the read model is complete then; None: it stays as it is
    seq: int | None = None
    # (position, note); 0: the brain itself wrote it
    notes: Sequence[tuple[int, Note]] = ()
    # (id, state, opened at, body)
    incidents: Sequence[tuple[str, str, float, bytes]] = ()
    # (event, incident) of which it is evidence
    evidence: Sequence[tuple[str, str]] = ()
    # (id, incident, started at, body), and is it over?
    runs: Sequence[tuple[tuple[str, str, float, bytes], bool]] = ()
    # (position, when, event)
    told: Sequence[tuple[int, float, Event]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """All that the engine has, after a replay by other code."""

    shown: HistoryBatch = field(repr=False)
    why: str
    now: float


def batch(
    seq: int | None,
    notes: Iterable[tuple[int, Note]] = (),
    incidents: Iterable[Incident] = (),
    runs: Iterable[Run] = (),
    told: Iterable[tuple[int, float, Event]] = (),
) -> HistoryBatch:
    """Makes one, of the state as it is at this moment."""
    changed = tuple(incidents)
    return HistoryBatch(
        seq=seq,
        notes=tuple(notes),
        incidents=[(one.id, one.state.value, one.opened_at, orjson.dumps(one)) for one in changed],
        evidence=history_ids.pairs(changed),
        runs=[
            (
                (one.id, one.incident, one.started_at, orjson.dumps(one, default=_plain)),
                one.state in outcomes.OVER,
            )
            for one in runs
        ],
        told=tuple(told),
    )


class ReadModel(HistoryQueries):
    """One file, written by one thread at a time in one transaction per batch of the log. The API reads it by a `reader`."""

    def __init__(self, path: Path) -> None:
        """ConfigError: the file cannot be opened, though it is not damaged: e.g. there is no space."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._readers: list[HistoryQueries] = []
        self._written = 0
        self._shown = 0
        super().__init__(sqlite3.connect(":memory:"), no_pause)
        self._put_away_what_is_no_file()
        try:
            self._open()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise ConfigError(f"{path}: {error}: {self._todo()}") from error
            self.set_aside(error)

    def _put_away_what_is_no_file(self) -> None:
        """A folder or a pipe in the place of one of its files, which SQLite could only not open, as on a full disk."""
        for suffix in _BESIDE:
            part = self._path.with_name(self._path.name + suffix)
            with suppress(FileNotFoundError):
                mode = part.lstat().st_mode
                if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
                    _log.error("%s is no file: set aside as .damaged, and made again from the log", part)
                    move_away(part, "damaged")

    def _todo(self) -> str:
        """What a person must do where it cannot be opened, and is not damaged."""
        if self._path.is_symlink() and not self._path.exists():
            leads = self._path.readlink()
            return f"it is a link to {leads}, which is not there: mount its disk, or remove the link (a new history is made then)"
        return "make room, or see who else uses it"

    def reopen(self) -> None:
        """Opens the file anew: the one that is open may be of a file system that has gone. sqlite3.Error: not now."""
        self._open()
        for reader in self._readers:
            reader.use(self._read_only())

    def set_aside(self, error: Exception | str) -> None:
        """The file is damaged: it is kept as `.damaged`, and an empty one is in its place, for the readers too."""
        _log.error(
            "%s is damaged (%s): set aside as .damaged, and made again from the log", self._path, error
        )
        self._db.close()
        for suffix in _BESIDE:
            if (part := self._path.with_name(self._path.name + suffix)).exists():
                move_away(part, "damaged")
        self._open()
        for reader in self._readers:
            reader.use(self._read_only())

    @property
    def met_damage(self) -> str:
        """What a question to it, or to a reader, has met; empty: nothing."""
        return next((one.damage for one in (self, *self._readers) if one.damage), "")

    def _open(self) -> None:
        self._db.close()
        self._db = sqlite3.connect(self._path, isolation_level=None, timeout=5.0, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self.damage = ""
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version not in (0, SCHEMA_VERSION):
            raise sqlite3.DatabaseError(f"schema version {version}")
        self._db.executescript(_SCHEMA)
        if not version:
            self._db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        if not self._meta("evidence"):
            with self._db:
                self._db.execute("BEGIN")
                history_ids.fill(self._db)
                self._set("evidence", "kept")
        if not self._meta("outcomes"):
            with self._db:
                self._db.execute("BEGIN")
                outcomes.fill(self._db)
                self._set("outcomes", "kept")

    def position(self, identity: str) -> int:
        """Returns the last position of this log that has been written; 0 for another log."""
        return int(self._meta("seq") or 0) if self._meta("log") == identity else 0

    def is_of_another(self, identity: str) -> bool:
        """Was it written from another log than this one?"""
        return self._meta("log") not in (None, "", identity)

    def begin(self, identity: str) -> None:
        """Sets the log that is written from now on. When it is another one, the history stays but the position is reset."""
        if self._meta("log") != identity:
            with self._db:
                self._db.execute("BEGIN")
                self._set("log", identity)
                self._set("seq", "0")

    def clear(self) -> None:
        """Deletes everything, so that it can be restored from the log."""
        for table in ("notes", "incidents", "runs", "parts", *outcomes.TABLES, "evidence", "meta"):
            self._db.execute(f"DELETE FROM {table}")  # noqa: S608 - constants

    def write(
        self,
        seq: int,
        notes: Iterable[tuple[int, Note]] = (),
        incidents: Iterable[Incident] = (),
        runs: Iterable[Run] = (),
        told: Iterable[tuple[int, float, Event]] = (),
    ) -> None:
        """Writes what inputs up to `seq` caused: (position, note) pairs, the newest version of what changed, and what nodes told
        of their parts, or after they had started anew: (position, when, event).
        """
        self.put(batch(seq, notes, incidents, runs, told))

    def put(self, given: HistoryBatch, after: Reconciled | None = None) -> None:
        """Writes one batch, and what `reconciled` made; all of it or nothing."""
        with self._db:
            self._db.execute("BEGIN")
            for _, at, event in given.told:  # first: what was tried is kept with the model of the card
                if event.kind.startswith(parts.INVENTORY):
                    parts.put(self._db, at, event)
                outcomes.heard(self._db, at, event)
            self._put(given)
            if given.seq is not None:
                self._set("seq", str(given.seq))
            if after is not None:
                self._close_others(after)
                self._put(after.shown)

    def note(self, note: Note) -> None:
        """Writes a note of the brain itself, which no input caused."""
        self.put(batch(None, [(0, note)]))

    def reconcile(self, incidents: Sequence[Incident], runs: Sequence[Run], why: str, now: float) -> None:
        """After a replay by other code: writes what the engine has, and closes the open incidents that it does not have."""
        self.put(HistoryBatch(), Reconciled(shown=batch(None, (), incidents, runs), why=why, now=now))

    def _close_others(self, found: Reconciled) -> None:
        known = {id_ for id_, *_ in found.shown.incidents}
        for row in self.incidents(open_only=True, limit=100_000):
            if row["id"] not in known:
                row |= {"state": IncidentState.CLOSED.value, "closed_at": found.now, "closed_why": found.why}
                self._db.execute(
                    "UPDATE incidents SET state = ?, body = ? WHERE id = ?",
                    (row["state"], orjson.dumps(row), row["id"]),
                )

    def reader(self, pause: Callable[[], None]) -> HistoryQueries:
        """Returns a reader with a connection of its own, which cannot write, for one thread beside the event loop. `pause`
        is called between the rows that it reads.
        """
        reader = HistoryQueries(self._read_only(), pause)
        self._readers.append(reader)
        return reader

    def _read_only(self) -> sqlite3.Connection:
        uri = f"{self._path.absolute().as_uri()}?mode=ro"
        return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=5.0, check_same_thread=False)

    def _put(self, given: HistoryBatch) -> None:
        rows = [
            (
                n.id,
                seq,
                n.at,
                n.kind,
                n.text,
                n.incident,
                n.run,
                n.scope,
                n.caused_by,
                orjson.dumps(dict(n.data)),
            )
            for seq, n in given.notes
        ]
        if rows:
            self._db.executemany(
                f"INSERT OR IGNORE INTO notes({', '.join(NOTE)}) VALUES(?,?,?,?,?,?,?,?,?,?)",
                rows,
            )
            self._prune(len(rows))
        self._db.executemany("INSERT OR REPLACE INTO incidents VALUES(?,?,?,?)", given.incidents)
        history_ids.put(self._db, given.evidence)
        self._shown += len(given.incidents)
        self._forget()
        self._db.executemany("INSERT OR REPLACE INTO runs VALUES(?,?,?,?)", [row for row, _ in given.runs])
        over = (orjson.loads(row[-1]) for row, is_over in given.runs if is_over)
        outcomes.put(self._db, (note for _, note in given.notes), over)

    def _prune(self, added: int) -> None:
        self._written += added
        if self._written >= KEEP_NOTES // 100:
            self._written = 0
            self._db.execute("DELETE FROM notes WHERE n <= (SELECT max(n) FROM notes) - ?", (KEEP_NOTES,))

    def _forget(self) -> None:
        """Keeps incidents that are over within their bound: who makes many loses its own."""
        if self._shown < _CHECK_EVERY:
            return
        self._shown = 0
        over = f"FROM incidents WHERE state IN {OVER}"
        if self._db.execute(f"SELECT count(*) {over}").fetchone()[0] <= KEEP_OVER:
            return
        gone = self._db.execute(
            "SELECT id FROM (SELECT id, opened_at, row_number() OVER"  # noqa: S608 - constants
            f" (PARTITION BY json_extract(CAST(body AS TEXT), '$.node') ORDER BY opened_at DESC, id) AS place {over})"
            " ORDER BY place, opened_at DESC, id LIMIT -1 OFFSET ?",
            (KEEP_OVER,),
        ).fetchall()
        self._db.executemany("DELETE FROM runs WHERE incident = ?", gone)
        history_ids.forget(self._db, gone)
        self._db.executemany("DELETE FROM incidents WHERE id = ?", gone)

    def _meta(self, key: str) -> str:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def _set(self, key: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, value))


def no_pause() -> None:
    """For a reader that need not rest: its questions are short."""
    return


def _plain(value: Any) -> Any:
    """Converts mappings that are not dicts, for orjson."""
    if hasattr(value, "items"):
        return dict(value)
    raise TypeError(f"not JSON: {type(value).__name__}")
