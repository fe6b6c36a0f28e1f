"""What is remembered of nodes that are well again, when other rules or places are in force. Pure."""

from collections.abc import Mapping

from agent.contract.components import NODE
from brain.core import ids
from brain.core.context import Context
from brain.core.pack.spec import Symptom


def redefined(ctx: Context, before: Mapping[str, Symptom]) -> None:
    """Other rules are in force: what was remembered for a spread of another symptom does not count for this one."""
    for remembered in (ctx.state.recovered, ctx.state.treated, ctx.state.passed):
        for key in list(remembered):
            was, now = before.get(ids.name_of(key)), ctx.compiled.symptoms.get(ids.name_of(key))
            if was is None or now is None or was.of != now.of:
                del remembered[key]


def forget_moved(ctx: Context) -> None:
    """Other places are in force: a node that recovered does not count where it stood."""
    for remembered in (ctx.state.recovered, ctx.state.passed):
        for key, begun in list(remembered.items()):
            name, place = ids.split(key)
            symptom = ctx.compiled.symptoms.get(name)
            for node in list(begun):
                now = ctx.compiled.topology.all_at(node, NODE, symptom.scope) if symptom is not None else ()
                if now and place not in now:
                    del begun[node]
            if not begun:
                del remembered[key]
