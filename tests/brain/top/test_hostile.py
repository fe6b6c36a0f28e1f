"""Names, kernel lines and reasons that would act on a terminal, or pass for markup: `gpuward top` shows them letter by letter."""

import io
import os
import re
import time
from pathlib import Path

import pytest
from rich.console import Console as RichConsole

from brain.cli.top.app import Top
from brain.core.pack.spec import Mode
from tests.brain.top.kit import Terminal, served, terminal
from tests.brain.world import Story, pack
from tests.security.test_inert import ACTS

MARKUP = "[red]all is well[/red][/] [@click=app.quit]x[/] [link=http://evil]y[/link] $(id) {0} :bomb:"
ESCAPES = "\x1b[2J\x1b[H\x9b31m\x1b]52;c;cm0=\x07\u202egnp\u200b\x1b]8;;http://evil\x07click\r\nP0"
NODE = "n[red]1[b]"
WHY = f"{MARKUP} {ESCAPES}"
KEYS = ("1", "2", "3", "4", "5")


def hostile() -> Story:
    """Everything that a node, a job or a person can write has something in it."""
    began = time.time() - 600
    story = Story(pack(Mode.APPROVE))
    story.event(began, "link.state", f"link/{MARKUP}", NODE, up=False)
    story.event(began + 1, "link.state", f"link/{ESCAPES}", "n2", up=False)
    story.say(began + 2, "hold", scope=f"node/{NODE}", why=WHY)
    for incident in story.incidents():
        story.say(began + 3, "note", id=incident.id, text=WHY)
    return story.run(time.time())


def drawn(app: Top) -> str:
    """The bytes that a terminal would get for the whole screen."""
    out = io.StringIO()
    console = RichConsole(file=out, force_terminal=True, color_system="truecolor", width=app.size.width)
    console.print(app.screen._compositor.render_update(full=True))
    return out.getvalue()


# What we ourselves send: colours, and where the cursor goes
_OURS = re.compile(r"\x1b\[[0-9;]*[mH]")


def attacked(at: Terminal) -> None:
    """Nothing foreign acts, neither as an escape sequence nor as markup or an action."""
    assert not ACTS.search(_OURS.sub("", drawn(at.app)).replace("\n", "")), at.screen()
    for strip in at.app.screen._compositor.render_strips(at.app.size):
        for segment in strip:
            if segment.style is not None:
                assert not segment.style.link, segment
                assert "@click" not in (segment.style.meta or {}), segment


@pytest.mark.parametrize("size", [(200, 50), (80, 24)], ids=["wide", "narrow"])
async def test_nothing_that_others_wrote_acts(tmp_path: Path, size: tuple[int, int]) -> None:
    """In every list, in the details, in a question about it, and in what is typed into a filter."""
    with served(tmp_path, hostile()) as whole:
        async with terminal(whole, size=size) as at:
            await at.until(lambda: len(at.app.view.shown) > 2, "the list is there")
            for key in KEYS:
                await at.press(key)
                await at.until(lambda: at.app.view.shown, "the list is there")
                for _ in range(3):
                    await at.press("down")
                    await at.pilot.pause(0.3)
                    attacked(at)
                await at.press("enter")
                await at.pilot.pause(0.3)
                attacked(at)
                await at.press("escape", "a")
                attacked(at)
                await at.press("enter")
                attacked(at)
                await at.press("escape", "escape", "escape")
            await at.press("2", "slash", *"[red]", "enter")
            attacked(at)


async def test_it_is_shown_letter_by_letter(tmp_path: Path) -> None:
    """A name with brackets is that name: people type it next. What cannot be seen stands as its number."""
    with served(tmp_path, hostile()) as whole:
        async with terminal(whole, size=(220, 50)) as at:
            await at.press("4")
            await at.sees(NODE)
            await at.press("slash", *NODE, "enter")
            await at.until(lambda: [one.key for one in at.app.view.shown] == [NODE], "only it is found")
            await at.sees("[red]all is well[/red][/]", r"\x1b[2J\x1b[H\x9b31m", r"\u202egnp\u200b")
            await at.press("a", "end", "enter")
            await at.sees("[@click=app.quit]x[/]", "[link=http://evil]y[/link]")


async def test_without_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR: none is sent, and the selected row and list are still told apart."""
    monkeypatch.setitem(os.environ, "NO_COLOR", "1")
    with served(tmp_path, hostile()) as whole:
        async with terminal(whole) as at:
            await at.until(lambda: len(at.app.view.shown) > 2, "the list is there")
            styles = [
                segment.style
                for strip in at.app.screen._compositor.render_strips(at.app.size)
                for segment in strip.apply_filter(at.app._filters[-1], at.app.screen.background_colors[1])
                if segment.style is not None
            ]
            assert all(one.color is None or one.color.is_default for one in styles)
            assert all(one.bgcolor is None or one.bgcolor.is_default for one in styles)
            assert any(one.reverse for one in styles)
