"""Numbers with what they count."""

import pytest

from agent.contract.counted import counted


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 runs"), (1, "1 run"), (2, "2 runs")],
)
def test_one_is_singular(number: int, text: str) -> None:
    """Everything else has an s, or the plural that is given."""
    assert counted(number, "run") == text
    assert counted(number, "inquiry", "inquiries").split()[1] == ("inquiry" if number == 1 else "inquiries")
