"""Figures: what a node measured of itself during an action, as its result carries them.

In the data of a `command.result`: `figures`, a JSON object of two, `{"higher": {"nccl.bus_gb_per_s": 371.2}, "lower":
{"ib.latency_us": 1.9}}` (which direction is the better one), and `alike`, a text that is equal on nodes whose figures may
be compared. The brain compares each figure with those of the node's peers (brain/core/healing/figures.py).
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from agent.contract.errors import ContractError

MAX_FIGURES = 32  # of one result
MAX_ALIKE = 300  # characters
NAME = re.compile(r"[a-z][a-z0-9_.]{0,79}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value. The unit stands in the name: `nccl.bus_gb_per_s`."""

    name: str
    value: float
    # a latency or a count of errors: the lower the better
    lower_is_better: bool = False


def encode(figures: Iterable[Figure]) -> str:
    """The text of `figures`; of more than MAX_FIGURES the first ones."""
    directions: dict[str, dict[str, float]] = {"higher": {}, "lower": {}}
    for figure in list(figures)[:MAX_FIGURES]:
        directions["lower" if figure.lower_is_better else "higher"][figure.name] = figure.value
    return json.dumps(directions, separators=(",", ":"))


def decode(text: str) -> tuple[Figure, ...]:
    """The figures in such a text; ContractError when it does not fit.

    >>> [figure.value for figure in decode('{"higher": {"nccl.bus_gb_per_s": 371.2}}')]
    [371.2]
    """
    try:
        raw = json.loads(text)
        found = tuple(
            Figure(name=name, value=float(value), lower_is_better=direction == "lower")
            for direction in ("higher", "lower")
            for name, value in raw.get(direction, {}).items()
        )
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ContractError(f"not figures: {str(error)[:120]}") from error
    if len(found) > MAX_FIGURES:
        raise ContractError(f"at most {MAX_FIGURES} figures, not {len(found)}")
    for figure in found:
        if NAME.fullmatch(figure.name) is None or not abs(figure.value) < float("inf"):
            raise ContractError(f"not a figure: {figure.name[:80]!r} = {figure.value}")
    return found


def name_part(text: str) -> str:
    """Any text as part of a figure's name.

    >>> name_part("MT4129 (rev 0)")
    'mt4129_rev_0'
    """
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40] or "unknown"
