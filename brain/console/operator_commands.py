"""An operator command, checked, put on the log under the name of whoever logged in."""

import json
import logging
import time
import uuid

from aiohttp import web

from agent.contract.errors import Unreachable
from agent.contract.messages import clip
from brain.console import shapes
from brain.console.access.door import Door
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
from brain.console.touched import least, touched
from brain.core import ids
from brain.core.inputs import OperatorCommand

_log = logging.getLogger(__name__)
HANDLED_S = 5.0  # how long the answer waits until the engine has handled it


def routes(brain: BrainView, door: Door, proposals: Proposals) -> list[Route]:
    """Returns the route. Every viewer gets as far as the check of the command itself, which knows its role."""

    async def give(asked: Checked[Nothing, CommandBody]) -> SaidShape | web.Response:
        state, request = brain.live.state, asked.http
        verb, args = asked.body.said
        door.demand(
            request,
            person(request),
            least(verb, args, ROLES),
            touched(verb, args, state, person(request).name),
            state.pack.places if state.pack else None,
        )
        if brain.live.caught_up and state.pack is not None:
            try:
                check_names(verb, args, state.pack, {*state.nodes, *brain.newest_beats()})
            except InvalidCommand as error:
                raise web.HTTPBadRequest(text=str(error)) from error
        if verb == "note" and (gone := _no_incident(brain, str(args["id"]))):
            raise web.HTTPBadRequest(text=gone)
        who = person(request).name
        if needs_second(verb, args, brain.config.console.two_persons):
            text = f"{verb} {json.dumps(args, sort_keys=True, ensure_ascii=False)}"
            first = proposals.agreed(text, who, door.credential(request), time.monotonic())
            if not first:
                return waits(brain, who, text)
            who = f"{first} and {who}"
        return await _said(
            brain, OperatorCommand(id=f"{ids.COMMAND}{uuid.uuid4().hex}", who=who, verb=verb, args=args)
        )

    # Everybody with a credential may ask; the role depends on the command.
    return [serve(table.COMMAND, give)]


def _no_incident(brain: BrainView, named: str) -> str:
    """Why nobody would find a note on this; empty: there is, or was, such an incident."""
    wanted = named.partition(".r")[0]
    found = brain.readmodel.incident(wanted)
    return "" if found is not None and found["id"] == wanted else f"no incident {clip(wanted, 80)!r}"


async def _said(brain: BrainView, command: OperatorCommand) -> SaidShape | web.Response:
    """Puts it on the log, and answers with the notes that it caused."""
    try:
        seq = await brain.submit(command)
    except Unreachable as error:
        raise web.HTTPServiceUnavailable(text=str(error)) from error
    handled = await brain.live.reached(seq, HANDLED_S)
    notes = brain.readmodel.notes_caused_by(command.id) if handled else []
    refused = next((note["text"] for note in notes if note["kind"] == "operator.refused"), "")
    _log.info("command of %s: %s %s", command.who, command.verb, command.args)
    said = SaidShape(
        id=command.id,
        seq=seq,
        by=command.who,
        handled=handled,
        refused=refused,
        waiting="",
        notes=[shapes.note(note) for note in notes],
    )
    if not refused:
        return said
    return problem_answer(RefusedShape(**dict(problem(409, refused)), **dict(said)))


def waits(brain: BrainView, who: str, text: str) -> web.Response:
    """Returns the answer to a word that a second person must say, too."""
    brain.note("operator.proposed", f"{who} says {text}: it counts when a second person says the same", who)
    waiting = (
        f"{who} has said it; it counts when another person says the same within {WITHIN_S / 60:.0f} minutes"
    )
    return json_answer(
        SaidShape(id="", seq=0, by=who, handled=False, refused="", waiting=waiting, notes=[]), 202
    )
