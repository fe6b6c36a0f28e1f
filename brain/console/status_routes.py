"""What the brain knows now: its own state, and its nodes."""

import asyncio
import time
from collections.abc import Callable

from aiohttp import web

from agent import __version__
from agent.shared.words import t
from brain.console import shapes
from brain.console.access.route import Route, person
from brain.console.access.two_persons import Proposals
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.pages import cursor, place
from brain.console.api.serving import Checked, serve
from brain.console.api.status_shapes import (
    NodeListShape,
    NodeShape,
    NodesQuery,
    ProposalShape,
    StatusShape,
    TroubleShape,
)
from brain.console.brain_view import BrainView, History, NodeBeat
from brain.console.globs import glob
from brain.console.node import facts as node_facts
from brain.console.node import show
from brain.console.reading import Reading
from brain.console.speech import quoted, told
from brain.core.pack.rulebook import MATCHER
from brain.core.pack.spec import Place
from brain.core.state import IncidentState, Node, State

_OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)
_NODES_AT_ONCE = 200


def routes(brain: BrainView, reading: Reading, proposals: Proposals) -> list[Route]:
    """Returns the routes."""

    async def status(asked: Checked[Nothing, Nothing]) -> StatusShape:
        live = brain.live
        known = bool(person(asked.http).how)
        state = live.state
        nodes = state.nodes.values()
        unreachable = sum(not node.alive for node in nodes)
        return StatusShape(
            brain=brain.name,
            version=__version__,
            cell=brain.config.cell,
            config_file=str(brain.config.file or "") if known else "",
            data_dir=str(brain.config.data_dir) if known else "",
            leads=live.leads(),
            leader=state.leader,
            epoch=state.epoch,
            connected=brain.connected(),
            caught_up=live.caught_up,
            stopped=told(live.stopped),
            breaker_since=shapes.iso(state.tripped),
            pages_failing=_pages_failing(state),
            archive_failing=brain.archive.failing,
            troubles=[
                TroubleShape(cause=cause, text=told(text), since=shapes.iso(since))
                for cause, text, since in brain.troubles()
            ],
            seq=live.seq,
            log_time=shapes.iso(state.now),
            started_at=shapes.iso(brain.started_at),
            pack=state.pack.version if state.pack else "",
            rules=len(state.pack.rules) if state.pack else 0,
            runbooks=len(state.pack.runbooks) if state.pack else 0,
            matcher=str(MATCHER),
            nodes=len(nodes),
            nodes_unreachable=unreachable,
            nodes_silent=unreachable,  # its name in version 0.1, kept until 0.3
            incidents_open=sum(one.state not in _OVER for one in state.incidents.values()),
            inputs=live.inputs,
            malformed=state.malformed,
            busy_s=round(live.busy_s, 3),
            holds=shapes.holds(state),
            modes=shapes.modes(state),
            proposals=[
                ProposalShape(who=one.who, text=one.text) for one in proposals.waiting(time.monotonic())
            ],
        )

    async def nodes(asked: Checked[NodesQuery, Nothing]) -> NodeListShape:
        query, state = asked.query, brain.live.state
        places = state.pack.places if state.pack else {}
        beats = brain.newest_beats()
        after = place("nodes", query.cursor, str)
        fits = _fitting(query)
        found: list[NodeShape] = []
        for number, name in enumerate(sorted({*state.nodes, *beats})):
            if number % _NODES_AT_ONCE == 0:
                await asyncio.sleep(0)
            if after and name <= after[0]:
                continue
            node = _node(name, state.nodes.get(name), beats.get(name), places.get(name))
            if fits(node):
                if len(found) == query.limit:
                    return NodeListShape(nodes=found, next=cursor("nodes", found[-1].name))
                found.append(node)
        return NodeListShape(nodes=found, next="")

    async def node(asked: Checked[Nothing, Nothing]) -> web.StreamResponse:
        state, name = brain.live.state, asked.name
        place = (state.pack.places if state.pack else {}).get(name)
        shown = _node(name, state.nodes.get(name), brain.newest_beats().get(name), place)
        now = node_facts.of(state, shown)

        def work(history: History) -> bytes:
            if (found := show.node(now, history)) is None:
                raise web.HTTPNotFound(text=t("no node {name}", name=quoted(name)))
            return encoded(found)

        return await reading.answer(asked.http, work)

    async def card(asked: Checked[Nothing, Nothing]) -> web.StreamResponse:
        serial = asked.http.match_info["serial"]

        def work(history: History) -> bytes:
            if (found := show.card(serial, history)) is None:
                raise web.HTTPNotFound(text=t("no card {serial}", serial=quoted(serial)))
            return encoded(found)

        return await reading.answer(asked.http, work)

    return [
        serve(table.STATUS, status),
        serve(table.NODES, nodes),
        serve(table.NODE, node),
        serve(table.CARD, card),
    ]


def _node(name: str, node: Node | None, beat: NodeBeat | None, place: Place | None) -> NodeShape:
    return NodeShape(
        name=name,
        alive=node.alive if node else beat is not None,
        boot=node.boot if node else "",
        beat_age_s=round(beat.age_s, 3) if beat else None,
        version=beat.version if beat else "",
        spooled=beat.spooled if beat else None,
        dropped=beat.dropped if beat else None,
        clock_ahead_s=round(beat.clock_ahead_s, 3) if beat and beat.clock_ahead_s is not None else None,
        chassis=place.chassis if place else "",
        leaf=place.leaf if place else "",
        rack=place.rack if place else "",
        pod=place.pod if place else "",
    )


def _pages_failing(state: State) -> int:
    waiting = (one.pages.waiting for some in (state.incidents, state.alert_groups) for one in some.values())
    return sum(bool(page.tries) for pages in waiting for page in pages.values())


def _fitting(query: NodesQuery) -> Callable[[NodeShape], bool]:
    """Returns what says whether a node is asked for."""
    name, rack, leaf = (glob(pattern or "*") for pattern in (query.name, query.rack, query.leaf))

    def fits(node: NodeShape) -> bool:
        return query.alive in (None, node.alive) and name(node.name) and rack(node.rack) and leaf(node.leaf)

    return fits
