"""The map of the fleet. Its columns are made in the thread of the reads; answers are kept for as long as nothing has happened."""

from aiohttp import web

from brain.console import shapes
from brain.console.access.route import Route
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.fleet_shapes import FleetQuery
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, History
from brain.console.fleet import facts, past
from brain.console.fleet.columns import columns
from brain.console.reading import Reading, Rests


def routes(brain: BrainView, reading: Reading) -> list[Route]:
    """Returns the route."""
    rests = Rests()
    kept: dict[int, bytes] = {}  # position on the log -> the answer of then; one at most

    async def fleet(asked: Checked[FleetQuery, Nothing]) -> web.StreamResponse:
        state, seq, when = brain.live.state, brain.live.seq, asked.query.at
        past_time = when is not None and when < state.now
        if not past_time and (known := kept.get(seq)) is not None:
            return await reading.answer(asked.http, lambda _: known)
        today = facts.now(brain)

        def work(history: History) -> bytes:
            since = history.oldest()
            if when is not None and past_time:
                return encoded(columns(_then(history, today, when, since), since, rests.pause))
            made = encoded(columns(today, since, rests.pause))
            kept.clear()
            kept[seq] = made
            return made

        return await reading.answer(asked.http, work)

    def _then(history: History, today: facts.Facts, when: float, since: float | None) -> facts.Facts:
        if since is None or when < since:
            begins = "there is none yet" if since is None else f"it begins at {shapes.iso(since)}"
            raise web.HTTPBadRequest(text=f"`at` is before the history: {begins}")
        return past.at(today, history, when, rests.pause)

    return [serve(table.FLEET, fleet)]
