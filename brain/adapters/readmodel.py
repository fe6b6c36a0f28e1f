"""The read model of the API: notes, incidents and runs in one SQLite file, kept longer than the engine remembers them.

It is derived data: written from the engine's effects in the order of the log, once for each position. If the file is
lost, reading the log from its beginning restores it.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
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


class ReadModel(HistoryQueries):
    """One file, written by the live loop in one transaction per batch of the log. The API reads it by a `reader`."""

    def __init__(self, path: Path) -> None:
        """ConfigError: the file cannot be opened, though it is not damaged: e.g. there is no space."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._readers: list[HistoryQueries] = []
        self._written = 0
        self._shown = 0
        super().__init__(sqlite3.connect(":memory:"), _no_pause)
        try:
            self._open()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise ConfigError(f"{path}: {error}: make room, or see who else uses it") from error
            self.set_aside(error)

    def set_aside(self, error: Exception | str) -> None:
        """The file is damaged: it is kept as `.damaged`, and an empty one is in its place, for the readers too."""
        _log.error(
            "%s is damaged (%s): set aside as .damaged, and made again from the log", self._path, error
        )
        self._db.close()
        for suffix in ("", "-wal", "-shm"):
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
        with self._db:
            self._db.execute("BEGIN")
            for _, at, event in told:  # first: what was tried is kept with the model of the card
                if event.kind.startswith(parts.INVENTORY):
                    parts.put(self._db, at, event)
                outcomes.heard(self._db, at, event)
            self._put(notes, incidents, runs)
            self._set("seq", str(seq))

    def note(self, note: Note) -> None:
        """Writes a note of the brain itself, which no input caused."""
        with self._db:
            self._db.execute("BEGIN")
            self._put([(0, note)], (), ())

    def reconcile(self, incidents: Sequence[Incident], runs: Sequence[Run], why: str, now: float) -> None:
        """After a replay by other code: writes what the engine has, and closes the open incidents that it does not have."""
        known = {incident.id for incident in incidents}
        with self._db:
            self._db.execute("BEGIN")
            for row in self.incidents(open_only=True, limit=100_000):
                if row["id"] not in known:
                    row |= {"state": IncidentState.CLOSED.value, "closed_at": now, "closed_why": why}
                    self._db.execute(
                        "UPDATE incidents SET state = ?, body = ? WHERE id = ?",
                        (row["state"], orjson.dumps(row), row["id"]),
                    )
            self._put((), incidents, runs)

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

    def _put(
        self, notes: Iterable[tuple[int, Note]], incidents: Iterable[Incident], runs: Iterable[Run]
    ) -> None:
        noted = tuple(notes)
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
            for seq, n in noted
        ]
        if rows:
            self._db.executemany(
                f"INSERT OR IGNORE INTO notes({', '.join(NOTE)}) VALUES(?,?,?,?,?,?,?,?,?,?)",
                rows,
            )
            self._prune(len(rows))
        changed = tuple(incidents)
        shown = [(one.id, one.state.value, one.opened_at, orjson.dumps(one)) for one in changed]
        self._db.executemany("INSERT OR REPLACE INTO incidents VALUES(?,?,?,?)", shown)
        history_ids.put(self._db, changed)
        self._shown += len(shown)
        self._forget()
        bodies = [(one, orjson.dumps(one, default=_plain)) for one in runs]
        self._db.executemany(
            "INSERT OR REPLACE INTO runs VALUES(?,?,?,?)",
            [(one.id, one.incident, one.started_at, body) for one, body in bodies],
        )
        over = (orjson.loads(body) for one, body in bodies if one.state in outcomes.OVER)
        outcomes.put(self._db, (note for _, note in noted), over)

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


def _no_pause() -> None:
    return


def _plain(value: Any) -> Any:
    """Converts mappings that are not dicts, for orjson."""
    if hasattr(value, "items"):
        return dict(value)
    raise TypeError(f"not JSON: {type(value).__name__}")
