"""The baseline of comparable nodes: which value most of them have. It serves `detect: unlike` (faults/drift.py).

Derived from `State.peers`: for each node the values that it last reported, as one JSON text.
"""

import json
from collections import Counter
from functools import lru_cache

from brain.core.pack.spec import Symptom
from brain.core.state import State

PARTS = "; "  # between the parts of a text, such as parameters or mounts
Group = tuple[str, ...]  # values of the `alike` fields: nodes with equal ones are compared


class Baseline:
    """For one `unlike` symptom: group -> value of the compared field -> number of nodes."""

    def __init__(self, symptom: Symptom, state: State) -> None:
        self._symptom = symptom
        self._counts: dict[Group, Counter[str]] = {}
        prefix = f"{symptom.on[0].kind} "
        for key, values in state.peers.items():
            if key.startswith(prefix):
                self.count(values, 1)

    def locate(self, values: str) -> tuple[Group, str] | None:
        """(group, value) of a node that reported `values`; None: it lacks one of the fields."""
        fields = parsed(values)
        if not fields.get(self._symptom.compare) or not all(fields.get(name) for name in self._symptom.alike):
            return None
        return tuple(fields[name] for name in self._symptom.alike), fields[self._symptom.compare]

    def count(self, values: str, number: int) -> None:
        """Counts `number` nodes more (negative: fewer) that report `values`."""
        if (place := self.locate(values)) is not None:
            counts = self._counts.setdefault(place[0], Counter())
            counts[place[1]] += number
            if counts[place[1]] <= 0:
                del counts[place[1]]

    def value(self, group: Group) -> str:
        """The value of most nodes in a group; empty: too few of them agree."""
        counts = self._counts.get(group)
        if not counts:
            return ""
        value, most = counts.most_common(1)[0]
        enough = most >= self._symptom.at_least and most >= self._symptom.share * counts.total()
        return value if enough else ""

    def difference(self, group: Group, value: str) -> str:
        """A sentence for people: how a node with `value` differs from its group. Of texts in parts, the parts that differ."""
        counts, most = self._counts[group], self.value(group)
        value, baseline = apart(value, most)
        return f"{self._symptom.compare} is {value}; {counts[most]} of {counts.total()} nodes like it have {baseline}"


def apart(value: str, other: str) -> tuple[str, str]:
    """The parts that only one of them has, as each of them has them."""
    here, usual = value.split(PARTS), other.split(PARTS)
    return (
        PARTS.join(part for part in here if part not in usual) or "-",
        PARTS.join(part for part in usual if part not in here) or "-",
    )


@lru_cache(maxsize=4096)  # most nodes of a fleet report the same
def parsed(values: str) -> dict[str, str]:
    """What a node last reported, as State.peers keeps it."""
    found: dict[str, str] = json.loads(values)
    return found
