"""The colours of `gpuward top` can be read on what stands behind them (WCAG 2, AA: 4.5 to 1 for text)."""

import pytest
from rich.style import Style
from rich.text import Text

from brain.cli.top.ground import INKS, Ground, of_terminal, read, readable, style
from tests.contrast import AA, contrast

# The backgrounds that terminals come with.
DARK = {
    "xterm": "#000000", "ubuntu": "#300a24", "vscode": "#1e1e1e", "solarized": "#002b36", "nord": "#2e3440", "gnome": "#1e1e1e",
    "windows": "#0c0c0c", "iterm": "#15191f",
}  # fmt: skip
LIGHT = {
    "xterm": "#ffffff", "solarized": "#fdf6e3", "gnome": "#fffff0", "linen": "#faf0e6", "grey": "#eeeeee", "macos": "#ffffff",
}  # fmt: skip


@pytest.mark.parametrize(
    ("ground", "terminal", "behind"),
    [(ground, *row) for ground, rows in ((Ground.DARK, DARK), (Ground.LIGHT, LIGHT)) for row in rows.items()],
)
def test_each_colour_can_be_read(ground: Ground, terminal: str, behind: str) -> None:
    assert {
        ink: round(contrast(colour, behind), 1)
        for ink, colour in INKS[ground].items()
        if contrast(colour, behind) < AA
    } == {}, terminal


def test_the_banner_can_be_read() -> None:
    """It brings its own background."""
    assert contrast("#ffffff", "#af0000") > AA


@pytest.mark.parametrize(
    ("answer", "ground"),
    [
        (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;c", Ground.LIGHT),
        (b"\x1b]11;rgb:fd/f6/e3\x07\x1b[?1;2c", Ground.LIGHT),
        (b"\x1b]11;rgba:0000/0000/0000/ffff\x1b\\", Ground.DARK),
        (b"\x1b]11;rgb:2e2e/3434/4040\x07", Ground.DARK),
        (b"\x1b]11;rgb:8080/8080/8080\x07", Ground.UNKNOWN),
        (b"\x1b[?1;2c", Ground.UNKNOWN),
        (b"typed ahead", Ground.UNKNOWN),
        (b"", Ground.UNKNOWN),
    ],
)
def test_what_a_terminal_answers(answer: bytes, ground: Ground) -> None:
    """What lies between light and dark has no colours that can be read on it for sure."""
    assert read(answer) is ground


@pytest.mark.parametrize(
    ("environment", "ground"),
    [
        ({"TERM": "linux"}, Ground.DARK),
        ({"TERM": "xterm", "COLORFGBG": "15;0"}, Ground.DARK),
        ({"TERM": "xterm", "COLORFGBG": "0;default;15"}, Ground.LIGHT),
    ],
)
def test_who_says_it_is_not_asked(environment: dict[str, str], ground: Ground) -> None:
    assert of_terminal(environment) is ground


def test_styles_by_their_names() -> None:
    """Bold stays, and is all that is left where nothing is known."""
    assert style(Ground.LIGHT, "bold red") == "bold color(124)"
    assert style(Ground.UNKNOWN, "bold yellow") == "bold bold"
    assert (style(Ground.UNKNOWN, "cyan"), style(Ground.DARK, "")) == ("", "")
    assert Style.parse(style(Ground.UNKNOWN, "bold yellow")) == Style(bold=True)


@pytest.mark.parametrize("ground", Ground)
def test_what_the_command_line_colours(ground: Ground) -> None:
    """The details come with its colours: none of them is left."""
    text = readable(ground, Text.from_ansi("\x1b[36m\x1b[1mWHO IS HIT\x1b[0m and \x1b[31mred\x1b[0m, plain"))
    assert text.plain == "WHO IS HIT and red, plain"
    styles = [Style.parse(one.style) if isinstance(one.style, str) else one.style for one in text.spans]
    assert styles[0].bold
    assert [
        one.color.number
        for one in styles
        if one.color is not None and one.color.number is not None and one.color.number < 16
    ] == []
