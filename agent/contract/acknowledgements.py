"""What the brain tells a node about its events: which of them are on the log, and where.

`[["<event id>", <place>], ...]` as JSON. The place is the event's position on the log; 0: the brain has taken the event
and leaves it out (the node says too much, see brain/leader/quotas.py). An empty list answers a beat that asks.
"""

from collections.abc import Sequence
from typing import Any

from agent.contract.errors import ContractError

LEFT_OUT = 0
MAX_ENTRIES = 1000


def encode_acknowledgement(entries: Sequence[tuple[str, int]]) -> list[list[Any]]:
    """A JSON-ready list. `entries`: (event id, position on the log)."""
    return [[event, place] for event, place in entries]


def decode_acknowledgement(raw: Any) -> list[tuple[str, int]]:
    """(event id, position on the log) each; ContractError when it does not fit."""
    if not isinstance(raw, list) or len(raw) > MAX_ENTRIES:
        raise ContractError("an acknowledgement is a list of [event id, position]")
    entries = []
    for entry in raw:
        match entry:
            case [str() as event, int() as place] if place >= 0:
                entries.append((event, place))
            case _:
                raise ContractError("an acknowledgement is a list of [event id, position]")
    return entries
