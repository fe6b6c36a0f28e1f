"""Reports, reckoned in the thread of the reads."""

import asyncio
import time
from zoneinfo import ZoneInfo

from aiohttp import hdrs, web

from brain.console.access.door import Door
from brain.console.access.route import Route
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.energy_shapes import EnergyQuery, EnergyShape
from brain.console.api.report_shapes import ReportQuery
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, History
from brain.console.counters.energy import EnergyMeter
from brain.console.counters.energy import table as as_csv
from brain.console.fleet.columns import gpus_of
from brain.console.packing import JSON
from brain.console.reading import Reading, Rests
from brain.console.reports import gather, show
from brain.console.reports.page import ReportPage
from brain.console.speech import in_language
from brain.console.words import Words
from brain.outgoing import outgoing

CSV = "text/csv"
HTML = "text/html; charset=utf-8"
_WEEK_S = 7 * 86_400.0
_KEPT_S = 15.0  # that an answer of Prometheus is good for
_MOST_KEPT = 16


def routes(brain: BrainView, reading: Reading, door: Door) -> list[Route]:
    """Returns the routes. ConfigError: a file that `[console.prometheus]` names cannot be used."""
    rests = Rests()
    people_s = brain.config.console.people_begin_s
    meter = EnergyMeter(brain.config.console.prometheus, outgoing(brain.config.outgoing))
    kept: dict[tuple[float, float], tuple[float, asyncio.Task[EnergyShape]]] = {}

    def span_of(query: ReportQuery | EnergyQuery) -> tuple[float, float]:
        now = brain.live.state.now
        until = now if query.until is None else min(query.until, now)
        since = max(0.0, until - _WEEK_S) if query.since is None else query.since
        if since > until:
            raise web.HTTPBadRequest(text="`from` is behind `to`, or behind now")
        return since, until

    async def measured(since: float, until: float) -> EnergyShape:
        """One question for all who ask it within some seconds."""
        now_s, key = time.monotonic(), (since // _KEPT_S, until // _KEPT_S)
        for old in [one for one, (since_s, _) in kept.items() if now_s - since_s > _KEPT_S]:
            del kept[old]
        while len(kept) >= _MOST_KEPT:
            kept.pop(next(iter(kept)))
        if key not in kept:
            asked = meter.measured(since, until, gpus_of(brain.live.state))
            kept[key] = now_s, asyncio.ensure_future(asked)
        return await asyncio.shield(kept[key][1])

    async def energy(asked: Checked[EnergyQuery, Nothing]) -> EnergyShape | web.StreamResponse:
        found = await measured(*span_of(asked.query))
        if asked.query.format == "json":
            return found
        return web.Response(body=as_csv(found), content_type=CSV, charset="utf-8")

    async def reports(asked: Checked[ReportQuery, Nothing]) -> web.StreamResponse:
        query = asked.query
        since, until = span_of(query)
        if query.format == "html":
            page = ReportPage(
                words=Words(query.language),
                zone=_zone(query.zone),
                cell=brain.config.cell,
                console_url=door.origin(asked.http),
            )
            with in_language(query.language):
                standing = await gather.standing_now(brain.live.state) if query.hand_over else None
            used = await measured(since, until)

            def file(history: History) -> bytes:
                with in_language(query.language):
                    return page.file(
                        gather.told(history, since, until, rests.pause, standing, used, people_s)
                    )

            return await reading.answer(asked.http, file, HTML, {hdrs.CONTENT_DISPOSITION: "attachment"})
        csv = query.format == "csv"

        def work(history: History) -> bytes:
            found, whole = gather.reckoned(history, since, until, rests.pause, people_s)
            if csv:
                return show.table(found, rests.pause)
            return encoded(
                show.report(
                    found,
                    since=since,
                    until=until,
                    reaches=history.oldest(),
                    whole=whole,
                    people_begin_s=people_s,
                )
            )

        return await reading.answer(asked.http, work, CSV if csv else JSON)

    return [serve(table.REPORTS, reports), serve(table.ENERGY, energy)]


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise web.HTTPBadRequest(text="`zone`: the tz database has no such zone") from error
