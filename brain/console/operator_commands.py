"""An operator command, checked, put on the log under the name of whoever logged in."""

import contextlib
import json
import logging
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from agent.contract.errors import Unreachable
from agent.shared.words import t
from brain.console import shapes
from brain.console.access.door import Door
from brain.console.access.people import Person
from brain.console.access.route import Route, person
from brain.console.access.two_persons import WITHIN_S, Proposals, needs_second
from brain.console.answers import json_answer
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.command_shapes import RefusedShape, SaidShape
from brain.console.api.problems import problem, problem_answer
from brain.console.api.serving import Checked, serve
from brain.console.api.verbs import ROLES, CommandBody, InvalidCommand, check_names
from brain.console.brain_view import BrainView
from brain.console.speech import quoted, refusal
from brain.console.touched import least, touched
from brain.core import ids
from brain.core.inputs import OperatorCommand
from brain.core.pack.spec import Scalar
from brain.core.state import State

_log = logging.getLogger(__name__)
HANDLED_S = 5.0  # how long the answer waits until the engine has handled it


def routes(brain: BrainView, door: Door, proposals: Proposals) -> list[Route]:
    """Returns the route. Every viewer gets as far as the check of the command itself, which knows its role."""

    async def give(asked: Checked[Nothing, CommandBody]) -> SaidShape | web.Response:
        request = asked.http
        verb, args = asked.body.said
        good = door.credential(request)
        return _answer(
            await say(brain, door, proposals, request, person(request), verb, args, still_good=good)
        )

    # Everybody with a credential may ask; the role depends on the command.
    return [serve(table.COMMAND, give)]


async def _no_incident(brain: BrainView, named: str) -> str:
    """Why nobody would find a note on this; empty: there is, or was, such an incident."""
    wanted = named.partition(".r")[0]
    if wanted in brain.live.state.incidents:
        return ""
    try:
        found = await brain.look_up(lambda history: history.incident(wanted))
    except Unreachable as error:
        raise web.HTTPServiceUnavailable(text=str(error)) from error
    return "" if found is not None and found["id"] == wanted else t("no incident {id}", id=quoted(wanted))


async def say(
    brain: BrainView,
    door: Door,
    proposals: Proposals,
    request: web.Request,
    who: Person,
    verb: str,
    args: Mapping[str, Scalar],
    *,
    still_good: Callable[[], bool],
    id_: str = "",
    within_s: float = HANDLED_S,
) -> SaidShape:
    """Says a checked command in somebody's name, wherever they have said it: the one way onto the log.

    `still_good`: may they still say it, while it waits for a second person? `id_`: the command's own id, by which it counts once;
    empty: a new one. `within_s`: so long the engine's answer is waited for. HTTPForbidden, HTTPBadRequest,
    HTTPServiceUnavailable: why not.
    """
    state = brain.live.state
    door.demand(
        request,
        who,
        least(verb, args, ROLES),
        touched(verb, args, state, who.name),
        state.pack.places if state.pack else None,
    )
    if brain.live.caught_up and state.pack is not None:
        try:
            check_names(verb, args, state.pack, {*state.nodes, *brain.newest_beats()})
        except InvalidCommand as error:
            raise web.HTTPBadRequest(text=str(error)) from error
    if verb == "note" and (gone := await _no_incident(brain, str(args["id"]))):
        raise web.HTTPBadRequest(text=gone)
    name = who.name
    if verb == "approve":
        args = _of_run(args, state)
    if needs_second(verb, args, brain.config.console.two_persons):
        same = {key: value for key, value in args.items() if key != "seen"}
        text = f"{verb} {json.dumps(same, sort_keys=True, ensure_ascii=False)}"
        said = proposals.agreed(text, name, still_good, time.monotonic(), str(args.get("seen", "")))
        if said is None:
            return _waiting(brain, name, text)
        first = said.who
        name = f"{first} and {name}"
        args = {**args, "seen": args.get("seen") or said.seen} if said.seen else args
    id_ = id_ or f"{ids.COMMAND}{uuid.uuid4().hex}"
    return await _said(brain, OperatorCommand(id=id_, who=name, verb=verb, args=args), within_s)


def _of_run(args: Mapping[str, Scalar], state: State) -> Mapping[str, Scalar]:
    """An approval by its run, whether that was named or its incident: it is for no later one, and two people say the same."""
    incident = state.incidents.get(str(args["id"]))
    return {**args, "id": incident.runs[-1]} if incident is not None and incident.runs else args


async def _said(brain: BrainView, command: OperatorCommand, within_s: float) -> SaidShape:
    """Puts it on the log; with the notes that it caused."""
    try:
        seq = await brain.submit(command)
    except Unreachable as error:
        raise web.HTTPServiceUnavailable(text=str(error)) from error
    handled = await brain.live.reached(seq, within_s)
    notes: list[dict[str, Any]] = []
    if handled:
        with contextlib.suppress(Unreachable):  # it is on the log all the same
            notes = await brain.look_up(lambda history: history.notes_caused_by(command.id))
    refused = next((refusal(note) for note in notes if note["kind"] == "operator.refused"), "")
    _log.info("command of %s: %s %s", command.who, command.verb, command.args)
    return SaidShape(
        id=command.id,
        seq=seq,
        by=command.who,
        handled=handled,
        refused=refused,
        waiting="",
        notes=[shapes.note(note) for note in notes],
    )


def _answer(said: SaidShape) -> SaidShape | web.Response:
    if said.waiting:
        return json_answer(said, 202)
    if said.refused:
        return problem_answer(RefusedShape(**dict(problem(409, said.refused)), **dict(said)))
    return said


def waits(brain: BrainView, who: str, text: str) -> web.Response:
    """Returns the answer to a word that a second person must say, too."""
    return json_answer(_waiting(brain, who, text), 202)


def _waiting(brain: BrainView, who: str, text: str) -> SaidShape:
    brain.note("operator.proposed", f"{who} says {text}: it counts when a second person says the same", who)
    waiting = (
        f"{who} has said it; it counts when another person says the same within {WITHIN_S / 60:.0f} minutes"
    )
    return SaidShape(id="", seq=0, by=who, handled=False, refused="", waiting=waiting, notes=[])
