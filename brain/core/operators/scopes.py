"""Scopes that operators name: only those that exist. A misspelt one would stop nothing."""

from difflib import get_close_matches

from brain.core.context import Context
from brain.core.pack.topology import CELL, SCOPES, WIDE, node_of, type_of

ALL = "all"


def unknown(ctx: Context, scope: str) -> str:
    """Why there is no such scope, with what may be meant; empty: it exists."""
    if scope in (ALL, CELL):
        return ""
    nodes = list(dict.fromkeys((*ctx.state.nodes, *ctx.compiled.pack.places)))
    kind, node = type_of(scope), node_of(scope)
    if kind in SCOPES and kind not in (*WIDE, "node", CELL) and node in nodes and scope.count("/") >= 2:
        return ""  # a component: a hold may come before anything was heard of it
    known = [ALL, CELL, *(f"node/{name}" for name in nodes)]
    known += dict.fromkeys(
        place for name in nodes for place in ctx.compiled.topology.above(name) if place != CELL
    )
    if scope in known:
        return ""
    near = get_close_matches(scope, known, n=3, cutoff=0.5) or [
        f"{each}/<name>" for each in ("node", "leaf", "rack")
    ]
    return f"there is no scope {scope!r} here: did you mean {' or '.join(near)}? (`{ALL}` is the whole cell)"
