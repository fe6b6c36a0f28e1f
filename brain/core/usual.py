"""What nodes that are like each other usually have: the counts behind `unlike` (likes.py). Derived from what nodes said."""

import json
from collections import Counter
from functools import lru_cache

from brain.core.spec import Symptom
from brain.core.state import State

Group = tuple[str, ...]


class Likes:
    """What one symptom's likes have: group -> value -> number of nodes."""

    def __init__(self, symptom: Symptom, state: State) -> None:
        self._symptom = symptom
        self._counts: dict[Group, Counter[str]] = {}
        prefix = f"{symptom.on[0].kind} "
        for key, text in state.likes.items():
            if key.startswith(prefix):
                self.add(text, 1)

    def place(self, text: str) -> tuple[Group, str] | None:
        """Group and value of a node; None: it does not say what is compared."""
        said = _read(text)
        if not said.get(self._symptom.compare) or not all(said.get(name) for name in self._symptom.alike):
            return None
        return tuple(said[name] for name in self._symptom.alike), said[self._symptom.compare]

    def add(self, text: str, number: int) -> None:
        """So many nodes more (or less) that say this."""
        if (place := self.place(text)) is not None:
            counts = self._counts.setdefault(place[0], Counter())
            counts[place[1]] += number
            if counts[place[1]] <= 0:
                del counts[place[1]]

    def usual(self, group: Group) -> str:
        """The value that most of a group have; empty: there is none that counts."""
        counts = self._counts.get(group)
        if not counts:
            return ""
        value, most = counts.most_common(1)[0]
        enough = most >= self._symptom.at_least and most >= self._symptom.share * counts.total()
        return value if enough else ""

    def text(self, place: tuple[Group, str]) -> str:
        """For people: how the node differs."""
        counts, usual = self._counts[place[0]], self.usual(place[0])
        return f"{self._symptom.compare} is {place[1]}; {counts[usual]} of {counts.total()} nodes like it have {usual}"


@lru_cache(maxsize=4096)  # of a fleet few are different
def _read(text: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(text)
    return found
