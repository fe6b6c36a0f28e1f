"""What the lines of a log are about: set around a piece of work, and carried by every line that is logged within it.

Also by what it starts: a task, and a thread of `asyncio.to_thread`, begin with the fields of whoever started them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_fields: ContextVar[Mapping[str, str] | None] = ContextVar("log_fields", default=None)


def fields() -> Mapping[str, str]:
    """What a line that is logged here is about."""
    return _fields.get() or {}


@contextmanager
def about(
    *,
    incident: str = "",
    run: str = "",
    step: str = "",
    node: str = "",
    scope: str = "",
    kind: str = "",
    trace_id: str = "",
) -> Iterator[None]:
    """Lines in this block are about these, besides what the block around it says. `step`: also the id of a node's command;
    `kind`: of a note (docs/reference.md); `trace_id`: the incident's, where traces are told.
    """
    given = {
        "incident": incident,
        "run": run,
        "step": step,
        "node": node,
        "scope": scope,
        "kind": kind,
        "trace_id": trace_id,
    }
    token = _fields.set({**fields(), **{name: value for name, value in given.items() if value}})
    try:
        yield
    finally:
        _fields.reset(token)
