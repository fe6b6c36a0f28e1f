"""What the read model is asked about past times."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from brain import renamed
from brain.adapters import outcomes, parts
from brain.adapters.history_reads import HistoryReads

# When an incident was over, from its body: as the index of the read model has it, word for word.
CLOSED_AT = "json_extract(CAST(body AS TEXT), '$.closed_at')"
# The node of an incident or a run; the same.
NODE = "json_extract(CAST(body AS TEXT), '$.node')"
# The notes of an incident: only so does SQLite know that the index, which leaves out those of none, has them.
OF_INCIDENT = "incident = ? AND incident != ''"
# The notes of what people said, and of the end of their holds; the same.
_MODE = "operator.mode"
_HOLDS = ("operator.hold", "operator.release", "hold.ended")
SAID = "(kind GLOB 'operator.*' OR kind = 'hold.ended')"
_MOST_SAID = 10_000  # of them are looked at, the newest


class PastQueries(HistoryReads):
    """The questions."""

    def oldest(self) -> float | None:
        """Returns the time of the oldest note, in seconds since 1970; None: there is none."""
        row = self._db.execute("SELECT at FROM notes ORDER BY n LIMIT 1").fetchone()
        return float(row[0]) if row else None

    def incidents_at(self, at: float, limit: int) -> list[dict[str, Any]]:
        """Returns the incidents that were open at a time (seconds since 1970), as they are now, the newest first."""
        return self._open_between(at, at, "<=", limit)

    def incidents_between(self, since: float, until: float, limit: int) -> list[dict[str, Any]]:
        """Returns the incidents that were open at any moment of a time (seconds since 1970), newest first."""
        return self._open_between(since, until, "<", limit)

    def _open_between(self, since: float, until: float, before: str, limit: int) -> list[dict[str, Any]]:
        rows = self._db.execute(
            f"SELECT opened_at, body FROM incidents WHERE opened_at {before} ? AND {CLOSED_AT} > ? "  # noqa: S608 - constants
            f"UNION ALL SELECT opened_at, body FROM incidents WHERE opened_at {before} ? AND {CLOSED_AT} = 0 "
            "ORDER BY opened_at DESC LIMIT ?",
            (until, since, until, limit),
        )
        return [renamed.rename_in_incident(orjson.loads(body)) for _, body in self._each(rows)]

    def last_kind(self, incident: str, at: float, kinds: Sequence[str]) -> str:
        """Returns the kind of the newest note of an incident up to a time that is one of these; empty: there is none."""
        marks = ",".join("?" * len(kinds))
        row = self._db.execute(
            f"SELECT kind FROM notes WHERE {OF_INCIDENT} AND at <= ? AND kind IN ({marks}) ORDER BY n DESC LIMIT 1",  # noqa: S608 - constants
            (incident, at, *kinds),
        ).fetchone()
        return str(row[0]) if row else ""

    def holds_at(self, at: float) -> list[str]:
        """Returns the scopes on which operators' holds stood at a time: as far back as their notes reach."""
        rows = self._db.execute(
            f"SELECT kind, scope, text FROM (SELECT n, at, kind, scope, text FROM notes WHERE {SAID} "  # noqa: S608 - constants
            f"ORDER BY n DESC LIMIT ?) WHERE at <= ? AND kind IN {_HOLDS} ORDER BY n",
            (_MOST_SAID, at),
        )
        standing: dict[str, str] = {}
        for kind, scope, text in self._each(rows):
            hold = text.rpartition("(")[2]  # its id ends each of these sentences
            if kind == "operator.hold":
                standing[hold] = scope
            else:
                standing.pop(hold, None)
        return list(standing.values())

    def modes_said(self) -> dict[str, float]:
        """Returns what people said of modes lately, as the audit has it -> when last, in seconds since 1970."""
        rows = self._db.execute(
            f"SELECT text, at FROM (SELECT n, at, kind, text FROM notes WHERE {SAID} "  # noqa: S608 - constants
            "ORDER BY n DESC LIMIT ?) WHERE kind = ? ORDER BY n",
            (_MOST_SAID, _MODE),
        )
        return dict(self._each(rows))

    def incident_figures(self) -> list[tuple[str, str, str, float]]:
        """Returns (id, rule, state, when it opened) of all incidents."""
        rows = self._db.execute(
            "SELECT id, json_extract(CAST(body AS TEXT), '$.rule'), state, opened_at FROM incidents"
        )
        return [
            (id_, str(rule), renamed.STATES.get(state, state), at)
            for id_, rule, state, at in self._each(rows)
        ]

    def run_figures(self) -> list[tuple[str, str, str, float, float]]:
        """Returns (incident, runbook, state, when it began, when it ended or 0) of all runs."""
        rows = self._db.execute(
            "SELECT incident, started_at, json_extract(CAST(body AS TEXT), '$.runbook.name', '$.state', '$.ended_at') FROM runs"
        )
        found = ((incident, at, orjson.loads(part)) for incident, at, part in self._each(rows))
        return [
            (incident, str(name), str(state), at, float(end)) for incident, at, (name, state, end) in found
        ]

    def said(self) -> list[dict[str, Any]]:
        """Returns the newest notes of what people said, the newest first; bounded."""
        return self._notes(f"WHERE {SAID} ORDER BY n DESC LIMIT ?", (_MOST_SAID // 5,))

    def incidents_of(self, node: str, limit: int) -> list[dict[str, Any]]:
        """Returns the incidents of a node, newest first; not those of wider scopes."""
        rows = self._db.execute(
            f"SELECT body FROM incidents WHERE {NODE} = ? ORDER BY opened_at DESC LIMIT ?",  # noqa: S608 - constants
            (node, limit),
        )
        return [renamed.rename_in_incident(orjson.loads(body)) for (body,) in self._each(rows)]

    def runs_on(self, node: str, limit: int) -> list[dict[str, Any]]:
        """Returns the runs on a node, newest first."""
        rows = self._db.execute(
            f"SELECT body FROM runs WHERE {NODE} = ? ORDER BY started_at DESC LIMIT ?",  # noqa: S608 - constants
            (node, limit),
        )
        return [orjson.loads(body) for (body,) in self._each(rows)]

    def parts_of(self, node: str) -> list[dict[str, Any]]:
        """Returns what a node told of itself and its parts, the newest first: see brain/adapters/parts.py."""
        return parts.of_node(self._each, self._db, node)

    def places_of(self, serial: str) -> list[dict[str, Any]]:
        """Returns where a part with this serial number has been, by what nodes told, the newest first; bounded."""
        return parts.of_serial(self._each, self._db, serial)

    def closed_since(self, at: float, limit: int) -> list[dict[str, Any]]:
        """Returns the incidents that were closed after a time (seconds since 1970), newest first; none that others explain."""
        rows = self._db.execute(
            f"SELECT body FROM incidents WHERE {CLOSED_AT} > ? AND state = 'closed' ORDER BY {CLOSED_AT} DESC LIMIT ?",  # noqa: S608 - constants
            (max(at, 0.0), limit),
        )
        return [renamed.rename_in_incident(orjson.loads(body)) for (body,) in self._each(rows)]

    def tried_since(self, at: float, limit: int) -> list[Mapping[str, Any]]:
        """Returns what was tried since a time (seconds since 1970), the newest first: see brain/adapters/outcomes.py."""
        return outcomes.tried_since(self._each, self._db, at, limit)

    def boots_of(self, node: str, since: float, until: float) -> list[float]:
        """Returns when a node started anew within a time."""
        return outcomes.boots_of(self._db, node, since, until)

    def runs_since(self, at: float, limit: int) -> list[dict[str, Any]]:
        """Returns the runs that began since a time (seconds since 1970), newest first."""
        rows = self._db.execute(
            "SELECT body FROM runs WHERE started_at >= ? ORDER BY started_at DESC, id LIMIT ?", (at, limit)
        )
        return [orjson.loads(body) for (body,) in self._each(rows)]

    def said_about(self, incident: str, node: str, since: float, until: float) -> list[dict[str, Any]]:
        """Returns the notes of what people said within a time about an incident, and about its node, in order."""
        of_it = self._notes(
            f"WHERE {OF_INCIDENT} AND at BETWEEN ? AND ? AND json_extract(CAST(data AS TEXT), '$.who') != '' ORDER BY n",
            (incident, since, until),
        )
        of_node = self._notes(
            f"WHERE n IN (SELECT n FROM notes WHERE {SAID} ORDER BY n DESC LIMIT ?) AND incident = '' "  # noqa: S608 - constants
            "AND kind GLOB 'operator.*' AND at BETWEEN ? AND ? AND scope = ? ORDER BY n",
            (_MOST_SAID, since, until, f"node/{node}"),
        )
        return sorted([*of_it, *(of_node if node else ())], key=lambda note: float(note["at"]))

    def stopped(self, run: str, incident: str) -> list[str]:
        """Returns the gates that stood in the way of a run, in order, each once; not the mode, nor what passes by itself."""
        rows = self._db.execute(
            f"SELECT DISTINCT json_extract(CAST(data AS TEXT), '$.gate') FROM notes WHERE {OF_INCIDENT} AND run = ? "  # noqa: S608 - constants
            "AND kind IN ('run.held', 'run.approval', 'run.observed', 'run.exhausted') ORDER BY n",
            (incident, run),
        )
        return [gate for (gate,) in self._each(rows) if gate and gate not in ("mode", "settling")]
