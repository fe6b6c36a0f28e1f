"""Numbers with what they count."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.counted import counted, span


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 runs"), (1, "1 run"), (2, "2 runs")],
)
def test_one_is_singular(number: int, text: str) -> None:
    """Everything else has an s, or the plural that is given."""
    assert counted(number, "run") == text
    assert counted(number, "inquiry", "inquiries").split()[1] == ("inquiry" if number == 1 else "inquiries")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 seconds"),
        (1, "1 second"),
        (60, "60 seconds"),
        (119.4, "119 seconds"),
        (120, "2 minutes"),
        (119.6, "2 minutes"),
        (150, "3 minutes"),
        (7169, "119 minutes"),
        (7199, "2 hours"),
        (172_799, "2 days"),
        (21_600, "6 hours"),
        (28 * 86_400, "28 days"),
    ],
)
def test_a_length_of_time(seconds: float, text: str) -> None:
    """Nobody reads `0 minutes` or `1 minutes`."""
    assert span(seconds) == text


UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}


LENGTHS = st.one_of(
    st.floats(min_value=0, max_value=1e9),
    st.builds(
        lambda number, unit, off: max(0.0, number * UNITS[unit] + off),
        st.integers(0, 200),
        st.sampled_from(sorted(UNITS)),
        st.floats(-2.0, 2.0),
    ),
)


def read(text: str) -> tuple[int, float]:
    """(number, seconds of its unit)."""
    number, unit = text.split()
    assert unit.endswith("s") == (number != "1")
    return int(number), UNITS[unit.removesuffix("s")]


@given(LENGTHS)
def test_what_is_read_is_near_and_in_the_largest_unit(seconds: float) -> None:
    """At most half a unit away; never as many as two of the next larger one, nor fewer than two but of seconds."""
    number, unit_s = read(span(seconds))
    assert abs(number * unit_s - seconds) <= unit_s / 2
    assert all(number * unit_s < 2 * larger for larger in UNITS.values() if larger > unit_s)
    assert number >= 2 or unit_s == 1


@given(st.lists(LENGTHS, min_size=2))
def test_longer_is_never_read_as_shorter(lengths: list[float]) -> None:
    """Whoever compares two of them is not misled."""
    told = [number * unit_s for number, unit_s in (read(span(one)) for one in sorted(lengths))]
    assert all(one <= other for one, other in pairwise(told))
