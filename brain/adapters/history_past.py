"""What the read model is asked about past times."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from brain import renamed

# When an incident was over, from its body: as the index of the read model has it, word for word.
CLOSED_AT = "json_extract(CAST(body AS TEXT), '$.closed_at')"
# The notes that set and end operators' holds, as that index has them.
HOLD_KINDS = ("operator.hold", "operator.release", "hold.ended")
HOLDS = f"kind IN {HOLD_KINDS}"
_MOST_HOLDS = 10_000  # of their notes are looked at, the newest


class PastQueries:
    """The questions, over the connection of HistoryQueries."""

    _db: sqlite3.Connection

    def _each(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        raise NotImplementedError

    def oldest(self) -> float | None:
        """Returns the time of the oldest note, in seconds since 1970; None: there is none."""
        row = self._db.execute("SELECT at FROM notes ORDER BY n LIMIT 1").fetchone()
        return float(row[0]) if row else None

    def incidents_at(self, at: float, limit: int) -> list[dict[str, Any]]:
        """Returns the incidents that were open at a time (seconds since 1970), as they are now, the newest first."""
        rows = self._db.execute(
            f"SELECT opened_at, body FROM incidents WHERE opened_at <= ? AND {CLOSED_AT} > ? "  # noqa: S608 - constants
            f"UNION ALL SELECT opened_at, body FROM incidents WHERE opened_at <= ? AND {CLOSED_AT} = 0 "
            "ORDER BY opened_at DESC LIMIT ?",
            (at, at, at, limit),
        )
        return [renamed.rename_in_incident(orjson.loads(body)) for _, body in self._each(rows)]

    def last_kind(self, incident: str, at: float, kinds: Sequence[str]) -> str:
        """Returns the kind of the newest note of an incident up to a time that is one of these; empty: there is none."""
        marks = ",".join("?" * len(kinds))
        row = self._db.execute(
            f"SELECT kind FROM notes WHERE incident = ? AND at <= ? AND kind IN ({marks}) ORDER BY n DESC LIMIT 1",  # noqa: S608 - constants
            (incident, at, *kinds),
        ).fetchone()
        return str(row[0]) if row else ""

    def holds_at(self, at: float) -> list[str]:
        """Returns the scopes on which operators' holds stood at a time: as far back as their notes reach."""
        rows = self._db.execute(
            f"SELECT kind, scope, text FROM (SELECT n, at, kind, scope, text FROM notes WHERE {HOLDS} "  # noqa: S608 - constants
            "ORDER BY n DESC LIMIT ?) WHERE at <= ? ORDER BY n",
            (_MOST_HOLDS, at),
        )
        standing: dict[str, str] = {}
        for kind, scope, text in self._each(rows):
            hold = text.rpartition("(")[2]  # its id ends each of these sentences
            if kind == "operator.hold":
                standing[hold] = scope
            else:
                standing.pop(hold, None)
        return list(standing.values())
