"""What the read model is asked about an id that is no incident's: a note's, a hold's, an event's, an input's.

Of which incidents an event is evidence stands in a table beside them: their bodies have no index for it.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from brain.adapters.history_past import SAID
from brain.adapters.history_reads import HistoryReads
from brain.core.state import Incident

_MOST = 1000
_MOST_SAID = 10_000  # of the notes on holds and modes are looked at, the newest
_FACTS = "json_each(CAST(body AS TEXT), '$.evidence') AS fact"
SCHEMA = """
CREATE TABLE IF NOT EXISTS evidence(
    event TEXT NOT NULL, incident TEXT NOT NULL, PRIMARY KEY(event, incident)
) WITHOUT ROWID;
"""


def pairs(incidents: Iterable[Incident]) -> list[tuple[str, str]]:
    """Returns (event, incident) of which it is evidence."""
    return [(fact.id, one.id) for one in incidents for fact in one.evidence]


def put(db: sqlite3.Connection, evidence: Iterable[tuple[str, str]]) -> None:
    """Writes what `pairs` made."""
    db.executemany("INSERT OR IGNORE INTO evidence VALUES(?,?)", evidence)


def fill(db: sqlite3.Connection) -> None:
    """Writes it of all incidents, in a file of a version that did not keep it."""
    db.execute(
        f"INSERT OR IGNORE INTO evidence SELECT json_extract(fact.value, '$.id'), incidents.id FROM incidents, {_FACTS}"  # noqa: S608 - constants
    )


def forget(db: sqlite3.Connection, gone: Sequence[tuple[str]]) -> None:
    """Forgets it of incidents that are about to be deleted: (id,) each."""
    db.executemany(
        "DELETE FROM evidence WHERE incident = ?1 AND event IN (SELECT json_extract(fact.value, '$.id') "  # noqa: S608 - constants
        f"FROM incidents, {_FACTS} WHERE incidents.id = ?1)",
        gone,
    )


class IdQueries(HistoryReads):
    """The questions."""

    def one_note(self, id_: str) -> dict[str, Any] | None:
        """Returns one note."""
        return next(iter(self._notes("WHERE id = ?", (id_,))), None)

    def notes_of_hold(self, id_: str) -> list[dict[str, Any]]:
        """Returns the notes by which a hold was set and has ended: as far back as the newest notes on holds and modes reach."""
        return self._notes(
            f"WHERE n IN (SELECT n FROM (SELECT n, text FROM notes WHERE {SAID} ORDER BY n DESC LIMIT ?) "  # noqa: S608 - constants
            "WHERE substr(text, ?) = ?) ORDER BY n",
            (_MOST_SAID, -len(id_) - 2, f"({id_})"),  # its id ends each of these sentences
        )

    def incidents_of_event(self, id_: str) -> list[str]:
        """Returns the ids of the incidents of which an event is evidence."""
        rows = self._db.execute(
            "SELECT incident FROM evidence WHERE event = ? ORDER BY incident LIMIT ?", (id_, _MOST)
        )
        return [found for (found,) in rows]
