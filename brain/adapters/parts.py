"""What nodes told of what they are made of, kept beside the history: each part as it was, from when to when it was told so.

The engine forgets it; here stands where a card with a serial number has been. A row is what a node said: of itself only.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

from agent.contract.messages import Event

INVENTORY = "node.inventory"  # how the kinds of these events begin
KEPT_OF_NODE = 300  # rows; a node that tells more loses its oldest
_MOST_PLACES = 50
_OF_ONE_NODE = 5  # of them
_FIELDS = ("node", "component", "serial", "since", "seen", "data")
SCHEMA = """
CREATE TABLE IF NOT EXISTS parts(
    n INTEGER PRIMARY KEY,
    node TEXT NOT NULL,
    component TEXT NOT NULL,
    serial TEXT NOT NULL,    -- of a GPU its serial number, of a network card its GUID; empty: not told
    since REAL NOT NULL,     -- when it was first told so, by the log's clock
    seen REAL NOT NULL,      -- and last
    data BLOB NOT NULL       -- JSON: the fields of the event
);
CREATE INDEX IF NOT EXISTS parts_node ON parts(node, component);
CREATE INDEX IF NOT EXISTS parts_serial ON parts(serial) WHERE serial != '';
"""
Each = Callable[[Iterable[tuple[Any, ...]]], Iterator[tuple[Any, ...]]]


def put(db: sqlite3.Connection, at: float, event: Event) -> None:
    """Writes what a node told of a part at a time (seconds since 1970)."""
    told = {name: value for name, value in event.data.items() if name != "changed"}
    data = orjson.dumps(told, option=orjson.OPT_SORT_KEYS)
    newest = db.execute(
        "SELECT n, data FROM parts WHERE node = ? AND component = ? ORDER BY n DESC LIMIT 1",
        (event.node, event.component),
    ).fetchone()
    if newest is not None and newest[1] == data:
        db.execute("UPDATE parts SET seen = max(seen, ?) WHERE n = ?", (at, newest[0]))
        return
    serial = str(told.get("serial") or told.get("guid") or "")
    db.execute(
        "INSERT INTO parts(node, component, serial, since, seen, data) VALUES(?,?,?,?,?,?)",
        (event.node, event.component, serial, at, at, data),
    )
    db.execute(
        "DELETE FROM parts WHERE n IN (SELECT n FROM parts WHERE node = ? ORDER BY n DESC LIMIT -1 OFFSET ?)",
        (event.node, KEPT_OF_NODE),
    )


def of_node(each: Each, db: sqlite3.Connection, node: str) -> list[dict[str, Any]]:
    """Returns the rows of a node, the newest first."""
    rows = db.execute(
        f"SELECT {', '.join(_FIELDS)} FROM parts WHERE node = ? ORDER BY n DESC LIMIT ?",  # noqa: S608 - constants
        (node, KEPT_OF_NODE),
    )
    return [_row(row) for row in each(rows)]


def of_serial(each: Each, db: sqlite3.Connection, serial: str) -> list[dict[str, Any]]:
    """Returns the rows of a serial number, the newest first; bounded, and of each node only the newest few: one that tells
    another's serial number again and again hides nobody.
    """
    fields = ", ".join(_FIELDS)
    rows = db.execute(
        f"SELECT {fields} FROM (SELECT {fields}, n, row_number() OVER (PARTITION BY node ORDER BY n DESC) AS nth "  # noqa: S608 - constants
        "FROM parts WHERE serial = ? AND serial != '') WHERE nth <= ? ORDER BY n DESC LIMIT ?",
        (serial, _OF_ONE_NODE, _MOST_PLACES),
    )
    return [_row(row) for row in each(rows)]


def _row(row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(_FIELDS, row, strict=True)) | {"data": orjson.loads(row[-1])}
