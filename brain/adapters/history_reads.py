"""How rows of the read model are read; what is asked of it stands in history_queries.py, history_past.py and history_ids.py."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

NOTE = ("id", "seq", "at", "kind", "text", "incident", "run", "scope", "caused_by", "data")


class HistoryReads:
    """One connection to the read model."""

    def __init__(self, db: sqlite3.Connection, pause: Callable[[], None]) -> None:
        """`pause` is called between rows."""
        self._db = db
        self._pause = pause

    def _notes(self, tail: str, args: tuple[Any, ...]) -> list[dict[str, Any]]:
        rows = self._db.execute(f"SELECT {', '.join(NOTE)} FROM notes {tail}", args)  # noqa: S608 - constants
        return [
            dict(zip(NOTE, row, strict=True)) | {"data": orjson.loads(row[-1])} for row in self._each(rows)
        ]

    def _each(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        for row in rows:
            yield row
            self._pause()
