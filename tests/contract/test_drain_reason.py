"""The reason with which a prolog drains: read back as its own, and a person's never taken for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.drain_reason import MAX_WORDS, words_of, written


@given(st.text())
def test_what_is_written_is_read(words: str) -> None:
    """Whatever the words are; one short line of printable ASCII without what scontrol could misread."""
    reason = written(words)
    assert reason.isascii()
    assert reason.isprintable()
    assert len(reason) < MAX_WORDS + 30
    assert not set("\"'\\`[]") & set(reason)
    assert words_of(reason) == reason.removeprefix("gpuward-agent: ").rpartition(" #")[0]


@pytest.mark.parametrize(
    "reason",
    [
        "",
        "Prolog error",
        "ann: new DIMMs",
        "gpuward-agent: GPU 0000:3b:00 is lost (lost)",
        "gpuward-agent: I took the card out #5c0e",
        "ann: see gpuward-agent: GPU 0000:3b:00 is lost (lost) #0000",
        written("GPU 0000:3b:00 is lost") + " and ann has it",
        "ann: " + written("GPU 0000:3b:00 is lost"),
        written("GPU 0000:3b:00 is lost").replace("3b", "3c"),
        written("GPU 0000:3b:00 is lost").replace("gpuward-agent", "gpuward"),
    ],
)
def test_the_words_of_others_are_theirs(reason: str) -> None:
    """A person's, Slurm's, and ours that somebody has changed or added to."""
    assert words_of(reason) == ""
