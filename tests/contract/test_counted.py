"""Numbers with what they count."""

import pytest

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
        (7199, "120 minutes"),
        (21_600, "6 hours"),
        (28 * 86_400, "28 days"),
    ],
)
def test_a_length_of_time(seconds: float, text: str) -> None:
    """Nobody reads `0 minutes` or `1 minutes`."""
    assert span(seconds) == text
