"""What the read model is asked: notes, incidents and runs, as the engine's fields."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from brain import renamed
from brain.adapters.history_ids import IdQueries
from brain.adapters.history_past import OF_INCIDENT, PastQueries
from brain.adapters.history_reads import NOTE
from brain.core.state import IncidentState

OVER = (IncidentState.CLOSED.value, IncidentState.EXPLAINED.value)
FAIR = 20  # open incidents of one node that are listed before any others
_OPEN = f"""
SELECT opened_at, id, body FROM (
    SELECT opened_at, id, body, row_number() OVER (
        PARTITION BY coalesce(nullif(json_extract(CAST(body AS TEXT), '$.node'), ''), id) ORDER BY opened_at DESC, id
    ) AS nth FROM incidents WHERE state NOT IN {OVER}
) ORDER BY nth > ?, opened_at DESC, id LIMIT ?
"""  # noqa: S608 - constants
_PAST = f"SELECT opened_at, id, body FROM incidents WHERE state IN {OVER} ORDER BY opened_at DESC, id LIMIT ?"  # noqa: S608 - constants
MOST_AT_ONCE = 10_000  # notes that one input causes
_BEGINS = "id >= ? AND id < ?"  # by the index: a search by substr() reads every incident
_LAST = "\U0010ffff"  # behind whatever an id may go on with


# What SQLite says of a file that is not what was written; all else (no space, locked, no descriptor) passes.
_DAMAGE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA)
OWN = (ValueError, KeyError, TypeError, AttributeError)  # of rows whose contents are not what was written


def is_damage(error: Exception) -> bool:
    """Does it say that the file is damaged? Our questions are right: they are tested."""
    if not isinstance(error, sqlite3.DatabaseError):
        return isinstance(error, OWN)
    code = getattr(error, "sqlite_errorcode", None)
    if (
        code is None
    ):  # of another version of ours, or the module's own words: "Could not decode to UTF-8 column ..."
        return not isinstance(error, sqlite3.OperationalError) or "decode" in str(error)
    return code & 0xFF in _DAMAGE


class _Wanted:
    """The conditions of a question; values never stand in its text."""

    __slots__ = ("_texts", "args")

    def __init__(self) -> None:
        self._texts: list[str] = []
        self.args: list[str | float] = []

    def add(self, text: str, *args: str | float) -> None:
        """One condition."""
        self._texts.append(text)
        self.args += args

    def fits(self, key: str, value: str, how: str = "GLOB") -> None:
        """A key of the body must fit; empty: whatever it is."""
        if value:
            self.add(f"json_extract(CAST(body AS TEXT), '$.{key}') {how} ?", value)

    @property
    def sql(self) -> str:
        """All of them."""
        return " AND ".join(self._texts)


class HistoryQueries(PastQueries, IdQueries):
    """The questions, over one connection."""

    def __init__(self, db: sqlite3.Connection, pause: Callable[[], None]) -> None:
        """`pause` is called between rows."""
        super().__init__(db, pause)
        self.damage = ""  # what a question has met; the writer sets the file aside (brain/leader/history.py)

    def incidents(self, *, open_only: bool, limit: int = 1000) -> list[dict[str, Any]]:
        """Returns incidents, newest first, as the engine's fields.

        Where there are more than `limit`: the open ones before those that are over, and of the open ones at most FAIR of
        each node before any others. So what one node says hides no other node's incident.
        """
        rows = self._db.execute(_OPEN, (FAIR, limit)).fetchall()
        if not open_only:
            rows += self._db.execute(_PAST, (limit - len(rows),)).fetchall()
        rows.sort(key=lambda row: (-row[0], row[1]))
        return [renamed.rename_in_incident(orjson.loads(body)) for _, _, body in self._each(rows)]

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
        wanted = _Wanted()
        wanted.add("opened_at >= ? AND opened_at < ?", since, until)
        if after is not None:
            wanted.add("(opened_at < ? OR (opened_at = ? AND id > ?))", after[0], *after)
        if not over:
            wanted.add(f"state NOT IN {OVER}")
        if state:
            named = (state, *(old for old, new in renamed.STATES.items() if new == state))
            wanted.add(f"state IN ({','.join('?' * len(named))})", *named)
        wanted.fits("severity", severity, "=")
        wanted.fits("cause", cause)
        wanted.fits("scope", scope)
        wanted.fits("node", node)
        rows = self._db.execute(
            f"SELECT body FROM incidents WHERE {wanted.sql} ORDER BY opened_at DESC, id LIMIT ?",  # noqa: S608 - constants
            (*wanted.args, limit),
        )
        return [renamed.rename_in_incident(orjson.loads(body)) for (body,) in self._each(rows)]

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
        wanted = _Wanted()
        wanted.add("started_at >= ? AND started_at < ?", since, until)
        if after is not None:
            wanted.add("(started_at < ? OR (started_at = ? AND id > ?))", after[0], *after)
        if incident:
            wanted.add("incident = ?", incident)
        if not over:
            wanted.add("NOT coalesce(json_extract(CAST(body AS TEXT), '$.ended_at'), 0)")
        wanted.fits("state", state, "=")
        wanted.fits("runbook.name", runbook)
        wanted.fits("node", node)
        rows = self._db.execute(
            f"SELECT body FROM runs WHERE {wanted.sql} ORDER BY started_at DESC, id LIMIT ?",  # noqa: S608 - constants
            (*wanted.args, limit),
        )
        return [orjson.loads(body) for (body,) in self._each(rows)]

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
        wanted = _Wanted()
        wanted.add("at >= ? AND at < ?", since, until)
        if before:
            row = self._db.execute("SELECT n FROM notes WHERE id = ?", (before,)).fetchone()
            if row is None:
                return None
            wanted.add("n < ?", row[0])
        if incident:
            wanted.add(OF_INCIDENT, incident)
        for key, value, how in (("kind", kind, "GLOB"), ("run", run, "="), ("scope", scope, "GLOB")):
            if value:
                wanted.add(f"{key} {how} ?", value)
        if who:  # each of two persons
            wanted.add(
                "' and ' || json_extract(CAST(data AS TEXT), '$.who') || ' and ' GLOB ?", f"* and {who} and *"
            )
        return self._notes(f"WHERE {wanted.sql} ORDER BY n DESC LIMIT ?", (*wanted.args, limit))

    def incident(self, id_: str) -> dict[str, Any] | None:
        """Returns one incident; `id_` may be a prefix of its id that no other incident has."""
        rows = self._db.execute(
            f"SELECT body FROM incidents WHERE {_BEGINS} ORDER BY id = ? DESC LIMIT 2",  # noqa: S608 - constants
            (id_, id_ + _LAST, id_),
        ).fetchall()
        if not rows or (len(rows) > 1 and orjson.loads(rows[0][0])["id"] != id_):
            return None
        return renamed.rename_in_incident(orjson.loads(rows[0][0]))

    def beginning(self, id_: str, limit: int = 20) -> list[str]:
        """Returns the ids of the newest incidents whose id begins so."""
        rows = self._db.execute(
            f"SELECT id FROM incidents WHERE {_BEGINS} ORDER BY opened_at DESC, id LIMIT ?",  # noqa: S608 - constants
            (id_, id_ + _LAST, limit),
        )
        return [found for (found,) in rows]

    def run(self, id_: str) -> dict[str, Any] | None:
        """Returns one run, as the engine's fields."""
        row = self._db.execute("SELECT body FROM runs WHERE id = ?", (id_,)).fetchone()
        return orjson.loads(row[0]) if row else None

    def runs_of(self, incident: str) -> list[dict[str, Any]]:
        """Returns the runs of an incident, in order."""
        rows = self._db.execute(
            "SELECT body FROM runs WHERE incident = ? ORDER BY started_at, id", (incident,)
        )
        return [orjson.loads(body) for (body,) in self._each(rows)]

    def notes_of(self, incident: str, limit: int = 2000) -> list[dict[str, Any]]:
        """Returns the notes of an incident, in order; of more than `limit` the newest ones, and a quarter from the beginning."""
        first = limit // 4
        newest = self._notes(f"WHERE {OF_INCIDENT} ORDER BY n DESC LIMIT ?", (incident, limit))[::-1]
        if len(newest) < limit:
            return newest
        oldest = self._notes(f"WHERE {OF_INCIDENT} ORDER BY n LIMIT ?", (incident, first))
        last = newest[first:]
        later = {note["id"] for note in last}
        return [note for note in oldest if note["id"] not in later] + last

    def notes_caused_by(self, input_id: str, limit: int = 1000) -> list[dict[str, Any]]:
        """Returns the first notes that one input caused, in order."""
        return self._notes("WHERE caused_by = ? ORDER BY n LIMIT ?", (input_id, limit))

    def symptom_notes(self, events: Sequence[str]) -> list[dict[str, Any]]:
        """Returns the notes on symptoms that any of these events caused."""
        marks = ",".join("?" * len(events))
        return self._notes(
            f"WHERE caused_by IN ({marks}) AND kind GLOB 'symptom.*' ORDER BY n", tuple(events)
        )

    def newest_notes(self, limit: int) -> list[dict[str, Any]]:
        """Returns the newest notes, the oldest of them first."""
        return self._notes("ORDER BY n DESC LIMIT ?", (limit,))[::-1]

    def log(self) -> str:
        """Returns the identity of the log that it was written from."""
        row = self._db.execute("SELECT value FROM meta WHERE key = 'log'").fetchone()
        return str(row[0]) if row else ""

    def newest(self) -> tuple[str, int, bool]:
        """Returns (id of the newest note, newest position on the log, did the brain itself write that note?); empty and 0: there
        is none.
        """
        row = self._db.execute("SELECT id, seq FROM notes ORDER BY n DESC LIMIT 1").fetchone()
        if row is None:
            return "", 0, False
        seq = self._db.execute("SELECT seq FROM notes WHERE seq > 0 ORDER BY n DESC LIMIT 1").fetchone()
        return str(row[0]), int(seq[0]) if seq else 0, not row[1]

    def place_of(self, note: str) -> int | None:
        """Returns the place of a note; None: it is not there."""
        row = self._db.execute("SELECT n FROM notes WHERE id = ?", (note,)).fetchone()
        return int(row[0]) if row else None

    def notes_at(self, seq: int, place: int) -> list[str]:
        """Returns the ids of the notes of one position on the log, up to a place."""
        rows = self._db.execute(
            "SELECT id FROM notes WHERE n BETWEEN ? AND ? AND seq = ?", (place - MOST_AT_ONCE, place, seq)
        )
        return [found for (found,) in rows]

    def place_before(self, seq: int) -> int | None:
        """Returns the place of the last note of before this position on the log; None: what came before is not there any more."""
        row = self._db.execute(
            "SELECT n FROM notes WHERE seq BETWEEN 1 AND ? ORDER BY n DESC LIMIT 1", (seq - 1,)
        ).fetchone()
        if row is not None:
            return int(row[0])
        first = self._db.execute("SELECT min(n) FROM notes").fetchone()[0]
        return 0 if first in (None, 1) else None

    def notes_after(self, place: int, limit: int) -> list[dict[str, Any]]:
        """Returns the first notes after a place, with theirs as `n`."""
        rows = self._db.execute(
            f"SELECT n, {', '.join(NOTE)} FROM notes WHERE n > ? ORDER BY n LIMIT ?",  # noqa: S608 - constants
            (place, limit),
        )
        return [
            dict(zip(("n", *NOTE), row, strict=True)) | {"data": orjson.loads(row[-1])}
            for row in self._each(rows)
        ]

    def failed(self, error: Exception) -> None:
        """A question has failed: is the file damaged?"""
        if is_damage(error):
            self.damage = str(error)

    def use(self, db: sqlite3.Connection) -> None:
        """Goes on with another file. A question under way ends with the old one."""
        self._db, self.damage = db, ""

    def close(self) -> None:
        """Closes the connection."""
        self._db.close()
