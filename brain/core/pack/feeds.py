"""Which symptoms an event may feed, found by one look instead of a test of each. Pure.

Of one kind of event many symptoms ask the same field for one value (`code: 79`): the field that most of them ask is looked up.
What is found still has to pass all of its tests; what is left out could not have passed them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent.contract.messages import Event, Scalar
from brain.core.pack import conditions
from brain.core.pack.spec import Match, Symptom
from brain.core.pack.topology import type_of

_ENVELOPE = ("severity", "component", "component_type", "count")  # what `where` may name beside data fields
_Tests = tuple[
    tuple[str, Callable[[Scalar | None], bool]], ...
]  # a field's name, and whether its value passes


class Where:
    """The tests of a match, made ready for many events."""

    __slots__ = ("data", "envelope")

    def __init__(self, where: Mapping[str, Any]) -> None:
        tests = [(name, conditions.ready(want)) for name, want in where.items()]
        self.data: _Tests = tuple(each for each in tests if each[0] not in _ENVELOPE)
        self.envelope: _Tests = tuple(each for each in tests if each[0] in _ENVELOPE)


Feed = tuple[Symptom, Where, bool]  # True: the match is in `on`, False: in `clear`


class Feeds:
    """The feeds of one kind, in the pack's order."""

    def __init__(self, feeds: Sequence[tuple[Symptom, Match, bool]]) -> None:
        asked = Counter(name for _, match, _ in feeds for name in match.where if _values(match, name))
        self._field = asked.most_common(1)[0][0] if asked else ""
        made = [(match, (symptom, Where(match.where), starts)) for symptom, match, starts in feeds]
        self._by: dict[Scalar, tuple[Feed, ...]] = {
            value: tuple(feed for match, feed in made if self._may(match, value))
            for value in {value for match, _ in made for value in _values(match, self._field)}
        }
        self._others = tuple(feed for match, feed in made if not _values(match, self._field))

    def of(self, event: Event) -> tuple[Feed, ...]:
        """Those that an event may feed."""
        value = field_of(event, self._field) if self._field else None
        return self._others if value is None else self._by.get(value, self._others)

    def _may(self, match: Match, value: Scalar) -> bool:
        values = _values(match, self._field)
        return not values or value in values


def field_of(event: Event, name: str) -> Scalar | None:
    """What `where` calls by this name: of the envelope, else of the data; None: the event does not have it."""
    if name == "severity":
        return event.severity
    if name == "component":
        return event.component
    if name == "component_type":
        return type_of(event.component)
    if name == "count":
        return event.count
    return event.data.get(name)


def _values(match: Match, name: str) -> tuple[Scalar, ...]:
    """The values of which the field must have one; empty: it is tested in another way, or not at all."""
    want = match.where.get(name)
    if isinstance(want, (str, int, float)):
        return (want,)
    return tuple(want) if isinstance(want, (list, tuple)) else ()
