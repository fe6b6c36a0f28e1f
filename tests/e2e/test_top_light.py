"""`gpuward top` on a light terminal, which says that it is one: what stands there can be read, in each language and size."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.style import Style
from rich.text import Text

from tests.contrast import AA, contrast
from tests.e2e.test_top import terminal
from tests.e2e.up import Up, running

pytestmark = [pytest.mark.component("tmux"), pytest.mark.component("nats-server"), pytest.mark.slow]
INK, PAPER = "#2e3436", "#fdf6e3"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A brain with a step that waits for an approval, and a fault that heals by itself."""
    with running(tmp_path_factory.mktemp("up") / "data", nodes=4) as found:
        found.gpuward("mode", "reset-gpu", "approve", "--nodes", "sim-*")
        found.gpuward("drill", "gpu-needs-reset", "--node", "sim-02")
        found.gpuward("hold", "node/sim-03", "--why", "a new switch")
        yield found


def hard_to_read(drawn: str, paper: str) -> set[str]:
    """The colours of what is drawn, with their ground, that have too little contrast."""
    found = set()
    text = Text.from_ansi(drawn)
    for span in text.spans:
        if not any(map(str.isalnum, text.plain[span.start : span.end])):
            continue  # a scroll bar
        style = Style.parse(span.style) if isinstance(span.style, str) else span.style
        ink = style.color.get_truecolor().hex if style.color and not style.color.is_default else INK
        ground = (
            style.bgcolor.get_truecolor().hex if style.bgcolor and not style.bgcolor.is_default else paper
        )
        if style.dim or contrast(ink, ground) < AA:
            found.add(f"{style}")
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.parametrize(
    ("language", "waits", "listed"), [("en", "waits for an approval", "held"), ("zh", "等待批准", "暂停")]
)
def test_it_can_be_read(
    tmp_path: Path, up: Up, size: tuple[int, int], language: str, waits: str, listed: str
) -> None:
    """Every list, the details, the question and the keys: no colour has less contrast than WCAG asks for, and nothing is dim."""
    with terminal(tmp_path, "--lang", language, env=up.env(), size=size, background=PAPER) as at:
        at.sees(waits, "sim-02")
        for key, seen in (
            ("1", waits),
            ("2", "sim-02"),
            ("3", "reset-gpu"),
            ("4", listed),
            ("5", "inc-"),
            ("?", "Ctrl-C"),
        ):
            at.press(key)
            at.sees(seen)
            drawn = at.screen(colours=True)
            assert hard_to_read(drawn, PAPER) == set(), key
        at.press("Escape", "1", "a")
        at.press("Enter")
        assert hard_to_read(at.screen(colours=True), PAPER) == set()


def test_it_sees_what_is_hard_to_read() -> None:
    """As everything was before it asked the terminal."""
    was = "\x1b[33mapproval\x1b[0m \x1b[2mhead\x1b[0m \x1b[38;5;124mP0\x1b[0m \x1b[1mP1\x1b[0m"
    assert len(hard_to_read(was, "#ffffff")) == 2
