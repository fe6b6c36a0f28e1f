"""How the command line breaks text: by the columns that it takes on a terminal, in English and in Chinese."""

import textwrap

import pytest
from rich.cells import cell_len

from brain.cli.terminal import hanging
from tests.shipped import shipped_pack

KNOWLEDGE = [rule.knowledge for rule in shipped_pack().rules]


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_of_chinese_is_too_long(width: int) -> None:
    """A character takes two columns. No line begins with a stop."""
    for one in KNOWLEDGE:
        for text in (one.cause.zh, one.todo.zh):
            lines = list(hanging("  to do:    ", text, width))
            assert max(map(cell_len, lines)) <= width
            assert not [line for line in lines if line.strip()[:1] in "，。；：、）"]


def test_chinese_has_no_blanks_where_its_source_was_broken() -> None:
    """Between Chinese and a name of letters one stands, as it was written."""
    assert list(hanging("", "检查风扇，\n  再检查\n该卡。用 gpuward\nreturn 恢复，\nGPU", 80)) == [
        "检查风扇，再检查该卡。用 gpuward return 恢复，GPU"
    ]


@pytest.mark.parametrize("width", [30, 80])
def test_english_is_broken_between_words(width: int) -> None:
    """As the standard library does it; ids and paths stay whole."""
    texts = [text for one in KNOWLEDGE for text in (one.cause.en, one.todo.en)]
    for text in [
        *texts,
        "see /sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error and ask -- twice",
        "",
    ]:
        expected = textwrap.wrap(
            " ".join(text.split()), width, break_long_words=False, break_on_hyphens=False
        )
        assert list(hanging("", text, width)) == (expected or [""])


@pytest.mark.parametrize("width", [10, 16, 20, 24, 30])
@pytest.mark.parametrize("head", ["", "  to do:    ", "    gate         "])
def test_a_very_narrow_terminal_is_not_overflown(head: str, width: int) -> None:
    """What stands beside its head elsewhere stands below it there: no line is wider than its widest word."""
    for text in ("ask the owner of this node and look", "检查风扇，再检查该卡。用命令恢复"):
        lines = list(hanging(head, text, width))
        assert max(map(cell_len, lines)) <= max(width, cell_len(head.rstrip()))
        assert "".join("".join(lines).split()) == "".join((head + text).split())
