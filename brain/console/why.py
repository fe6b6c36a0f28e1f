"""Why a rule does not match; how sure an incident is, and what would change it: asked of the engine, told with the history."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from brain.console import shapes
from brain.console.access.route import Route
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing, TwoLanguagesShape
from brain.console.api.serving import Checked, serve
from brain.console.api.why_shapes import (
    ChangeShape,
    ConditionShape,
    PastShape,
    PlaceConsideredShape,
    SurenessShape,
    WhyNotQuery,
    WhyNotShape,
)
from brain.console.brain_view import BrainView, History
from brain.console.reading import Reading
from brain.console.shapes import Json
from brain.console.speech import told
from brain.core.context import Context
from brain.core.incidents import OVER
from brain.core.pack.spec import Text
from brain.core.why import changes as turns
from brain.core.why import sureness as grounds
from brain.core.why import why_not

_WAIT_S = 5.0  # for the event loop
_NOTES = 50  # on the symptoms of one scope that are read for when one of them ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How an incident is judged now."""

    sureness: grounds.Sureness
    changes: tuple[turns.Change, ...]


Judge = Callable[[str], Judged | None]  # an incident's id -> how it is judged; None: it is over


def nothing(_id: str) -> Judged | None:
    """Judges nothing: there is no engine to ask."""
    return None


def judge(ctx: Context, id_: str) -> Judged | None:
    """Returns how the engine judges an incident; None: it is over, and forgotten."""
    incident = ctx.state.incidents.get(id_)
    if incident is None or incident.state in OVER:
        return None
    return Judged(sureness=grounds.of(ctx, incident), changes=turns.of(ctx, incident))


def asking(brain: BrainView) -> Judge:
    """Returns what asks the engine from another thread: in the event loop, between two inputs. To be called in the loop."""
    loop = asyncio.get_running_loop()

    async def now(id_: str) -> Judged | None:
        return judge(brain.live.look(), id_)

    def ask(id_: str) -> Judged | None:
        return asyncio.run_coroutine_threadsafe(now(id_), loop).result(_WAIT_S)

    return ask


def routes(brain: BrainView, reading: Reading) -> list[Route]:
    """Returns the route."""

    async def asked_why_not(asked: Checked[WhyNotQuery, Nothing]) -> web.StreamResponse:
        try:
            found = why_not.of(brain.live.look(), asked.query.rule, asked.query.scope)
        except why_not.NotKnown as error:
            hint = error.hint  # looks through many names: not in the event loop

            def refuse(_: History) -> bytes:
                raise web.HTTPNotFound(text=told(hint()))

            return await reading.answer(asked.http, refuse)
        return await reading.answer(asked.http, lambda history: encoded(answer(found, history)))

    return [serve(table.WHY_NOT, asked_why_not)]


def answer(found: why_not.WhyNot, history: History) -> WhyNotShape:
    """Returns the answer with what the history knows of the symptoms that are not there."""
    return WhyNotShape(
        rule=found.rule,
        scope=found.scope,
        at=shapes.iso(found.at),
        matches=found.matches,
        outcome=found.outcome,
        text=[told(one) for one in found.text],
        conditions=[_condition(one, history) for one in found.conditions],
        incident=found.incident,
        until=shapes.iso(found.until),
        runbook=found.runbook,
        mode=found.mode,
        run=found.run,
        gate=found.gate,
        gate_until=shapes.iso(found.gate_until),
        gate_again=shapes.iso(found.gate_again),
    )


def sureness(judged: Judged) -> SurenessShape:
    """Returns how sure it is."""
    sure = judged.sureness
    return SurenessShape(
        level=sure.level,
        reasons=list(map(_both, sure.reasons)),
        against=list(map(_both, sure.against)),
        alternatives=list(map(_both, sure.alternatives)),
    )


def considered(raw: Json) -> list[PlaceConsideredShape]:
    """Returns the places that were considered for an incident; an earlier version wrote none."""
    return [
        PlaceConsideredShape(
            place=one["place"], ill=one["ill"], of=one["of"], best=one["best"], why=told(one["why"])
        )
        for one in raw.get("places", ())
    ]


def changes(judged: Judged) -> list[ChangeShape]:
    """Returns what would change it."""
    return [
        ChangeShape(
            turn=one.turn,
            text=_both(one.text),
            cause=one.cause,
            scope=one.scope,
            nodes=one.nodes,
            takes=one.takes,
        )
        for one in judged.changes
    ]


def _condition(one: why_not.ConditionNow, history: History) -> ConditionShape:
    gone = one.in_the_way and bool(one.symptom) and bool(one.begins or one.takes)
    return ConditionShape(
        test=one.test,
        met=one.met,
        in_the_way=one.in_the_way,
        text=told(one.text),
        begins=told(one.begins),
        instead=list(one.instead),
        symptom=one.symptom,
        scope=one.scope,
        since=shapes.iso(one.since),
        last=shapes.iso(one.last),
        nodes=list(one.nodes),
        takes=one.takes,
        past=_past(one.symptom, one.scope, history) if gone else None,
    )


def _past(symptom: str, scope: str, history: History) -> PastShape:
    """Returns when a symptom last ended at a scope, or at a part of it if it is a node."""
    plain = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in scope)
    node = scope.removeprefix("node/") if scope.startswith("node/") else ""
    since = history.oldest() or 0.0
    for pattern in (plain, f"*/{plain.removeprefix('node/')}/*") if node else (plain,):
        found = history.notes_page(
            kind="symptom.ended",
            incident="",
            run="",
            scope=pattern,
            who="",
            since=0.0,
            until=math.inf,
            before="",
            limit=_NOTES,
        )
        for note in found or ():
            if note["data"].get("symptom") == symptom:
                why = note["text"].partition(" ended: ")[2]
                return PastShape(at=shapes.iso(note["at"]), why=told(why), since=shapes.iso(since))
        if found and len(found) == _NOTES:
            since = max(since, found[-1]["at"])
    return PastShape(at=None, why="", since=shapes.iso(since))


def _both(text: Text) -> TwoLanguagesShape:
    return TwoLanguagesShape(en=text.en, zh=text.zh)
