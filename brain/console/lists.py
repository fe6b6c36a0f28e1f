"""The long lists of the history, page by page; read in the thread of the reads."""

import math
from collections.abc import Callable
from typing import Any

from aiohttp import web

from brain.console import shapes
from brain.console.answers import encoded_list
from brain.console.api.incident_shapes import IncidentsQuery, NotesFileQuery, NotesQuery, RunsQuery
from brain.console.api.pages import MOST, cursor, place
from brain.console.brain_view import History
from brain.core.state import IncidentState, RunState

NOTES = RUNS = 100  # on a page whose length nobody says
Pause = Callable[[], None]
Json = dict[str, Any]


def incidents(query: IncidentsQuery, pause: Pause, history: History) -> bytes:
    """Returns the JSON of incidents."""
    if query.model_dump(exclude_defaults=True, exclude={"all"}):
        found, following = _page(query, history)
        more = bool(following)
    else:  # nothing in particular is asked for: what one node says hides no other node's incident
        found, following = history.incidents(open_only=not query.all, limit=MOST), ""
        more = len(found) == MOST and len(history.incidents(open_only=not query.all, limit=MOST + 1)) > MOST
    asks = _asking(history) if any(one["state"] == IncidentState.HEALING for one in found) else {}
    shown = (shapes.incident(one, asks.get(one["id"], "")) for one in found)
    return encoded_list("incidents", shown, pause, {"next": following, "more": more})


def _asking(history: History) -> dict[str, str]:
    """Returns incident -> its run that waits for an approval."""
    found = history.runs_page(
        state=RunState.APPROVAL,
        over=False,
        runbook="",
        node="",
        incident="",
        since=0.0,
        until=math.inf,
        after=None,
        limit=MOST,
    )
    return {run["incident"]: run["id"] for run in reversed(found)}


def _page(query: IncidentsQuery, history: History) -> tuple[list[Json], str]:
    limit = query.limit or MOST
    after = place("incidents", query.cursor, float, str)
    found = history.incidents_page(
        over=query.all or query.state is not None,
        state=query.state or "",
        severity=query.severity or "",
        cause=query.cause,
        scope=query.scope,
        node=query.node,
        since=query.since or 0.0,
        until=math.inf if query.until is None else query.until,
        after=(after[0], after[1]) if after else None,
        limit=limit + 1,
    )
    last = found[limit - 1] if len(found) > limit else None
    return found[:limit], cursor("incidents", float(last["opened_at"]), last["id"]) if last else ""


def notes(query: NotesQuery, pause: Pause, history: History) -> bytes:
    """Returns the JSON of notes. HTTPBadRequest: the cursor's note is not there any more."""
    limit = query.limit or NOTES
    before = place("notes", query.cursor, str)
    found = notes_before(query, before[0] if before else "", limit + 1, history)
    if found is None:
        raise web.HTTPBadRequest(text="the note of `cursor` is not there any more: begin again without it")
    following = cursor("notes", found[limit - 1]["id"]) if len(found) > limit else ""
    return encoded_list("notes", map(shapes.note, found[:limit]), pause, {"next": following})


def runs(query: RunsQuery, pause: Pause, history: History) -> bytes:
    """Returns the JSON of runs."""
    limit = query.limit or RUNS
    after = place("runs", query.cursor, float, str)
    found = history.runs_page(
        state=query.state or "",
        over=not query.under_way,
        runbook=query.runbook,
        node=query.node,
        incident=query.incident,
        since=query.since or 0.0,
        until=math.inf if query.until is None else query.until,
        after=(after[0], after[1]) if after else None,
        limit=limit + 1,
    )
    last = found[limit - 1] if len(found) > limit else None
    following = cursor("runs", float(last["started_at"]), last["id"]) if last else ""
    return encoded_list("runs", map(shapes.run, found[:limit]), pause, {"next": following})


def notes_before(query: NotesFileQuery, before: str, limit: int, history: History) -> list[Json] | None:
    """Returns notes that fit, newest first, older than the note `before` (empty: any). None: that is not there any more."""
    return history.notes_page(
        kind=query.kind,
        incident=query.incident,
        run=query.run,
        scope=query.scope,
        who=query.who,
        since=query.since or 0.0,
        until=math.inf if query.until is None else query.until,
        before=before,
        limit=limit,
    )
