"""The lists of `gpuward top`: what needs a person first, in the console's words, on any terminal."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from textual.widgets import Input

from brain.cli.main import COMMANDS, group
from brain.cli.top import rows
from brain.cli.top.rows import RowField, RowKind, Tab
from brain.console.words import LANGUAGES, Words
from brain.core.pack.spec import Mode
from brain.core.state import RunState
from tests.brain.top.kit import link_down, served, terminal
from tests.brain.world import GPU, Story, pack

WHAT = "bounce: link.bounce(link=link/eth0) on link/n1/eth0"
SIZES = [(80, 24), (60, 15), (40, 12), (120, 40), (200, 50)]


def mode(runbook: str, nodes: str, value: str, why: str = "") -> Any:
    """As /api/v1/status has it."""
    return {"runbook": runbook, "nodes": nodes, "mode": value, "who": "gpuward" if why else "ann", "why": why}


@pytest.mark.parametrize(
    ("modes", "shown"),
    [
        ([], "observe"),
        ([mode("*", "*", "observe"), mode("*", "sim-*", "auto")], "auto"),
        ([mode("*", "sim-*", "auto"), mode("*", "*", "observe")], "observe"),
        ([mode("*", "*", "auto"), mode("reset-gpu", "sim-*", "approve")], "auto+"),
        ([mode("*", "*", "auto"), mode("reset-gpu", "sim-2*", "approve")], "auto"),
        ([mode("*", "*", "auto"), mode("reset-gpu", "*", "auto")], "auto"),
        ([mode("*", "*", "observe"), mode("*", "*", "auto", "it did harm")], "observe"),
        ([mode("*", "*", "auto"), mode("*", "*", "approve", "it did harm")], "approve"),
        ([mode("reset-gpu", "*", "auto"), mode("*", "*", "approve")], "approve"),
        ([mode("*", "", "auto")], "observe"),
    ],
)
def test_the_mode_of_a_node(modes: list[Any], shown: str) -> None:
    """The last line that fits counts; `+`: some runbooks have another one there. What gpuward took back only makes stricter."""
    assert rows.mode_of(modes, "sim-01") == shown


@pytest.mark.parametrize(
    ("ago_s", "shown"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (7300, "2 h"),
        (200_000, "2 d"),
        (-90, "in 1 min"),
    ],
)
def test_ages(ago_s: float, shown: str) -> None:
    """The largest unit is enough: the exact time stands in the details."""
    assert rows.age(Words("en"), 1_000_000 - ago_s, 1_000_000) == shown


async def test_what_needs_a_person_stands_first(tmp_path: Path) -> None:
    """As the brain orders it, and so as the console: by severity, then by why; below it what heals by itself."""
    with served(tmp_path, link_down()) as whole:
        needs = whole.client().get("needs")
        async with terminal(whole) as at:
            await at.sees("Needs a person (2)", "no remedy left", "waits for an approval")
            keys = [one.key for one in at.app.view.shown if one.kind is not RowKind.TITLE]
            assert keys == [one["id"] for one in (*needs["people"], *needs["healing"])]
            assert at.app.view.selected is not None
            assert at.app.view.selected.key == needs["people"][0]["id"]
            await at.sees("WHY WE THINK SO", "because of gpu-lost")


async def test_nothing_is_open(tmp_path: Path) -> None:
    """Each list says so; a brain that does not know yet claims nothing."""
    with served(tmp_path, Story(pack())) as whole:
        async with terminal(whole) as at:
            await at.sees("Needs a person: Nothing needs you.")
            await at.press("2")
            await at.sees("Nothing is open.")
            await at.press("3")
            await at.sees("No runbook is under way.")
            await at.press("a", "enter", "1")
            whole.brain.is_connected = False
            await at.sees("OUTDATED")
            await at.press("r")
            await at.sees("Needs a person: Not known yet.")


async def test_runs_say_their_rung_and_what_they_wait_for(tmp_path: Path) -> None:
    """Only those that are under way; a step that is performed says until when."""
    story = link_down()
    with served(tmp_path, story) as whole:
        async with terminal(whole, size=(130, 40)) as at:
            await at.press("3")
            await at.sees("1/2 bounce", "waits for an approval", "bounce waits: bounce is in approve mode")
            assert [one.key for one in at.app.view.shown] == [
                one.id for one in story.engine.state.runs.values() if not one.ended_at
            ]
            (run,) = [one for one in story.engine.state.runs.values() if not one.ended_at]

            def approved(play: Story) -> None:
                now = play.engine.state.now
                play.say(now + 0.1, "approve", id=run.id)
                while run.state is not RunState.PERFORMING:
                    play.run(now := now + 0.1)

            whole.play(approved)
            await at.sees("acting")
            (row,) = at.app.view.shown
            until = next(
                one.at
                for one, head in zip(row.fields, at.app.view.sheet.heads, strict=True)
                if head == "UNTIL"
            )
            assert until == pytest.approx(run.deadline, abs=0.01)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_any_terminal(tmp_path: Path, size: tuple[int, int], language: str) -> None:
    """Every list, the keys and a question fit on it: no line is wider, and what is asked can be answered."""
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole, size=size, language=language) as at:
            await at.until(lambda: len(at.app.view.shown) == 3, "the list is there")
            for key in "12345":
                await at.press(key)
                assert at.app.view.region.height >= 3, at.screen()
                assert at.app.view.region.bottom <= size[1]
            await at.press("question_mark", "escape", "1", "end", "a", "enter")
            agree = at.app.screen.query_one("#agree")
            await at.until(lambda: at.app.screen.region.contains_region(agree.region), "the button is seen")
            assert WHAT.split()[1] in at.screen(), "the first of what is approved is seen"
            await at.press("pagedown", "pagedown")
            last = Words(language)("approve-ends", span="x").split()[-1]
            await at.until(lambda: last[-3:] in at.screen(), "and the last, when one scrolls")


async def test_a_filter_finds_rows_with_all_words(tmp_path: Path) -> None:
    """While it is typed, and until Esc; the row that was selected stays so where it is found."""
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole) as at:
            await at.press("2")
            await at.sees("gpu-lost", "link-down")
            await at.press("slash", *"gpu n2")
            await at.sees("/gpu n2 (1 of 2)")
            assert [one.incident for one in at.app.view.shown] == [
                one.id for one in whole.brain.story.incidents("gpu-lost")
            ]
            await at.press("enter")
            assert not at.app.query_one("#find", Input).has_class("seen")
            await at.press("slash", *"zzz", "enter")
            await at.sees("Nothing is like that.")
            await at.press("escape")
            await at.sees("gpu-lost", "link-down")


async def test_a_row_is_read_and_left(tmp_path: Path) -> None:
    """Its details have the whole screen, the same text as `gpuward explain` prints; n and p lead to the rows beside."""
    with served(tmp_path, link_down()) as whole:
        first = whole.client().get("needs")["people"][0]["id"]
        printed = await whole_explain(whole, first)
        async with terminal(whole, size=(100, 60)) as at:
            await at.sees("WHAT IT RESTS ON")
            await at.press("enter")
            await at.until(lambda: at.app.reading, "the details are read")
            await at.sees("WHAT YOU CAN TYPE")
            shown = " ".join(at.screen().split())
            for line in printed.splitlines()[:40]:
                assert " ".join(line.split()) in shown, line
            await at.press("n")
            await at.sees("because of link-down")
            await at.press("escape")
            assert not at.app.reading
            await at.sees("Needs a person (2)")


async def whole_explain(whole: Any, id_: str) -> str:
    """What `gpuward explain` prints."""
    done = CliRunner().invoke(
        group({}),
        ["--url", whole.url, "--token-file", str(whole.tokens["ann"]), "explain", id_],
        env={"COLUMNS": "98"},
    )
    assert done.exit_code == 0, done.output
    return done.output


async def test_the_selection_stays_with_its_row(tmp_path: Path) -> None:
    """Rows that come above it do not take it away."""
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole) as at:
            await at.sees("waits for an approval")
            await at.press("end")
            chosen = at.app.view.selected
            assert chosen is not None

            def worse(story: Story) -> None:
                now = story.engine.state.now
                story.event(now + 1, "gpu.xid", GPU, "n3", code=79)
                story.run(now + 300)

            whole.play(worse)
            await at.sees("gpu/n3/0000:3b:00")
            assert at.app.view.selected is not None
            assert at.app.view.selected.key == chosen.key


async def test_a_node_says_how_it_stands(tmp_path: Path) -> None:
    """Its state in the console's word, mode, and what the brain does not know of it."""
    story = Story(pack(Mode.APPROVE))
    with served(tmp_path, story) as whole:
        async with terminal(whole) as at:
            await at.press("4")
            await at.sees("n1", "well", "approve", "no heartbeat")
            await at.sees("approve for runbooks * on nodes *", "Nothing is open.", "WHAT NOBODY KNOWS")


async def test_chinese(tmp_path: Path) -> None:
    """All of the frame; what the brain says in one language only stands as it is."""
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole, language="zh") as at:
            await at.sees("需要人工 (2)", "等待批准", "担任主节点", "帮助")
            await at.press("question_mark")
            await at.sees("按键")


def test_a_pipe_is_told_what_to_use() -> None:
    """Before any brain is asked."""
    done = CliRunner().invoke(group({}), ["--url", "http://127.0.0.1:9", "top"])
    assert done.exit_code == 2
    assert "needs a terminal" in done.output
    assert "gpuward incidents" in done.output
    assert "gpuward watch" in done.output


def test_no_other_command_waits_for_textual() -> None:
    """Nor does `gpuward top --help`: it is imported when a terminal and a brain are there."""
    code = (
        "import sys\nfrom brain.cli.main import COMMANDS\n"
        "for one in COMMANDS.values(): one.load()\n"
        "assert 'rich' in sys.modules\nprint(sorted(name for name in sys.modules if name.split('.')[0] == 'textual'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[]\n", done.stderr
    assert "top" in COMMANDS


async def test_ten_thousand_rows_are_drawn_as_few_are(tmp_path: Path) -> None:
    """Only those that are seen: a screen of a long list asks for as many lines as one of a short list, wherever one is in it."""
    fields = (RowField("node"), RowField("", at=1.0))
    many = [rows.entry(f"n{number:05}", RowKind.NODE, fields) for number in range(10_000)]
    with served(tmp_path, Story(pack())) as whole:
        async with terminal(whole) as at:
            await at.sees("Nothing needs you.")
            view = at.app._view(Tab.NOTES)
            await at.press("5")
            drawn: list[int] = []
            for number in (20, 10_000):
                view.show(rows.sheet(("NODE", "HEARD"), many[:number]))
                for key in ("end", "home"):
                    await at.press(key)
                    assert view.selected is not None
                    assert view.selected.key == many[number - 1 if key == "end" else 0].key
                drawn.append(sum(view.render_line(y).cell_length > 0 for y in range(view.size.height)))
            assert drawn[0] == drawn[1] == view.size.height
