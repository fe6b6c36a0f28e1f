"""The first page of a console, in one request."""

import asyncio
from collections.abc import Sequence

from aiohttp import web

from brain.console import shapes
from brain.console.access.route import Route, person
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.needs_shapes import HealedShape, NeedShape, NeedsQuery, NeedsShape
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, History
from brain.console.needs import items
from brain.console.needs.verbs import Allowed
from brain.console.reading import Reading
from brain.console.speech import told
from brain.core.state import RunState

_AT_ONCE = 50  # items between which the event loop does other things
_NOBODY: Sequence[str] = ()


def routes(brain: BrainView, reading: Reading) -> list[Route]:
    """Returns the route."""

    async def needs(asked: Checked[NeedsQuery, Nothing]) -> web.StreamResponse:
        query, state = asked.query, brain.live.state
        allowed = Allowed(person=person(asked.http), state=state, chosen=brain.config.console.two_persons)
        people, healing = await now(allowed)
        since = state.now - query.hours * 3600

        def work(history: History) -> bytes:
            healed = healed_since(history, since, query.limit + 1)
            return encoded(
                NeedsShape(
                    people=told_items(people[: query.limit]),
                    people_count=len(people),
                    healing=told_items(healing[: query.limit]),
                    healing_count=len(healing),
                    healed=healed[: query.limit],
                    healed_more=len(healed) > query.limit,
                )
            )

        return await reading.answer(asked.http, work)

    return [serve(table.NEEDS, needs)]


async def now(allowed: Allowed) -> tuple[list[NeedShape], list[NeedShape]]:
    """(what needs a person, what heals by itself), the most urgent first."""
    state = allowed.state
    drained = items.drained_by(state)
    found: list[NeedShape | None] = [items.hold(one, state.now, allowed) for one in state.holds.values()]
    found += [items.group(one, allowed) for one in state.alert_groups.values()]
    if state.tripped:
        found.append(items.breaker(state.tripped, allowed))
    for number, one in enumerate(list(state.incidents.values())):
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)
        found.append(items.incident(one, state, drained.get(one.id, _NOBODY), allowed))
    every = sorted((one for one in found if one is not None), key=items.order)
    return [one for one in every if one.kinds], [one for one in every if not one.kinds]


_NEEDS = " needs a person: "


def _text(one: NeedShape) -> str:
    """Its sentence; what would be done, and why it waits, have colons and semicolons of their own: they are told first."""
    text = one.text
    for part in (one.approval.what, one.approval.why) if one.approval else ():
        text = text.replace(part, told(part))
    head, needs, why = text.partition(_NEEDS)
    return told(f"{head}{needs}{told(why)}" if needs else text)


def told_items(found: Sequence[NeedShape]) -> list[NeedShape]:
    """The same in the language that is spoken. It takes milliseconds for each: not for the event loop."""
    return [
        one.model_copy(
            update={
                "text": _text(one),
                "approval": one.approval and one.approval.model_copy(update={"why": told(one.approval.why)}),
            }
        )
        for one in found
    ]


def healed_since(history: History, since: float, limit: int) -> list[HealedShape]:
    """Returns the incidents that were closed after a time (seconds since 1970), newest first."""
    found = []
    for raw in history.closed_since(since, limit):
        by = [
            run["runbook"]["name"] for run in history.runs_of(raw["id"]) if run["state"] == RunState.SUCCEEDED
        ]
        how = f"{by[-1]} has healed it" if by else raw["closed_why"]
        found.append(
            HealedShape(
                id=raw["id"],
                severity=raw["severity"],
                cause=raw["cause"],
                scope=raw["scope"],
                node=raw["node"],
                opened_at=shapes.iso(raw["opened_at"]),
                closed_at=shapes.iso(raw["closed_at"]),
                runbook=by[-1] if by else "",
                text=told(f"{raw['cause']} at {raw['scope']} is over: {how}"),
            )
        )
    return found
