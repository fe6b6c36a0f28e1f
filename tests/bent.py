"""What somebody else answers in a form that nobody expects: a right answer with something odd in each of its places."""

from collections.abc import Iterator
from typing import Any

ODD: tuple[Any, ...] = (
    *(None, 0, -1.5, 1e308, True, "", "²", "\x1b[2J\n", "\ud800", "9" * 5000, "2026-99-99T00:00:00Z"),
    *([], [None], [[]], ["x"], {}, {"": None}, {"x": {"x": 1}}),
)


def bent(value: Any) -> Iterator[Any]:
    """Yields the value with something odd in one place after the other, and without it where that can be."""
    yield from ODD
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: odd} for odd in bent(inner))
            yield {name: one for name, one in value.items() if name != key}
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from ([*value[:number], odd, *value[number + 1 :]] for odd in bent(inner))
