"""Wilson's bounds against values known from elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.core import wilson


@pytest.mark.parametrize(
    ("hits", "tries", "lower", "upper"),
    [
        # R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3: the score method without correction
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # statsmodels 0.14, proportion_confint(method="wilson")
        (3, 4, 0.3006, 0.9544),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_known_values(hits: int, tries: int, lower: float, upper: float) -> None:
    """To four digits."""
    assert wilson.bounds(hits, tries) == pytest.approx((lower, upper), abs=5e-5)


@given(st.integers(0, 400), st.integers(0, 400))
def test_bounds_hold_the_share_and_mirror(hits: int, misses: int) -> None:
    """Within 0 and 1, around the share, narrower with more tries; misses have the mirrored bounds."""
    tries = hits + misses
    lower, upper = wilson.bounds(hits, tries)
    assert 0 <= lower <= upper <= 1
    if tries:
        assert lower <= hits / tries + 1e-12
        assert upper >= hits / tries - 1e-12
        ten_times = wilson.bounds(10 * hits, 10 * tries)
        assert ten_times[1] - ten_times[0] < upper - lower
    assert wilson.bounds(misses, tries) == pytest.approx((1 - upper, 1 - lower))
