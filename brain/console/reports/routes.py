"""Reports, reckoned in the thread of the reads."""

from zoneinfo import ZoneInfo

from aiohttp import hdrs, web

from brain.console.access.door import Door
from brain.console.access.route import Route
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.report_shapes import ReportQuery
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, History
from brain.console.packing import JSON
from brain.console.reading import Reading, Rests
from brain.console.reports import gather, show
from brain.console.reports.page import ReportPage
from brain.console.words import Words

CSV = "text/csv"
HTML = "text/html; charset=utf-8"
_WEEK_S = 7 * 86_400.0


def routes(brain: BrainView, reading: Reading, door: Door) -> list[Route]:
    """Returns the route."""
    rests = Rests()

    async def reports(asked: Checked[ReportQuery, Nothing]) -> web.StreamResponse:
        query, now = asked.query, brain.live.state.now
        until = now if query.until is None else min(query.until, now)
        since = max(0.0, until - _WEEK_S) if query.since is None else query.since
        if since > until:
            raise web.HTTPBadRequest(text="`from` is behind `to`, or behind now")
        if query.format == "html":
            page = ReportPage(
                words=Words(query.language),
                zone=_zone(query.zone),
                cell=brain.config.cell,
                console_url=door.origin(asked.http),
            )
            standing = await gather.standing_now(brain.live.state) if query.hand_over else None

            def file(history: History) -> bytes:
                return page.file(gather.told(history, since, until, rests.pause, standing))

            return await reading.answer(asked.http, file, HTML, {hdrs.CONTENT_DISPOSITION: "attachment"})
        as_csv = query.format == "csv"

        def work(history: History) -> bytes:
            found, whole = gather.reckoned(history, since, until, rests.pause)
            if as_csv:
                return show.table(found, rests.pause)
            return encoded(
                show.report(found, since=since, until=until, reaches=history.oldest(), whole=whole)
            )

        return await reading.answer(asked.http, work, CSV if as_csv else JSON)

    return [serve(table.REPORTS, reports)]


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise web.HTTPBadRequest(text="`zone`: the tz database has no such zone") from error
