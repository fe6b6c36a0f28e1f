"""What the read model holds: incidents, their chains, runs, and notes."""

from functools import partial

from aiohttp import web

from agent.shared.words import t
from brain.console import lists, shapes, who_is_hit, why
from brain.console.access.route import Route, person
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.incident_shapes import IncidentsQuery, NotesQuery, RunsQuery
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, History
from brain.console.explain import explain
from brain.console.named import HAVE
from brain.console.needs import items
from brain.console.needs.verbs import Allowed
from brain.console.reading import Reading, Rests
from brain.console.speech import quoted
from brain.core.state import IncidentState, State


def routes(brain: BrainView, reading: Reading) -> list[Route]:
    """Returns the routes; all read in the thread of `reading`."""
    rests = Rests()

    async def incidents(asked: Checked[IncidentsQuery, Nothing]) -> web.StreamResponse:
        return await reading.answer(asked.http, partial(lists.incidents, asked.query, rests.pause))

    async def notes(asked: Checked[NotesQuery, Nothing]) -> web.StreamResponse:
        return await reading.answer(asked.http, partial(lists.notes, asked.query, rests.pause))

    async def runs(asked: Checked[RunsQuery, Nothing]) -> web.StreamResponse:
        return await reading.answer(asked.http, partial(lists.runs, asked.query, rests.pause))

    async def incident(asked: Checked[Nothing, Nothing]) -> web.StreamResponse:
        id_, state = asked.id, brain.live.state

        def work(history: History) -> bytes:
            raw = history.incident(id_)
            if raw is None:
                raise _unknown(history, id_) or web.HTTPNotFound(text=t("no incident {id}", id=quoted(id_)))
            return encoded(who_is_hit.whole(raw, state))

        return await reading.answer(asked.http, work)

    async def explained(asked: Checked[Nothing, Nothing]) -> web.StreamResponse:
        id_, state, judge = asked.id, brain.live.state, why.asking(brain)
        allowed = Allowed(person=person(asked.http), state=state, chosen=brain.config.console.two_persons)

        def work(history: History) -> bytes:
            found = explain(history, state, id_, traced=brain.config.traces.on, judge=judge)
            if found is None:
                raise (
                    _unknown(history, id_)
                    or _place(state, id_)
                    or web.HTTPNotFound(
                        text=t(
                            "no incident {id}, and nothing else of that id: explain takes {have}",
                            id=quoted(id_),
                            have=t(HAVE),
                        )
                    )
                )
            return encoded(found.model_copy(update={"verbs": items.of_chain(found, allowed)}))

        return await reading.answer(asked.http, work)

    async def run(asked: Checked[Nothing, Nothing]) -> web.StreamResponse:
        id_ = asked.id

        def work(history: History) -> bytes:
            raw = history.run(id_)
            if raw is None:
                raise web.HTTPNotFound(text=t("no run {id}", id=quoted(id_)))
            return encoded(shapes.run(raw))

        return await reading.answer(asked.http, work)

    return [
        serve(table.INCIDENTS, incidents),
        serve(table.INCIDENT, incident),
        serve(table.EXPLAIN, explained),
        serve(table.NOTES, notes),
        serve(table.RUNS, runs),
        serve(table.RUN, run),
    ]


def _place(state: State, id_: str) -> web.HTTPNotFound | None:
    """Where the id is a node's name or a scope: what is open there. None: it is neither."""
    scope = id_ if "/" in id_ else f"node/{id_}"
    there = sorted(
        one.id
        for one in state.incidents.values()
        if one.state is not IncidentState.CLOSED and (one.scope == scope or f"node/{one.node}" == scope)
    )
    if not there and scope.removeprefix("node/") not in state.nodes:
        return None
    return web.HTTPNotFound(
        text=t(
            "{id} is a place, and explain takes an id. Open there: {incidents}. Why a rule does not match there: --why-not RULE",
            id=quoted(id_),
            incidents=", ".join(there) or "-",
        )
    )


def _unknown(history: History, id_: str) -> web.HTTPNotFound | None:
    """Where several incidents begin with the id: which ones. None: nothing does, or one."""
    several = history.beginning(id_.partition(".")[0])
    if len(several) < 2:
        return None
    return web.HTTPNotFound(
        text=t("{id} is ambiguous: it may be {several}", id=quoted(id_), several=", ".join(several))
    )
