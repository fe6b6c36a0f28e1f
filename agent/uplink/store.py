"""The tables of the spool: one SQLite file, or the same tables in memory when the disk fails.

WAL with synchronous=NORMAL: a commit is one write into the page cache (about 30 µs), so SIGKILL loses nothing; only WAL
checkpoints fsync. A power cut may lose the last transactions, but never breaks the file (with OFF it could, and the
kernels of GPU nodes do panic). The spool changes its id with every boot, so that no number is assigned twice then. Every
method may raise sqlite3.Error.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

MEMORY = ":memory:"
SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS events(
    seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused, even when all rows are gone
    spool TEXT NOT NULL,     -- first part of the event's number
    rank INTEGER NOT NULL,   -- 0 info .. 4: the mildest are dropped first
    boot TEXT NOT NULL,      -- boot id that mono_s belongs to
    mono_s REAL NOT NULL,    -- monotonic clock when the fact occurred
    age_s REAL NOT NULL,     -- how old it was when it was spooled
    kind TEXT NOT NULL,
    severity TEXT NOT NULL,
    body BLOB NOT NULL       -- JSON of the event
);
CREATE INDEX IF NOT EXISTS mildest ON events(rank, seq);
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One spooled event."""

    seq: int
    spool: str
    rank: int
    boot: str
    mono_s: float
    age_s: float
    kind: str
    severity: str
    body: bytes

    def is_whole(self) -> bool:
        """Is it an event still? What the disk gives back may be something else."""
        try:
            fields = orjson.loads(self.body)
        except (orjson.JSONDecodeError, TypeError):
            return False
        texts = (self.spool, self.boot, self.kind, self.severity)
        return (
            isinstance(fields, dict)
            and all(isinstance(text, str) for text in texts)
            and isinstance(self.mono_s, float)
            and isinstance(self.age_s, float)
        )


_COLUMNS = ", ".join(Row.__slots__)


class Store:
    """Rows in order of `seq`, and a few texts by key. Each method is one transaction, or part of `transaction()`."""

    def __init__(self, path: str) -> None:
        """Opens or creates the file; sqlite3.Error when it is not usable (the caller moves it away)."""
        self._db = sqlite3.connect(path, isolation_level=None, cached_statements=32, timeout=1.0)
        try:
            self._open()
        except BaseException:
            self._db.close()
            raise

    def _open(self) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("PRAGMA cache_size=-512")  # KiB: the agent's memory is a promise
        self._db.execute("PRAGMA journal_size_limit=4194304")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version not in (0, SCHEMA_VERSION):
            raise sqlite3.DatabaseError(f"schema version {version}, this agent reads {SCHEMA_VERSION}")
        self._db.executescript(_SCHEMA)
        self._db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        (verdict,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(str(verdict))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            # On some errors (disk full) SQLite has rolled back by itself.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def add(self, row: Row) -> None:
        """Adds a row under its own number."""
        values = tuple(getattr(row, name) for name in Row.__slots__)
        self._db.execute(f"INSERT INTO events({_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?)", values)

    def after(self, seq: int, limit: int) -> list[Row]:
        """Up to `limit` rows above `seq`, in order."""
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM events WHERE seq > ? ORDER BY seq LIMIT ?",  # noqa: S608 - constants
            (seq, limit),
        )
        return [Row(**dict(zip(Row.__slots__, values, strict=True))) for values in rows]

    def remove_through(self, seq: int) -> tuple[int, int]:
        """Removes all rows up to and including `seq`; (rows, bytes of their bodies)."""
        count, size = self._db.execute(
            "SELECT count(*), coalesce(sum(length(body)), 0) FROM events WHERE seq <= ?", (seq,)
        ).fetchone()
        self._db.execute("DELETE FROM events WHERE seq <= ?", (seq,))
        return int(count), int(size)

    def remove(self, seq: int) -> None:
        """Removes one row."""
        self._db.execute("DELETE FROM events WHERE seq = ?", (seq,))

    def mildest(self) -> tuple[int, int] | None:
        """(seq, bytes) of the oldest row of the lowest rank."""
        found: tuple[int, int] | None = self._db.execute(
            "SELECT seq, length(body) FROM events ORDER BY rank, seq LIMIT 1"
        ).fetchone()
        return found

    def size(self) -> tuple[int, int]:
        """(rows, bytes of their bodies)."""
        count, size = self._db.execute(
            "SELECT count(*), coalesce(sum(length(body)), 0) FROM events"
        ).fetchone()
        return int(count), int(size)

    def last_seq(self) -> int:
        """The highest number that was ever assigned; 0 for a new file."""
        found = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
        return int(found[0]) if found else 0

    def get(self, key: str) -> str:
        """A kept text; empty when there is none."""
        found = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(found[0]) if found else ""

    def texts(self, prefix: str = "") -> dict[str, str]:
        """All kept texts whose keys have this prefix."""
        rows = self._db.execute(
            "SELECT key, value FROM meta WHERE substr(key, 1, ?) = ?", (len(prefix), prefix)
        )
        return {str(key): str(value) for key, value in rows}

    def set(self, key: str, value: str) -> None:
        """Keeps a text; an empty one is removed."""
        if value:
            self._db.execute("INSERT OR REPLACE INTO meta(key, value) VALUES(?, ?)", (key, value))
        else:
            self._db.execute("DELETE FROM meta WHERE key = ?", (key,))

    def close(self) -> None:
        """Closes the file; never fails."""
        with contextlib.suppress(sqlite3.Error):
            self._db.close()


def move_away(path: Path) -> Path:
    """Renames a broken file (and its WAL) to make room for a fresh one; only the latest such file is kept."""
    aside = path.with_name(f"{path.name}.broken")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).replace(aside.with_name(aside.name + suffix))
    return aside
