"""The scope that a person is told to type after `gpuward hold`: one word for one thing, in pages and on the command line."""

import shlex

from brain.core.operators.scopes import ALL
from brain.core.pack.topology import CELL


def to_hold(node: str, scope: str) -> str:
    """Returns what stops everything on what a fault touches: its node, or all that shares it."""
    if node:
        return f"node/{node}"
    return ALL if scope in ("", CELL) else shlex.quote(scope)
