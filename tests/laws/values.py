"""Values of events: what fits a rule, and what is merely possible."""

import random
from collections.abc import Mapping
from typing import Any

from agent.contract.messages import Scalar
from brain.core.pack.spec import Match

_NO_DATA = ("severity", "component", "component_type", "count")


def component_of(scope: str) -> str:
    """The component at a scope."""
    kind, _, rest = scope.partition("/")
    return f"{kind}/{rest.partition('/')[2]}"


def data_of(match: Match) -> dict[str, Scalar]:
    """Data of an event that fits."""
    return {name: _fitting(want) for name, want in match.where.items() if name not in _NO_DATA}


def _fitting(want: Any) -> Any:
    """A value that passes a test of a rule."""
    if isinstance(want, (list, tuple)):
        return want[0]
    if not isinstance(want, Mapping):
        return want
    for name, value in want.items():
        if name in ("gte", "lte", "eq"):
            return value
        if name in ("gt", "lt"):
            return value + (1 if name == "gt" else -1)
        if name == "in":
            return value[0]
    return "x"


def any_value(chance: random.Random, type_: str) -> Scalar:
    """Of a type of the contract; some mean something."""
    values: Mapping[str, tuple[Scalar, ...]] = {
        "int": (0, 1, 79, 100000),
        "float": (0.0, 0.5, 1e6),
        "bool": (True, False),
        "text": ("", "x", "active", "failed", "SLD", "RESET_GPU"),
    }
    return chance.choice(values.get(type_, ("x",)))
