"""A bus that is not there, in words that people read."""

import pytest

from agent import dbus


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FileNotFoundError(2, "No such file or directory"), "No such file or directory"),
        (OSError("gone"), "gone"),
        (EOFError(), "EOFError"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_what_an_error_says(error: Exception, text: str) -> None:
    """The system's words, without the class and its number; only what says nothing is named."""
    assert dbus._words(error) == text
