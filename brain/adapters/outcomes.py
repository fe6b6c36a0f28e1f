"""What was tried against which fault and what came of it, when faults came, and when nodes started anew: kept beside the history.

The rows are small, and stay when the incidents and runs that they come from have gone. Of each node the oldest go: so what one
node brings about takes nothing from the others (law 15).
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson

from agent.contract.commands import Outcome
from agent.contract.messages import Event
from brain.core.effects import Note
from brain.core.healing.results import RungResult
from brain.core.pack.topology import component_of, node_of
from brain.core.state import RunState

KEPT_OF_NODE = 500  # rows of each table
_TRIED = (
    "run", "rung", "incident", "cause", "scope", "node", "model", "runbook", "action", "result", "attempts", "at", "settled_at",
)  # fmt: skip
SCHEMA = """
CREATE TABLE IF NOT EXISTS tried(
    run TEXT NOT NULL,
    rung TEXT NOT NULL,
    incident TEXT NOT NULL,
    cause TEXT NOT NULL,
    scope TEXT NOT NULL,
    node TEXT NOT NULL,       -- a wider scope stands for itself
    model TEXT NOT NULL,      -- of the card, else of the node's first GPU; empty: not told
    runbook TEXT NOT NULL,
    action TEXT NOT NULL,
    result TEXT NOT NULL,     -- RungResult
    attempts INTEGER NOT NULL,
    at REAL NOT NULL,         -- when it was first begun
    settled_at REAL NOT NULL, -- when its verification ended, or its outcome came
    PRIMARY KEY(run, rung)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tried_at ON tried(at);
CREATE INDEX IF NOT EXISTS tried_node ON tried(node, at);
CREATE TABLE IF NOT EXISTS came(
    cause TEXT NOT NULL,
    scope TEXT NOT NULL,
    at REAL NOT NULL,
    node TEXT NOT NULL,       -- a wider scope stands for itself
    PRIMARY KEY(cause, scope, at)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS came_node ON came(node, at);
CREATE TABLE IF NOT EXISTS boots(
    node TEXT NOT NULL,
    boot TEXT NOT NULL,
    at REAL NOT NULL,         -- of the first fact with this boot id
    PRIMARY KEY(node, boot)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS boots_at ON boots(node, at);
"""
TABLES = ("tried", "came", "boots")
OVER = (RunState.SUCCEEDED, RunState.EXHAUSTED, RunState.CANCELLED)
_CAME = ("incident.opened", "incident.open")  # kinds of notes
Json = Mapping[str, Any]
Each = Callable[[Iterable[tuple[Any, ...]]], Iterator[tuple[Any, ...]]]


def put(db: sqlite3.Connection, notes: Iterable[Note], runs: Iterable[Json]) -> None:
    """Writes when faults came, and what came of the rungs of runs that are over: after their notes and incidents."""
    for note in notes:
        cause = str(note.data.get("cause", ""))
        if note.kind in _CAME and cause and note.scope:
            _fault(db, note.kind, note.id, note.incident, cause, note.scope, note.at)
    for run in runs:
        _run(db, run)


def fill(db: sqlite3.Connection) -> None:
    """Writes it all from the history, in a file of a version that did not keep it."""
    found = db.execute(
        "SELECT kind, id, incident, json_extract(CAST(data AS TEXT), '$.cause'), scope, at FROM notes "  # noqa: S608 - constants
        f"WHERE kind IN {_CAME} AND scope != '' ORDER BY n"
    )
    for kind, id_, incident, cause, scope, at in found.fetchall():
        if cause:
            _fault(db, kind, id_, incident, str(cause), scope, at)
    for (body,) in db.execute("SELECT body FROM runs ORDER BY started_at, id").fetchall():
        _run(db, orjson.loads(body))


def _fault(
    db: sqlite3.Connection, kind: str, note: str, incident: str, cause: str, scope: str, at: float
) -> None:
    """A note tells that a fault came: for the first time, or again after its incident had recovered."""
    before = db.execute(
        "SELECT 1 FROM notes WHERE incident = ?1 AND incident != '' AND kind = 'incident.recovered' "
        "AND n < (SELECT n FROM notes WHERE id = ?2) LIMIT 1",
        (incident, note),
    )
    if kind == _CAME[0] or before.fetchone():  # else it was only held off
        _came(db, cause, scope, at)


def _came(db: sqlite3.Connection, cause: str, scope: str, at: float) -> None:
    node = node_of(scope) or scope
    db.execute("INSERT OR IGNORE INTO came VALUES(?,?,?,?)", (cause, scope, at, node))
    db.execute(
        "DELETE FROM came WHERE node = ?1 AND at < "
        "(SELECT at FROM came WHERE node = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2)",
        (node, KEPT_OF_NODE - 1),
    )


def _run(db: sqlite3.Connection, run: Json) -> None:
    """What came of each rung of a run that a fault led to and that is over."""
    if run["state"] not in OVER or run["requested_by"]:
        return
    row = db.execute(
        "SELECT json_extract(CAST(body AS TEXT), '$.cause') FROM incidents WHERE id = ?", (run["incident"],)
    ).fetchone()
    if row is None:
        return
    cause, scope, node = str(row[0]), run["scope"], run["node"] or run["scope"]
    ladder = [step for step in run["steps"] if step["id"].startswith(f"{run['id']}.s")]
    for rung in run["runbook"]["rungs"]:
        steps = [step for step in ladder if step["rung"] == rung["name"]]
        if rung["verify"] is None or not steps:
            continue
        first, last = steps[0], steps[-1]
        settled_at = last.get("settled_at") or run["ended_at"]
        model = _model(db, run["node"], scope, first["at"])
        db.execute(
            "INSERT OR REPLACE INTO tried VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                *(
                    run["id"],
                    rung["name"],
                    run["incident"],
                    cause,
                    scope,
                    node,
                    model,
                    run["runbook"]["name"],
                ),
                *(last["action"], _result(last).value, len(steps), first["at"], settled_at),
            ),
        )
        after = [step["at"] for step in ladder if step["at"] > settled_at]
        if last["verified"] and after:  # the fault came back before the node was back in service
            _came(db, cause, scope, after[0])
    db.execute(
        "DELETE FROM tried WHERE node = ?1 AND at < "
        "(SELECT at FROM tried WHERE node = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2)",
        (node, KEPT_OF_NODE - 1),
    )


def _result(step: Json) -> RungResult:
    """What came of a rung, by its last attempt."""
    if step["verified"] is not None:
        return RungResult.HELPED if step["verified"] else RungResult.STILL_THERE
    if step["outcome"] == Outcome.FAILED:
        return RungResult.FAILED
    if step["outcome"] in (Outcome.OK, Outcome.UNKNOWN, ""):
        return RungResult.UNKNOWN
    return RungResult.NOT_TRIED


def _model(db: sqlite3.Connection, node: str, scope: str, at: float) -> str:
    """What the card of the scope was then, by what its node told; else what the node's first GPU was."""
    row = db.execute(
        "SELECT json_extract(CAST(data AS TEXT), '$.model') FROM parts WHERE node = ? AND since <= ? AND "
        "(component = ? OR component GLOB 'gpu/*') ORDER BY component = ? DESC, component, n DESC LIMIT 1",
        (node, at, component_of(scope), component_of(scope)),
    ).fetchone()
    return str(row[0] or "") if row else ""


def heard(db: sqlite3.Connection, at: float, event: Event) -> None:
    """A node told something at a time (seconds since 1970): writes when it was started, where that is new."""
    known = db.execute("SELECT 1 FROM boots WHERE node = ? AND boot = ?", (event.node, event.boot)).fetchone()
    if known or not event.boot:
        return
    db.execute("INSERT INTO boots VALUES(?,?,?)", (event.node, event.boot, at - event.age_s))
    db.execute(
        "DELETE FROM boots WHERE node = ?1 AND at < "
        "(SELECT at FROM boots WHERE node = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2)",
        (event.node, KEPT_OF_NODE - 1),
    )


def tried_since(each: Each, db: sqlite3.Connection, at: float, limit: int) -> list[Json]:
    """Returns what was tried since a time, the newest first, with `back_at`: when its fault came back; None: it has not."""
    rows = db.execute(
        f"SELECT {', '.join(_TRIED)}, (SELECT min(came.at) FROM came WHERE came.cause = tried.cause "  # noqa: S608 - constants
        "AND came.scope = tried.scope AND came.at > tried.settled_at) "
        "FROM tried WHERE at >= ? ORDER BY at DESC, run, rung LIMIT ?",
        (at, limit),
    )
    return [dict(zip((*_TRIED, "back_at"), row, strict=True)) for row in each(rows)]


def boots_of(db: sqlite3.Connection, node: str, since: float, until: float) -> list[float]:
    """Returns when a node started anew within a time; not when it was heard for the first time ever."""
    rows = db.execute(
        "SELECT at FROM boots WHERE node = ?1 AND at BETWEEN ?2 AND ?3 "
        "AND at > (SELECT min(at) FROM boots WHERE node = ?1) ORDER BY at",
        (node, since, until),
    )
    return [at for (at,) in rows]
