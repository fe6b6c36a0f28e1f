"""Numbers with what they count: `1 run`, `2 runs`, `90 seconds`."""

from collections import Counter
from collections.abc import Iterable


def counted(number: int, one: str, many: str = "") -> str:
    """`number` of a thing, in English: `many` is the plural where it is not `one` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"


_UNITS = (
    ("day", 86_400, 3600),
    ("hour", 3600, 60),
    ("minute", 60, 1),
)  # each in seconds, with the next smaller one


def span(seconds: float) -> str:
    """A length of time in the largest unit of which it has at least two, in English: `90 seconds`, `47 hours`, `28 days`.

    Rounded to the nearest; what rounds to two of a unit is told in that: `2 hours`, not `120 minutes`. Not negative, finite.
    """
    for unit, unit_s, smaller_s in _UNITS:
        if round(seconds / smaller_s) * smaller_s >= 2 * unit_s:
            return counted(int(seconds / unit_s + 0.5), unit)
    return counted(int(seconds + 0.5), "second")


def counted_names(names: Iterable[str]) -> str:
    """`8 NVIDIA H100 80GB HBM3`: sorted by name, so that equal nodes have equal texts."""
    return ", ".join(f"{number} {name}" for name, number in sorted(Counter(names).items()))
