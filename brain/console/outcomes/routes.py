"""What remedies came to, and what the planned ones would have, reckoned in the thread of the reads."""

from collections import defaultdict

from aiohttp import web

from brain.console import shapes
from brain.console.access.route import Route
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing, TwoLanguagesShape
from brain.console.api.outcome_shapes import MOST, ReadinessQuery, ReadinessShape, RemediesQuery
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, History
from brain.console.globs import glob
from brain.console.outcomes import cases, readiness, remedies
from brain.console.outcomes.cases import PlannedCase
from brain.console.reading import Reading, Rests
from brain.console.shapes import Json
from brain.core.healing import modes
from brain.core.pack.spec import Mode
from brain.core.state import State

_DAY_S = 86_400.0
_NOT_KNOWN = [
    TwoLanguagesShape(
        en="Whether somebody helped who told gpuward nothing: such a fault counts as one that ended by itself.",
        zh="是否有人出手而没有告诉 gpuward：这样的故障算作自行结束。",
    ),
    TwoLanguagesShape(
        en="Who started a node anew: people, or a crash of its own.",
        zh="节点由谁重新启动：是人员，还是它自己崩溃。",
    ),
    TwoLanguagesShape(
        en="Drains of others, unless the scheduler was asked before a step: in observe mode it is not.",
        zh="他人所做的排空，除非在某一步之前询问过调度器：observe 模式下不会询问。",
    ),
]


def routes(brain: BrainView, reading: Reading) -> list[Route]:
    """Returns the routes."""
    rests = Rests()

    async def what_helped(asked: Checked[RemediesQuery, Nothing]) -> web.StreamResponse:
        query, state = asked.query, brain.live.state
        since = max(0.0, state.now - query.days * _DAY_S)
        runbook, cause = glob(query.runbook or "*"), glob(query.cause or "*")
        books = state.pack.runbooks if state.pack else ()
        ladders = {one.name: [rung.name for rung in one.rungs] for one in books}
        taken_back, now = [one for one in state.modes if one.why and runbook(one.runbook)], state.now

        def work(history: History) -> bytes:
            found = history.tried_since(since, MOST + 1)
            fitting = [one for one in found[:MOST] if runbook(one["runbook"]) and cause(one["cause"])]
            rests.pause()
            whole = len(found) <= MOST
            return encoded(
                remedies.remedies(fitting, taken_back, ladders, since=since, until=now, whole=whole)
            )

        return await reading.answer(asked.http, work)

    async def what_would_have(asked: Checked[ReadinessQuery, Nothing]) -> web.StreamResponse:
        query, state = asked.query, brain.live.state
        since, now = max(0.0, state.now - query.days * _DAY_S), state.now
        fits = glob(query.runbook or "*")
        books = [one for one in (state.pack.runbooks if state.pack else ()) if fits(one.name)]
        general = {one.name: _mode(state, one.name, one.at_most) for one in books}
        why = {one.runbook: one.why for one in state.modes if one.why}

        def work(history: History) -> bytes:
            raw = history.runs_since(since, MOST + 1)
            found = _cases(history, raw[:MOST], general, now, rests)
            made = [
                readiness.ready(one, general[one.name], why.get(one.name, ""), found[one.name])
                for one in books
                if general[one.name] is not Mode.AUTO or found[one.name]
            ]
            made.sort(key=lambda one: (-one.planned, one.runbook))
            return encoded(
                ReadinessShape(
                    since=shapes.iso(since),
                    until=shapes.iso(now),
                    whole=len(raw) <= MOST,
                    runbooks=made,
                    not_known=[one.en for one in _NOT_KNOWN],
                    not_known_texts=_NOT_KNOWN,
                )
            )

        return await reading.answer(asked.http, work)

    return [serve(table.REMEDIES, what_helped), serve(table.READINESS, what_would_have)]


def _mode(state: State, runbook: str, at_most: Mode) -> Mode:
    site = state.pack.settings.modes if state.pack else ()
    return modes.in_force(site, state.modes, runbook, "*", at_most)


def _cases(
    history: History, raw: list[Json], wanted: dict[str, Mode], now: float, rests: Rests
) -> defaultdict[str, list[PlannedCase]]:
    """Runbook -> its cases, the newest first: each incident once, by the first run of it that was planned."""
    found: defaultdict[str, list[PlannedCase]] = defaultdict(list)
    on_node: defaultdict[str, list[Json]] = defaultdict(list)
    by_incident: defaultdict[str, list[Json]] = defaultdict(list)
    for run in reversed(raw):
        on_node[run["node"]].append(run)
        by_incident[run["incident"]].append(run)
    for id_, runs in reversed(by_incident.items()):
        first = next((run for run in runs if cases.planned(run) and run["runbook"]["name"] in wanted), None)
        incident = history.incident(id_) if first is not None else None
        if first is None or incident is None:
            continue
        rests.pause()
        node, began = first["node"], first["started_at"]
        until = incident["closed_at"] or now
        boots = [
            at
            for at in (history.boots_of(node, began, until) if node else ())
            if not cases.by_us(at, on_node[node])
        ]
        said = history.said_about(id_, node, began, until)
        stopped = history.stopped(first["id"], id_)
        found[first["runbook"]["name"]].append(cases.case(first, runs, incident, boots, said, stopped, now))
    return found
