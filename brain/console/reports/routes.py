"""Reports, reckoned in the thread of the reads."""

from aiohttp import web

from brain.console.access.route import Route
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.report_shapes import MOST, ReportQuery
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, History
from brain.console.packing import JSON
from brain.console.reading import Reading, Rests
from brain.console.reports import reckon, show
from brain.core.state import IncidentState

CSV = "text/csv"
_WEEK_S = 7 * 86_400.0


def routes(brain: BrainView, reading: Reading) -> list[Route]:
    """Returns the route."""
    rests = Rests()

    async def reports(asked: Checked[ReportQuery, Nothing]) -> web.StreamResponse:
        query, now = asked.query, brain.live.state.now
        until = now if query.until is None else min(query.until, now)
        since = max(0.0, until - _WEEK_S) if query.since is None else query.since
        if since > until:
            raise web.HTTPBadRequest(text="`from` is behind `to`, or behind now")
        as_csv = query.format == "csv"

        def work(history: History) -> bytes:
            raw = history.incidents_between(since, until, MOST + 1)
            found = []
            for one in raw[:MOST]:
                rests.pause()
                if one["state"] != IncidentState.EXPLAINED:
                    found.append(reckon.incident(one, history.runs_of(one["id"]), since, until))
            if as_csv:
                return show.table(found, rests.pause)
            whole = len(raw) <= MOST
            return encoded(
                show.report(found, since=since, until=until, reaches=history.oldest(), whole=whole)
            )

        return await reading.answer(asked.http, work, CSV if as_csv else JSON)

    return [serve(table.REPORTS, reports)]
