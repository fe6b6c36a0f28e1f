"""Rules and runbooks: what is in force, with figures from the history."""

from collections.abc import Sequence
from typing import TypeVar

from aiohttp import web

from agent.contract.messages import clip
from brain.console.access.route import Route
from brain.console.answers import encoded
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.pack_shapes import RuleListShape, RulesQuery, RunbookListShape, RunbooksQuery
from brain.console.api.pages import Paged, cursor, place
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, History
from brain.console.globs import glob
from brain.console.pack import show
from brain.console.pack.figures import Counting
from brain.console.reading import Reading
from brain.core.pack.shared import rule_named
from brain.core.pack.spec import ModeSetting, Pack, Rule, Runbook
from brain.core.state import ModeOverride

_NONE = Pack(version="", symptoms=(), rules=(), runbooks=())
Named = TypeVar("Named", Rule, Runbook)


def routes(brain: BrainView, reading: Reading) -> list[Route]:
    """Returns the routes; all count in the thread of `reading`."""
    counting = Counting()

    async def rules(asked: Checked[RulesQuery, Nothing]) -> web.StreamResponse:
        query, pack = asked.query, brain.live.state.pack or _NONE
        sources = brain.pack_sources(pack.version)
        found, following = _page("rules", query, _fitting(query, pack.rules))

        def work(history: History) -> bytes:
            figures = counting.figures(history)
            entries = [show.rule(one, figures, sources) for one in found]
            return encoded(RuleListShape(rules=entries, pack=pack.version, next=following))

        return await reading.answer(asked.http, work)

    async def rule(asked: Checked[Nothing, Nothing]) -> web.StreamResponse:
        pack = brain.live.state.pack or _NONE
        sources = brain.pack_sources(pack.version)

        def work(history: History) -> bytes:
            spec = rule_named(pack, asked.name)
            if spec is None:
                raise web.HTTPNotFound(text=f"no rule {clip(asked.name, 80)!r} is in force")
            return encoded(show.rule_in_full(spec, pack, counting.figures(history), sources))

        return await reading.answer(asked.http, work)

    async def runbooks(asked: Checked[RunbooksQuery, Nothing]) -> web.StreamResponse:
        query, pack = asked.query, brain.live.state.pack or _NONE
        sources = brain.pack_sources(pack.version)
        name = glob(query.name or "*")
        found, following = _page("runbooks", query, [one for one in pack.runbooks if name(one.name)])

        def work(history: History) -> bytes:
            figures = counting.figures(history)
            entries = [show.runbook(one, pack, figures, sources) for one in found]
            return encoded(RunbookListShape(runbooks=entries, pack=pack.version, next=following))

        return await reading.answer(asked.http, work)

    async def runbook(asked: Checked[Nothing, Nothing]) -> web.StreamResponse:
        state = brain.live.state
        pack = state.pack or _NONE
        sources = brain.pack_sources(pack.version)
        modes: list[ModeSetting | ModeOverride] = [*pack.settings.modes, *state.modes]
        spec = next((one for one in pack.runbooks if one.name == asked.name), None)
        if spec is None:
            raise web.HTTPNotFound(text=f"no runbook {clip(asked.name, 80)!r} is in force")

        def work(history: History) -> bytes:
            said = history.modes_said()
            figures = counting.figures(history)
            return encoded(show.runbook_in_full(spec, pack, figures, sources, modes, said))

        return await reading.answer(asked.http, work)

    return [
        serve(table.RULES, rules),
        serve(table.RULE, rule),
        serve(table.RUNBOOKS, runbooks),
        serve(table.RUNBOOK, runbook),
    ]


def _fitting(query: RulesQuery, rules: Sequence[Rule]) -> list[Rule]:
    name, cause, scope, runbook = (
        glob(pattern or "*") for pattern in (query.name, query.cause, query.scope, query.runbook)
    )
    return [
        one
        for one in rules
        if name(one.name)
        and cause(one.cause or one.name)
        and scope(one.scope)
        and runbook(one.runbook)
        and query.severity in (None, one.severity)
    ]


def _page(list_: str, query: Paged, named: Sequence[Named]) -> tuple[list[Named], str]:
    """One page of what has names, and the cursor of the next one."""
    after = place(list_, query.cursor, str)
    rest = [one for one in sorted(named, key=lambda one: one.name) if after is None or one.name > after[0]]
    found = rest[: query.limit] if query.limit else rest
    return found, cursor(list_, found[-1].name) if len(found) < len(rest) else ""
